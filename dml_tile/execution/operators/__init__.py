"""What DirectML's operators compute, in NumPy: a module for each family, and ``table``, which has all by name."""
