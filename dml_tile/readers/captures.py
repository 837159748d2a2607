"""The lines that the C++ headers write of an application's calls, and a capturing device's graphs of operators."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from dml_tile.descriptors.graph import UNKNOWN_OPERATOR, CapturedGraph, GraphDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.enums import UINT_MAX, FeatureLevel
from dml_tile.findings import Finding, unreadable
from dml_tile.input_errors import Record
from dml_tile.readers.item import Item, ItemOrProblem, validated
from dml_tile.rules.capture import Capture, Method
from dml_tile.text import json_pointer, pointer_steps

_DIGEST_BYTES: Final = 16


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
    """A line; HRESULT and feature level are hexadecimal numbers, or null if there was no call, or no DirectML.

    A capturing device writes a line before a call, and after it a line with the HRESULT and no operator or graph; both
    have ``session`` and ``call``. A graph's operators are the numbers of the calls that created them.
    """

    dml_tile_capture: Literal[1]
    hresult: Annotated[_Bits, BeforeValidator(_parse_hexadecimal)] | None
    feature_level: Annotated[FeatureLevel | None, BeforeValidator(_parse_level)] = None
    session: str | None = None
    call: _Bits | None = None
    label: str | None = None
    null_device: bool = False
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
class CapturedCall(Item):
    """One of the two lines that a capturing device writes of a call, as it was read."""

    written: CapturedLine = field(kw_only=True, compare=False, repr=False)


def capture_of(desc: OperatorDesc | None, line: CapturedLine) -> Capture:
    """Return what the application got for a descriptor, by the line of its call."""
    method: Method = "CompileGraph" if line.is_graph else "CreateOperator"
    return Capture(
        desc,
        None if line.null_device else line.hresult,
        line.feature_level,
        line.label or "",
        open=line.session is not None,
        method=method,
        null_device=line.null_device,
    )


def joined_calls(parts: Iterable[ItemOrProblem]) -> Iterator[ItemOrProblem]:
    """Yield parts as they come; the two lines of a capturing device's call are one part.

    A call that two lines begin is a problem. Its operators are kept, without an HRESULT where it may be either's.
    """
    operators, waiting = _Operators(), dict[tuple[str, int], Item]()
    mixed = set[tuple[str, int]]()
    for part in parts:
        if not isinstance(part, CapturedCall):
            yield part
            continue
        line, key = part.written, (part.written.session or "", part.written.call or 0)
        if line.is_return:
            if first := waiting.pop(key, None):
                yield _answered(first, line.hresult)
            elif key not in mixed:
                yield _problem(part, "completes a call that no line before it describes")
            continue
        if is_again := key in operators.descs:
            yield _problem(part, f"call is {line.call}, which an earlier line of the session has begun")
        operators.descs[key] = part.desc if isinstance(part.desc, OperatorDesc) and not is_again else None
        operators.pointers[key] = part.pointer
        if line.graph is not None:
            described = _captured_graph(part, key[0], line.graph, operators)
        else:
            described = Item(part.pointer, part.subject, capture=part.capture, line=part.line, places=part.places)
        if isinstance(described, Finding):
            yield described
        elif key in mixed or (is_again and key in waiting):
            mixed.add(key)
            yield from (_answered(each, None) for each in (waiting.pop(key, None), described) if each)
        else:
            waiting[key] = described
    yield from waiting.values()


def _answered(part: Item, hresult: int | None) -> Item:
    capture = part.capture
    if capture is not None:
        capture = replace(capture, hresult=None if capture.null_device else hresult, open=False)
    return replace(part, capture=capture)


def _problem(part: Item, message: str) -> Finding:
    pointer = json_pointer(pointer_steps(part.pointer)[:1])
    return replace(unreadable(pointer, message, replace(part, pointer=pointer).position("")), line=part.line)


def _captured_graph(part: Item, session: str, data: dict[str, Any], operators: _Operators) -> ItemOrProblem:
    graph, content = operators.graph(session, data)
    read = validated(CapturedGraph, graph, part.pointer)
    if isinstance(read, Finding):
        return replace(read, line=part.line)
    desc = read.desc if isinstance(read.desc, GraphDesc) else None
    capture = part.capture and replace(part.capture, desc=desc, content=content)
    nodes = operators.of_nodes(session, data)
    return Item(part.pointer, desc, capture=capture, operators=nodes, line=part.line, places=part.places)


class _Operators:
    """The operators that a capture describes, by session and call."""

    def __init__(self) -> None:
        self.descs: dict[tuple[str, int], OperatorDesc | None] = {}
        self.pointers: dict[tuple[str, int], str] = {}
        self._digests: dict[tuple[str, int], str] = {}

    def graph(self, session: str, graph: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return a graph with its nodes' operators in place, and its content, independent of the calls' numbers.

        The operators are shared, not copied.
        """
        nodes = graph.get("Nodes")
        if not isinstance(nodes, list):
            return graph, json.dumps(graph)
        named = [self._node(session, node) for node in nodes]
        content = json.dumps(graph | {"Nodes": [digest for _, digest in named]})
        return graph | {"Nodes": [node for node, _ in named]}, content

    def of_nodes(self, session: str, graph: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        """Return the pointer of each node's operator, empty for an unknown one, and the node's name."""
        nodes = [node for node in graph.get("Nodes") or () if isinstance(node, dict)]
        calls = [call if type(call := node.get("Operator")) is int else -1 for node in nodes]
        pointers = [self.pointers[session, call] if self.descs.get((session, call)) else "" for call in calls]
        return tuple(zip(pointers, (node.get("Name") or "" for node in nodes), strict=True))

    def _node(self, session: str, node: Any) -> tuple[Any, Any]:
        call = node.get("Operator") if isinstance(node, dict) else None
        if type(call) is not int:
            return node, node
        desc = self.descs.get((session, call))
        if desc is None:
            return node | {"Operator": UNKNOWN_OPERATOR}, node | {"Operator": 0}
        return node | {"Operator": desc}, node | {"Operator": self._digest(session, call, desc)}

    def _digest(self, session: str, call: int, desc: OperatorDesc) -> str:
        if (session, call) not in self._digests:
            text = desc.model_dump_json(by_alias=True)
            self._digests[session, call] = blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        return self._digests[session, call]
