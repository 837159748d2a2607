"""DirectML's operators in NumPy: a module for each family, and ``table``, which has all by name."""
