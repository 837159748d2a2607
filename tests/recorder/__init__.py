"""Asks Microsoft's own DirectML, and holds the emulator to what it answers.

releases    which wheels of torch-directml carry which DirectML
wheels      fetches them, and reads their licence first
stand_in    what DirectML finds in place of Direct3D 12 and DXCore
interfaces  the calls of COM objects
memory      descriptors whose ends cannot be read past
runtime     the real DirectML, and its answers to descriptors
devices     the real DirectML behind the emulator's interface
workers     asks in forked processes, so that a crash is an answer
draws       random descriptors
compare     both sides, descriptor by descriptor
calls       the recorded calls of devices
record      writes the recorded files anew
commands    the commands and their output
"""
