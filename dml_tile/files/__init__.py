"""Files: the paths that input may name, and writing a file whole or not at all."""
