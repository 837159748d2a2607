"""A tile's tensors as pictures of memory: what lies where, and the terminal, SVG and HTML that draw it.

Each module draws what ``memory`` and ``tile`` say, none looks at a descriptor again. A picture is of a part of a large
tensor, so that its cost is bounded whatever the sizes.
"""
