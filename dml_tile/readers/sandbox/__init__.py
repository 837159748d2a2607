"""Reads models in a child process with bounds on its time and memory."""
