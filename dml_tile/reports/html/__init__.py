"""The writer of all HTML pages: elements (markup), whole pages (document) and their one stylesheet (style.css)."""
