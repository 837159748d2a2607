"""What makes the generated pages of the documentation; ``docs/generate.py`` writes them."""
