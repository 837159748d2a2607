"""Checks many files: in several processes of this machine, or on a cluster."""
