"""Lowering replaces a tile that a target refuses by a chain of tiles that it accepts and that write the same bytes.

A lowering is a chain of tiles. The first reads the input, each later one reads what an earlier one wrote to scratch
memory, and the last writes the output. Where one tile has too few dimensions for that, each of the last ones writes a
part of it.

``chains`` finds the chains of a tile: by counting, for one data type and packed scratch memory, or by a search, for
input that no single tile packs; ``tiles_in_parts`` finds those for an output that no single tile spreads. ``lower``
makes descriptors of the cheapest chain that DirectML's limits allow.
"""
