"""Formats of files: JSON with positions, and NumPy's .npy."""
