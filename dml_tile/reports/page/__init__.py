"""Results as one HTML page that needs nothing beside it.

report      takes results, and writes the page
contents    what the page tells: rows of texts (row), and counts
document    how it is written, with overview, tiles and markup, page.css and page.js
"""
