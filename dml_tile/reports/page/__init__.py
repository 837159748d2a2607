"""Results as one HTML page that needs nothing beside it.

report      takes results, and writes the page
model       the texts and counts that the page shows, with tile_row
document    how it is written, with overview, tiles and page.js
"""
