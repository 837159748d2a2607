"""Writes descriptors, lowerings and schemas as text for other programs."""
