"""Lowering replaces a tile that a target refuses by a chain of tiles that it accepts and that write the same bytes.

All tiles of a chain have one data type. The first reads the input, each later one reads what the one before it wrote,
and the last writes the output. Scratch buffers between them are packed, in the order of the output's axes. The findings
of the ``DML-LOWER-…`` rules say why a tile has no such chain.
"""
