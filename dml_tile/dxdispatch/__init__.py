"""DxDispatch models: what tells one from other JSON, the reader, the rules of its parser, and the runner."""

from __future__ import annotations

from typing import Any, Final

MODEL_KEYS: Final = ("resources", "dispatchables", "commands")


def is_dxdispatch_model(data: Any) -> bool:
    """Return True if a JSON value has a key of a DxDispatch model."""
    return isinstance(data, dict) and not data.keys().isdisjoint(MODEL_KEYS)
