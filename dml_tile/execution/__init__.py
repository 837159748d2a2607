"""Moves the bytes of a tile: the plan, the planner, threads, and the executor."""
