"""Runs a DxDispatch model: checks its tiles, allocates and binds its resources, then runs its commands in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dml_tile.bindings.memory import Bytes
from dml_tile.bindings.slots import INITIALIZER_INPUT, TENSOR, BindingStage, BindPoint, BoundRange, Slot
from dml_tile.descriptors.tile import TileOperatorDesc, described
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.dxdispatch.model import (
    IMAGE_SUFFIXES,
    BindingSource,
    BoundSources,
    DispatchCommand,
    Model,
    OtherDispatchable,
    PrintCommand,
    TileDispatchable,
    WriteFileCommand,
    resource_counts,
)
from dml_tile.dxdispatch.resources import Contents, allocate, require_memory
from dml_tile.dxdispatch.rules import INITIALIZED
from dml_tile.errors import DmlError, InputError, Problem, RefusedModelError
from dml_tile.execution.executor import compile_tile
from dml_tile.execution.mover import BoundTile
from dml_tile.files.paths import AllowedFolders
from dml_tile.files.whole import replacement
from dml_tile.findings import Against, Finding, Severity, found_by
from dml_tile.input_errors import unreadable
from dml_tile.rules.binding import BIND_POINT_RULES, RANGE_RULES
from dml_tile.rules.check import check, not_a_tile
from dml_tile.simulation.target import resolve
from dml_tile.text import json_pointer, printable

_MAX_NPY_DIMENSIONS: Final = 32
"""NumPy's limit, of its older versions too."""

MAX_WRITTEN_BYTES: Final = 2**30
"""The most bytes that the files of one run may take, with the folders that hold them."""

MAX_PRINTED_BYTES: Final = 2**26
"""The most bytes that one run prints."""

_BLOCK: Final = 2**12
"""The bytes that a small file, or a folder, takes on a disk."""


_VALUES_AT_ONCE: Final = 4096
"""The values of each part of a text."""


def run_model(
    model: Model,
    folders: AllowedFolders,
    write: Callable[[str], object],
    target: TargetLike | None = None,
    against: Against = "both",
    dispatch: Callable[[str, BoundTile], object] = lambda name, tile: tile.run(),
    *,
    found: Mapping[str, tuple[Finding, ...]] = MappingProxyType({}),
    as_dxdispatch: bool = False,
) -> None:
    """Run a model; what its commands print goes to ``write``, line by line or in parts of long lines.

    ``dispatch`` runs a tile, which it is given with its dispatchable's name. ``found`` are the findings on the model's
    parts (``model_findings``), of which an error keeps it from running. ``as_dxdispatch`` prints exactly what
    DxDispatch prints.

    Nothing is printed or written before all tiles, resources, bindings and paths are known to be good. Raises
    RefusedModelError with the findings of its tiles and bindings, InputError for values, names and paths that cannot be
    used, and for more than may be written (before the run) or printed (after it), OSError, which ends the run.
    """
    target = resolve(target)
    _require_tiles(model, target, against, found)
    if empty := [pointer for pointer, count in resource_counts(model) if count == 0]:  # empty lists can be read
        raise InputError([Problem(pointer, "no resource is bound; a tensor takes one") for pointer in empty])
    memory = allocate(model.resources, folders)
    bound = _BoundTiles(model, memory, target, against)
    bounds = RunBounds(write)
    steps = [
        _prepared(i, command, bound, memory, folders, bounds, dispatch, as_dxdispatch=as_dxdispatch)
        for i, command in enumerate(model.commands)
    ]
    if bound.results:
        raise RefusedModelError(bound.results)
    for step in steps:
        step()
    bounds.require_all_printed()


def _require_tiles(model: Model, target: Target, against: Against, found: Mapping[str, tuple[Finding, ...]]) -> None:
    results = {
        pointer: findings
        for pointer, findings in found.items()
        if any(finding.severity is Severity.ERROR for finding in findings)
    }
    for name, dispatchable in model.dispatchables.items():
        if isinstance(dispatchable, OtherDispatchable):
            findings: tuple[Finding, ...] = (not_a_tile(dispatchable.type),)
        else:
            findings = check(dispatchable.operator, target, against)
        if findings:
            pointer = json_pointer(["dispatchables", name])
            results[pointer] = results.get(pointer, ()) + findings
    if results:
        raise RefusedModelError(results)


