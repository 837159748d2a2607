"""Formats results: text, JSON, SARIF, JUnit, GitHub annotations, and an HTML page."""
