"""The writer of all HTML pages: elements, whole documents, and their one stylesheet (style.css).

Results become a page in ``dml_tile.reports.page``, drawn tensors in ``dml_tile.pictures.html``.
"""
