"""Reads files that URLs name, through fsspec."""
