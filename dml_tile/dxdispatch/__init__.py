"""DxDispatch models: what tells one from other JSON, the reader, the rules of its parser, and the runner."""

from __future__ import annotations

from typing import Final

MODEL_KEYS: Final = ("resources", "dispatchables", "commands")
"""The keys of a DxDispatch model, one of which tells it from other objects of JSON."""
