"""Turns files and memory into tiles. Readers know nothing of verdicts."""