class _BoundTiles:
    """The model's tiles with their resources; ``results`` collects the findings of the bindings."""

    def __init__(self, model: Model, memory: Mapping[str, Contents], target: Target, against: Against) -> None:
        self.results: dict[str, tuple[Finding, ...]] = {}
        self._memory = memory
        self._target = target
        self._tiles: dict[str, TileOperatorDesc] = {}
        self._compiled = cache(lambda name: compile_tile(self._tiles[name], target, against))
        owned: dict[str, Bytes] = {}
        for name, dispatchable in model.dispatchables.items():
            if isinstance(dispatchable, TileDispatchable) and dispatchable.desc is not None:
                self._tiles[name] = tile = dispatchable.desc
                # checked before the first command, and never again; other bindings are ignored
                bound = {point: dispatchable.bindings[point] for point in INITIALIZED if point in dispatchable.bindings}
                if findings := tuple(self._findings(tile, "initialisation", bound)):
                    self.results[json_pointer(["dispatchables", name])] = findings
                elif bound:
                    owned[name] = self._range(bound["InputTensor"])[: described(tile)[0].total_tensor_size_in_bytes]
        needed = sum(resource.bytes.nbytes for resource in memory.values())
        require_memory(needed + sum(each.nbytes for each in owned.values()), "/dispatchables")
        self._persistent = {name: each.copy() for name, each in owned.items()}

    def dispatch(self, command: DispatchCommand, pointer: str) -> Callable[[], BoundTile] | None:
        """Return a function that binds the tile of a command when it is to run; None if its bindings break a rule."""
        tile = self._tiles[command.dispatchable]
        if json_pointer(["dispatchables", command.dispatchable]) in self.results:
            return None  # it was never initialised
        findings = tuple(self._findings(tile, "execution", command.bindings))
        if not findings:
            source = self._persistent.get(command.dispatchable)
            if source is None:
                source = self._range(command.bindings["InputTensor"])
            try:
                bind = partial(
                    self._compiled(command.dispatchable).bind, source, self._range(command.bindings["OutputTensor"])
                )
                bind()  # for its findings; what it takes would add up over all commands
            except DmlError as error:
                findings = error.findings
            else:
                return bind
        self.results[pointer] = findings
        return None

    def _findings(self, tile: TileOperatorDesc, stage: BindingStage, bindings: BoundSources) -> Iterator[Finding]:
        for name, buffer in zip(("InputTensor", "OutputTensor"), described(tile), strict=True):
            slot = Slot.tensor(name, buffer, TENSOR if stage == "execution" else INITIALIZER_INPUT)
            yield from found_by(BIND_POINT_RULES, BindPoint(slot, name in bindings), self._target)
            if slot.size_in_bytes and name in bindings:
                (source,) = bindings[name]
                offset = self._offset(source)
                binding = BoundRange(slot, self._memory[source.name].bytes.nbytes - offset, offset)
                yield from found_by(RANGE_RULES, binding, self._target)

    def _range(self, sources: Sequence[BindingSource]) -> Bytes:
        (source,) = sources
        return self._memory[source.name].bytes[self._offset(source) :]

    def _offset(self, source: BindingSource) -> int:
        dtype = DTYPES.get(self._memory[source.name].data_type)
        return source.element_offset * (source.element_size_in_bytes or (dtype.itemsize if dtype else 0))


class RunBounds:
    """Counts what a run writes and prints. Text goes to ``write`` as long as there is room for it."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._left_to_print = MAX_PRINTED_BYTES
        self._left_to_write = MAX_WRITTEN_BYTES
        self._unprinted_values = 0
        self._cut_at = ""

    def reserve(self, target_path: str, nbytes: int, pointer: str) -> None:
        """Count a file before the run. Raises InputError, with ``pointer``, once the files take too many bytes."""
        folders = len(PurePath(target_path).parts) - 1
        self._left_to_write -= max(nbytes, _BLOCK) + folders * _BLOCK
        if self._left_to_write < 0:
            raise unreadable(
                pointer,
                f"the model would write more than {MAX_WRITTEN_BYTES} bytes; each file and folder counts as {_BLOCK} "
                "at least",
            )

    def print(self, parts: Iterable[tuple[str, int]], pointer: str = "") -> None:
        """Print a text's parts, each with the number of values from there on, up to one that there is no room for."""
        for text, values in parts:
            self._left_to_print -= len(text.encode("utf-8", "surrogateescape"))
            if self._left_to_print < 0:
                self._unprinted_values += values
                self._cut_at = self._cut_at or pointer
                return
            self._write(text)

    def require_all_printed(self) -> None:
        """Raise InputError if something was not printed, with the number of values."""
        if self._left_to_print < 0:
            raise unreadable(
                self._cut_at,
                f"the model prints more than {MAX_PRINTED_BYTES} bytes; {self._unprinted_values} values were left out",
            )


def _prepared(
    i: int,
    command: DispatchCommand | PrintCommand | WriteFileCommand,
    bound: _BoundTiles,
    memory: Mapping[str, Contents],
    folders: AllowedFolders,
    bounds: RunBounds,
    dispatch: Callable[[str, BoundTile], object],
    *,
    as_dxdispatch: bool,
) -> Callable[[], object]:
    """Refuse what can be refused before the run, and return the function that runs the command."""
    pointer = json_pointer(["commands", i])
    match command:
        case DispatchCommand():
            bind = bound.dispatch(command, pointer)
            return (lambda: dispatch(command.dispatchable, bind())) if bind else lambda: None
        case PrintCommand():
            shown = memory[command.resource]
            _elements(shown, f"{pointer}/resource", shown.shown_bytes)
            return lambda: bounds.print(_printed_parts(command, shown, as_dxdispatch=as_dxdispatch), pointer)
        case WriteFileCommand():
            return _prepared_file(command, pointer, memory[command.resource], folders, bounds)


