"""A tile's tensors as pictures of memory, in a terminal, as SVG and as HTML.

``labels`` reads the descriptor; the modules that draw do not. A picture shows part of a large tensor, so that its cost
is bounded for any sizes.
"""
