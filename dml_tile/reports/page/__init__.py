"""Results as one HTML page that needs nothing beside it.

report      takes results, and writes the page
document    its sections, with matrix, findings, tables and page.js
"""
