"""The child process that reads models: its bounds, and the lines of JSON that it exchanges with its parent.

The child answers an order by a line for each part of the file. A line with facts on the model ends the answer. The
parent accepts only lines of the expected form, since the child has handled untrusted bytes.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, Final, Self, TypeAlias

from pydantic import TypeAdapter
from pydantic_core import from_json

from dml_tile.back_ends.deployment import Deployment
from dml_tile.back_ends.described_node import DescribedNode
from dml_tile.back_ends.placement import PlacedModel
from dml_tile.directml.targets import Target
from dml_tile.errors import InputError
from dml_tile.findings import Finding, unreadable
from dml_tile.readers.model_names import KnownShapes, ModelFacts
from dml_tile.readers.model_tile import TileNode
from dml_tile.text import shortened

try:
    import resource
except ImportError:  # on Windows: the parent alone bounds time, and nothing bounds memory
    resource = None  # type: ignore[assignment]

_PR_SET_PDEATHSIG: Final = 1
_GRACE: Final = 10
"""Seconds past a bound after which the child ends by itself, if its parent has died."""
_MAX_MESSAGE_LENGTH: Final = 300

ReadPart: TypeAlias = TileNode | PlacedModel | DescribedNode | Finding

OUT_OF_MEMORY: Final = 3
"""The child's exit status when it runs out of memory."""


@dataclass(frozen=True, slots=True)
class Order:
    """Asks for a file to be read by a reader (ONNX or OpenVINO), within bounds in seconds and bytes of memory.

    ``deployments`` are the releases of ONNX Runtime that place an ONNX model's nodes. With ``describes``, the answer is
    what the DirectML provider of the only one creates of them; ``as_graphs``, as the graphs that it compiles.
    """

    path: str
    reader: str
    known_shapes: KnownShapes
    seconds: float
    memory: int
    deployments: tuple[Deployment, ...] = ()
    describes: bool = False
    as_graphs: bool = False

    @property
    def places_nodes(self) -> bool:
        """True if the answer begins with the placements of the model's nodes, unless the model cannot be read."""
        return bool(self.deployments) and self.reader == "ONNX" and not self.describes

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"  # in ASCII, whatever the path's bytes are

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Parse a line made by ``line``."""
        fields = json.loads(line)
        dims, input_shapes = fields.pop("known_shapes")
        shapes = {name: tuple(shape) for name, shape in input_shapes.items()}
        deployments = tuple(
            Deployment(Target(**target), tuple(release), difference)
            for target, release, difference in fields.pop("deployments")
        )
        return cls(known_shapes=KnownShapes(dims, shapes), deployments=deployments, **fields)


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """The line of a part that cannot be read."""

    pointer: str
    message: str


_FORMS: Final[Mapping[frozenset[str], TypeAdapter[Any]]] = {
    frozenset(field.name for field in fields(form)): TypeAdapter(form)
    for form in (TileNode, PlacedModel, DescribedNode, _Unreadable, ModelFacts)
}


def answer_line(part: ReadPart | ModelFacts) -> bytes:
    """Encode a part of an answer, or its end."""
    line = _Unreadable(part.path, part.message) if isinstance(part, Finding) else part
    answer = {field.name: getattr(line, field.name) for field in fields(line)}
    return json.dumps(answer, default=_plain, ensure_ascii=False).encode(errors="replace") + b"\n"


def _plain(value: object) -> object:
    if isinstance(value, DescribedNode):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return sorted(value) if isinstance(value, frozenset) else str(value)


def read_answer(line: bytes) -> ReadPart | ModelFacts:
    """Decode a line of an answer. Raises ValueError for a malformed line."""
    answer = from_json(line)
    form = _FORMS.get(frozenset(answer)) if isinstance(answer, dict) else None
    if form is None:
        raise ValueError("it has the keys of no answer")
    read = form.validate_json(line, strict=True)
    return unreadable(read.pointer, read.message) if isinstance(read, _Unreadable) else read


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Take over standard input and output; what libraries print is discarded."""
    streams = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    return streams


@contextmanager
def bounds(seconds: float, memory: int) -> Iterator[None]:
    """Bound memory, in bytes, and, in case the parent dies, time; suppress core files."""
    if resource is not None:
        for kind, most in (resource.RLIMIT_CORE, 0), (resource.RLIMIT_DATA, memory):
            hard = resource.getrlimit(kind)[1]
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    if hasattr(signal, "alarm"):
        signal.alarm(int(seconds) + _GRACE)
    try:
        yield
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    if hasattr(signal, "alarm"):
        signal.alarm(0)


def main() -> None:
    """Answer orders until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    if sys.platform == "linux":  # the kernel kills this process when its parent ends
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # OpenVINO would send telemetry
    orders, answers = own_streams()
    with orders, answers:
        for line in orders:
            order = Order.read(line)
            with bounds(order.seconds, order.memory):
                for part in answer(order):
                    answers.write(answer_line(part))
                    answers.flush()


def answer(order: Order) -> Iterator[ReadPart | ModelFacts]:
    """Yield the parts of a file, and the end of the answer."""
    facts = ModelFacts()
    try:
        if order.describes:
            from dml_tile.readers.onnx.described import read_descriptions

            facts = yield from read_descriptions(
                Path(order.path), order.known_shapes, *order.deployments, as_graphs=order.as_graphs
            )
        elif order.reader == "ONNX":
            from dml_tile.readers.onnx.tiles import read_nodes

            facts = yield from read_nodes(Path(order.path), order.known_shapes, order.deployments)
        else:
            from dml_tile.readers import openvino

            facts = yield from openvino.read_nodes(Path(order.path), order.known_shapes)
    except InputError as error:
        yield from error.problems
    except ImportError as error:
        yield unreadable("", str(error))
    except MemoryError:
        raise
    except Exception as error:  # of any class: a hostile file may make a library raise anything
        reason = f"{type(error).__name__}: {shortened(str(error), _MAX_MESSAGE_LENGTH)}"
        yield unreadable("", f"{order.reader}'s reader failed: {reason}")
    yield facts


if __name__ == "__main__":
    main()
