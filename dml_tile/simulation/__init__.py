"""The target that a program simulates, and the recorded calls of a test."""
