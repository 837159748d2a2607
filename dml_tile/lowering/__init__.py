"""Lowering replaces a tile that a target refuses by a chain of tiles that it accepts and that write the same bytes.

A lowering is a chain of tiles. The first tile reads the input, each later tile reads scratch memory that an earlier
tile wrote, and the last tile writes the output. If one tile has too few dimensions for that, each of several last tiles
writes a part.

``chains`` finds the chains of a tile: by counting, for one data type and packed scratch memory; by a search, if no
single tile packs the input; by ``tiles_in_parts``, if no single tile spreads the output. ``lower`` makes descriptors of
the cheapest chain that DirectML's limits allow.
"""
