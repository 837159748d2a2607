"""Reads models in a child process with bounds on its time and memory.

The parent starts the child and sends it orders; the child answers with the parts of each file; both speak the protocol.
"""
