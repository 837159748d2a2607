"""Names of files that are URLs, which fsspec opens: ``s3://bucket/model.onnx``, ``zip://model.onnx::archive.zip``."""

from __future__ import annotations

import re
from typing import Final

# of two letters or more: one and a colon are a drive of Windows
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(?:://|::)")


def is_url(name: str) -> bool:
    """Return True if a name is a URL."""
    return _URL.match(name) is not None


def file_of(name: str) -> str:
    """The file itself, without what holds it: ``a/model.onnx`` of ``zip://a/model.onnx::archive.zip``.

    A name that is no URL is returned as it is.
    """
    return name.partition("::")[0].partition("://")[2] if is_url(name) else name
