"""The lines that dml_tile/capture.h writes: an operator, what CreateOperator returned, and the device's level."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from dml_tile.directml.enums import UINT_MAX, FeatureLevel
from dml_tile.input_errors import Record

_MARK: Final = "dml_tile_capture"
_HEXADECIMAL: Final = re.compile("0x[0-9A-Fa-f]{1,8}")


def _parse_hexadecimal(text: Any) -> Any:
    """Return the number that a text such as ``0x80070057`` spells; anything else as it is, which is refused."""
    return int(text, 16) if isinstance(text, str) and _HEXADECIMAL.fullmatch(text) else text


def _parse_level(text: Any) -> Any:
    """Return the feature level; None for one that is not known yet."""
    number = _parse_hexadecimal(text)
    return None if isinstance(number, int) and number not in {*FeatureLevel} else number


class CapturedLine(Record):
    """One line; HRESULT and feature level are spelled as hexadecimal numbers."""

    dml_tile_capture: Literal[1]
    hresult: Annotated[int, BeforeValidator(_parse_hexadecimal), Field(strict=True, ge=0, le=UINT_MAX)]
    feature_level: Annotated[FeatureLevel | None, BeforeValidator(_parse_level)]
    operator: dict[str, Any] | None


def is_capture(data: Any) -> bool:
    """Return True for the JSON value of a captured line."""
    return isinstance(data, dict) and _MARK in data
