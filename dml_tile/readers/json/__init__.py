"""Descriptors in JSON documents, and where in the text each value stands."""
