"""Lets a child process read models, since onnx and OpenVINO are native code and files may be hostile.

A file that crashes the child, or exceeds its time or memory, is lost alone: a new child reads the next one.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock, Thread
from typing import IO, Final, cast

from dml_tile.back_ends.deployment import Deployment
from dml_tile.back_ends.described_node import DescribedNode
from dml_tile.back_ends.placement import PlacedModel
from dml_tile.errors import InputError
from dml_tile.findings import unreadable
from dml_tile.input_errors import limited_problems
from dml_tile.readers.contents import require_no_pointer
from dml_tile.readers.file_kinds import kind_of
from dml_tile.readers.model_names import KnownShapes, ModelFacts
from dml_tile.readers.model_tile import TileNode
from dml_tile.readers.sandbox.child import OUT_OF_MEMORY, Order, ReadPart, read_answer

MAX_SECONDS: Final = 60
"""Seconds that reading one file may take."""

MAX_MEMORY_BYTES: Final = 2**32
"""Bytes that the child may allocate, if RLIMIT_DATA exists; on Linux, mapped files do not count.

An IR's weights are mapped. A frozen TensorFlow graph was measured to take 5 times the size of its file.
"""

MAX_ANSWER_BYTES: Final = 2**24
"""Bytes of the child's answer about one file; a Tile takes about 200."""

SECONDS_IDLE: Final = 5
"""Seconds that the child waits for the next file before it is ended; a worker of an executor may live long."""

# -P: a package in the current folder must not pass for onnx or OpenVINO
_COMMAND: Final = (sys.executable, "-P", "-m", "dml_tile.readers.sandbox.child")
_SECONDS_BETWEEN_LOOKS: Final = 0.1
_NAMES_OF_STATUS: Final = {-number.value: number.name for number in signal.Signals}


@dataclass(eq=False)
class ModelReader:
    """Reads models one after the other in a child process, which is started when needed and ends with ``close``.

    ``deployments`` are the releases of ONNX Runtime that place the nodes of an ONNX model; with ``describes``, what the
    DirectML provider of the only one creates of them is read instead of Tiles, ``as_graphs`` if it compiles them.
    ``seconds`` and ``memory``, in bytes, bound the reading of each file. ``command`` starts the child.
    """

    known_shapes: KnownShapes
    deployments: Sequence[Deployment] = ()
    seconds: float = MAX_SECONDS
    memory: int = MAX_MEMORY_BYTES
    command: Sequence[str] = _COMMAND
    describes: bool = False
    as_graphs: bool = False
    _facts: ModelFacts = field(default=ModelFacts(), init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _is_reading: bool = field(default=False, init=False)
    _deadline: float = field(default=0, init=False)
    """The time, of ``time.monotonic``, at which the process is ended."""
    _lock: RLock = field(default_factory=RLock, init=False)
    """Is held by whoever changes these, the thread that reads or the one that watches the deadline."""

    def close(self) -> None:
        """End the process; the next file would start another one."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                with suppress(OSError), process:  # the unread rest of an order cannot be flushed
                    pass

    def parts(self, path: Path) -> list[ReadPart]:
        """Return the Tiles and problems of a file; if reading fails, the parts before, and a problem."""
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                return [unreadable("", "is not a regular file")]
            require_no_pointer(path)
        except OSError as error:
            return [unreadable("", error.strerror or str(error))]
        except InputError as error:
            return [*error.problems]
        kind = kind_of(path.name)
        assert kind is not None
        bounds, deployments = (self.seconds, self.memory), tuple(self.deployments)
        asked = {"describes": self.describes, "as_graphs": self.as_graphs}
        order = Order(str(path.absolute()), str(kind.reader), self.known_shapes, *bounds, deployments, **asked)
        parts: list[ReadPart] = []
        end: ModelFacts | str = "interrupted"
        try:
            end = _read(self._begun(), order, parts)
        except OSError as error:
            end = f"no process can be started to read it: {error.strerror}"
        finally:
            with self._lock:
                if self._deadline <= time.monotonic():
                    end = f"reading took longer than {self.seconds:.3g} s"
                if isinstance(end, str):
                    self.close()
                self._is_reading, self._deadline = False, time.monotonic() + SECONDS_IDLE
        limited: Iterator[ReadPart] = limited_problems(parts)
        if isinstance(end, str):
            return [*limited, unreadable("", end)]
        self._facts |= end
        return [*limited]

    def new_facts(self) -> ModelFacts:
        """Return the facts about the models read since the last call."""
        facts, self._facts = self._facts, ModelFacts()
        return facts

    def _begun(self) -> subprocess.Popen[bytes]:
        """Return the process that is to read a file before the deadline; start one if none runs."""
        with self._lock:
            self._is_reading, self._deadline = True, time.monotonic() + self.seconds
            if self._process is None or self._process.poll() is not None:
                self.close()
                self._process = started(self.command)
                Thread(target=self._watch, args=[self._process], daemon=True).start()
            return self._process

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """End the process at its deadline. This thread polls: waking it for each file costs more."""
        while self._process is process:
            with self._lock:
                if self._process is process and self._deadline <= time.monotonic():
                    if self._is_reading:  # the thread that reads closes it
                        process.kill()
                    else:  # in a worker's thread, which nobody may tell that there are no more files
                        self.close()
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a child; what it writes to standard error is discarded."""
    surroundings = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),  # the child imports from where its parent does
        "OPENBLAS_NUM_THREADS": "1",  # NumPy reserves memory for each thread
    }
    return subprocess.Popen(  # noqa: S603  # the command does not come from a file
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=surroundings
    )


def _read(process: subprocess.Popen[bytes], order: Order, parts: list[ReadPart]) -> ModelFacts | str:
    """Add what the child answers; return its end, or why it is incomplete and the child useless."""
    orders, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    left, tiles = MAX_ANSWER_BYTES, set[str]()
    with suppress(OSError):  # it has ended
        orders.write(order.line())
        orders.flush()
        while (line := answers.readline(left + 1)).endswith(b"\n") or len(line) > left:
            left -= len(line)
            if left < 0:
                return f"has more nodes than {MAX_ANSWER_BYTES} bytes can name"
            try:
                part = read_answer(line)
                if isinstance(part, ModelFacts):
                    return part
                if isinstance(part, PlacedModel):
                    if parts or not order.places_nodes or len(part.placed) != len(order.deployments):
                        raise ValueError("these placements were not asked for")
                    tiles = {node.pointer for node in part.nodes if node.operator == "Tile"}
                elif isinstance(part, TileNode | DescribedNode) and order.describes != isinstance(part, DescribedNode):
                    raise ValueError("these parts were not asked for")
                elif isinstance(part, TileNode) and order.places_nodes and part.place not in tiles:
                    raise ValueError("the Tile is none of the model's nodes")
            except ValueError:
                return f"{order.reader}'s reader sent a malformed reply"
            parts.append(part)
    status = process.wait()
    if status == OUT_OF_MEMORY:
        return f"reading ran out of its {order.memory / 2**30:.3g} GiB of memory"
    return f"{order.reader}'s reader crashed ({_NAMES_OF_STATUS.get(status, f'status {status:#x}')})"
