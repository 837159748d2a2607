"""Writes descriptors and lowerings as text for other programs."""
