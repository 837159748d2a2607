"""Shared by several test modules: cases, oracles, and builders of descriptors, models and files."""
