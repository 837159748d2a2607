"""The lines that the C++ headers write of an application's calls."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.enums import UINT_MAX, FeatureLevel
from dml_tile.input_errors import Record
from dml_tile.readers.item import Item
from dml_tile.rules.capture import Capture, Method

_HEXADECIMAL: Final = re.compile("0x[0-9A-Fa-f]{1,8}")


def _parse_hexadecimal(text: Any) -> Any:
    """Return the number that a text such as ``0x80070057`` spells; pydantic refuses anything else."""
    return int(text, 16) if isinstance(text, str) and _HEXADECIMAL.fullmatch(text) else text


def _parse_level(text: Any) -> Any:
    """Return the feature level; None if it is not known yet."""
    number = _parse_hexadecimal(text)
    return None if isinstance(number, int) and number not in {*FeatureLevel} else number


_Bits: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=UINT_MAX)]


class CapturedLine(Record):
    """A line; HRESULT and feature level are hexadecimal numbers, or null if there was no call.

    A capturing device writes a line before a call, and after it a line with the HRESULT and no operator or graph; both
    have ``session`` and ``call``. A graph's operators are the numbers of the calls that created them.
    """

    dml_tile_capture: Literal[1]
    hresult: Annotated[_Bits, BeforeValidator(_parse_hexadecimal)] | None
    feature_level: Annotated[FeatureLevel | None, BeforeValidator(_parse_level)] = None
    session: str | None = None
    call: _Bits | None = None
    label: str | None = None
    operator: dict[str, Any] | None = None
    flags: _Bits | None = None
    graph: dict[str, Any] | None = None

    @property
    def is_return(self) -> bool:
        """True for the second line of a call."""
        return not self.model_fields_set & {"operator", "graph"}

    @property
    def is_graph(self) -> bool:
        """True for a call of CompileGraph, also one with a null pointer."""
        return "graph" in self.model_fields_set


@dataclass(frozen=True)
class Call(Item):
    """One of the two lines that a capturing device writes of a call, as it was read."""

    line: CapturedLine = field(kw_only=True, compare=False, repr=False)


def capture_of(desc: OperatorDesc | None, line: CapturedLine) -> Capture:
    """Return what the application got for a descriptor, by the line of its call."""
    method: Method = "CompileGraph" if line.is_graph else "CreateOperator"
    return Capture(desc, line.hresult, line.feature_level, line.label or "", line.session is not None, method)
