"""Tiles NumPy arrays.

numpy     tile(): numpy.tile, for what DirectML accepts at a target
dialects  tile_as(): whatever a specification accepts, also what DirectML does not
"""
