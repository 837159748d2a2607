"""A simulated IDMLDevice: operators, binding tables and dispatch, as in the DirectML that is simulated.

Methods have the names of the C methods, in snake_case, and are called in the same order: create, compile, initialise,
bind, dispatch. A method that returns an HRESULT in C raises DmlError instead; a void method removes the device. Where
DirectML would crash, DmlError says so.
"""
