"""Checks the tiles of files and gives verdicts on them. Prints nothing, and knows no output format."""