def _elements(memory: Contents, pointer: str, size_in_bytes: int) -> NDArray[Any]:
    dtype = DTYPES.get(memory.data_type)
    if dtype is None:
        raise unreadable(pointer, "the resource mixes types, so it has no elements to print or to save")
    return memory.bytes[: size_in_bytes // dtype.itemsize * dtype.itemsize].view(dtype)


def _printed_parts(command: PrintCommand, memory: Contents, *, as_dxdispatch: bool) -> Iterator[tuple[str, int]]:
    """Yield the parts of ``Resource 'Out': 1, 2, 3``, each with the number of values from there on."""
    left = memory.shown_bytes // DTYPES[memory.data_type].itemsize
    yield f"Resource '{printable(command.resource)}':{chr(10) if command.verbose else ' '}", left
    shown = memory.bytes[: memory.shown_bytes]
    for part in printed(memory.data_type, shown, verbose=command.verbose, as_dxdispatch=as_dxdispatch):
        if as_dxdispatch and "\0" in part:  # where C's text ends
            yield part.partition("\0")[0], left
            break
        yield part, left
        left -= _VALUES_AT_ONCE
    if as_dxdispatch or not command.verbose:
        yield "\n", 0


def printed(data_type: int, data: Bytes, *, verbose: bool = False, as_dxdispatch: bool = False) -> Iterator[str]:
    """Yield the elements as text, in parts: ``1, 2, 3``, or if ``verbose``, lines such as ``[0] 1 (0x3F800000)``.

    Floats have six digits, as C++ streams print them. ``as_dxdispatch`` gives what DxDispatch writes, which differs for
    integers of 8 bits, which become characters (from 128 on the lone surrogates of ``surrogateescape``, as they are
    bytes), and for the leading zeros of hexadecimal numbers, which become blanks.
    """
    dtype = DTYPES[data_type]
    values = data[: len(data) // dtype.itemsize * dtype.itemsize].view(dtype)
    spell = _spelling(dtype, as_dxdispatch=as_dxdispatch)
    for start in range(0, len(values), _VALUES_AT_ONCE):
        part = values[start : start + _VALUES_AT_ONCE]
        texts = map(spell, part.tolist())
        if verbose:
            yield "".join(_lines(texts, part, start, len(str(len(values))), as_dxdispatch=as_dxdispatch))
        else:
            yield (", " if start else "") + ", ".join(texts)


def _spelling(dtype: np.dtype[Any], *, as_dxdispatch: bool) -> Callable[[Any], str]:
    if dtype.kind == "f":
        return _float
    if dtype.itemsize == 1 and as_dxdispatch:
        return lambda value: bytes([value % 256]).decode(errors="surrogateescape")
    return str


def _float(value: float) -> str:
    return "-nan" if value != value and np.signbit(value) else f"{value:g}"


def _lines(texts: Iterator[str], values: NDArray[Any], start: int, width: int, *, as_dxdispatch: bool) -> Iterator[str]:
    digits = 2 * values.itemsize
    bits = values.view(f"u{values.itemsize}").tolist()
    spell = "{:{}X}" if as_dxdispatch else "{:0{}X}"
    for index, (text, number) in enumerate(zip(texts, bits, strict=True), start):
        yield f"[{index:{width}}] {text} (0x{spell.format(number, digits)})\n"


def _prepared_file(
    command: WriteFileCommand, pointer: str, memory: Contents, folders: AllowedFolders, bounds: RunBounds
) -> Callable[[], object]:
    path = folders.writable(command.target_path, f"{pointer}/targetPath")
    suffix = path.suffix.lower()
    contents: NDArray[Any] = memory.bytes
    if suffix in IMAGE_SUFFIXES:
        raise unreadable(
            f"{pointer}/targetPath", f"{command.target_path!r} is an image; only .npy and raw bytes are written"
        )
    if suffix == ".npy":
        contents = _elements(memory, f"{pointer}/resource", memory.bytes.nbytes)
        if command.dimensions:
            if len(command.dimensions) > _MAX_NPY_DIMENSIONS:
                raise unreadable(f"{pointer}/dimensions", f"at most {_MAX_NPY_DIMENSIONS} were expected")
            count = math.prod(command.dimensions)
            if count > len(contents):
                raise unreadable(
                    f"{pointer}/dimensions", f"{count} elements are promised, but the resource has {len(contents)}"
                )
            contents = contents[:count].reshape(command.dimensions)
    bounds.reserve(command.target_path, contents.nbytes, f"{pointer}/resource")

    def write_file() -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacement(path) as file:
                if suffix == ".npy":
                    np.save(file, contents, allow_pickle=False)
                else:
                    file.write(contents.data)
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None
        done = f"Resource '{printable(command.resource)}' written to '{printable(command.target_path)}'\n"
        bounds.print([(done, 0)], pointer)

    return write_file
