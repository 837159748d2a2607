"""Tile as its specifications define it: from a data type, a shape and repeats to a request, or to an error.

Each module is one specification's; none needs a package but NumPy. ``directml`` makes a descriptor of a request.
"""
