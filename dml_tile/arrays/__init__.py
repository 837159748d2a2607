"""Tiles NumPy arrays, as each specification defines it."""
