"""Asks Microsoft's own DirectML, and holds the emulator to what it answers.

releases    which wheels of torch-directml carry which DirectML
wheels      fetches them, and reads their licence first
stand_in    what DirectML finds in place of Direct3D 12 and DXCore
interfaces  the calls of COM objects
runtime     a device of the real DirectML
workers     asks in forked processes, so that a crash is an answer
"""
