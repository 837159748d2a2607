"""Generators of the documentation's pages; ``docs/generate.py`` writes them."""
