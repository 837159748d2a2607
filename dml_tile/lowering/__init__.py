"""Lowering replaces a tile that a target refuses by a chain of tiles that it accepts and that write the same bytes.

A lowering is a chain of tiles. The first tile reads the input, each later tile reads the scratch memory that the one
before it wrote, and the last tile writes the output.

``chains`` finds the chains of a tile by counting, for each data type, with packed scratch memory. ``lower`` makes
descriptors of the cheapest chain that DirectML's limits allow.
"""
