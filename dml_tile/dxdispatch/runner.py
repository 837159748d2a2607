"""Runs a DxDispatch model: checks its operators, allocates and binds its resources, then runs its commands in order."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import PurePath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dml_tile.bindings.memory import Bytes
from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc, tile_of
from dml_tile.descriptors.tile import BufferTensorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.operators import operators
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.directml.values import how_true
from dml_tile.dxdispatch.bindings import binding_findings, binding_problems
from dml_tile.dxdispatch.model import (
    IMAGE_SUFFIXES,
    Command,
    DispatchCommand,
    Model,
    OtherDispatchable,
    PrintCommand,
    TileDispatchable,
    WriteFileCommand,
    read_model,
    read_operator,
    resource_counts,
)
from dml_tile.dxdispatch.printing import printed_parts
from dml_tile.dxdispatch.resources import Contents, allocate, require_memory
from dml_tile.dxdispatch.rules import (
    Extent,
    ModelPart,
    bindings_begin_within_resources,
    device_can_be_made,
    model_findings,
    model_parts,
)
from dml_tile.errors import DmlError, InputError, RefusedModelError, input_error
from dml_tile.execution.evaluation import ExecutableOperator, TensorArgument, executable
from dml_tile.execution.executor import compile_tile
from dml_tile.files.paths import AllowedFolders
from dml_tile.files.whole import replacement
from dml_tile.findings import Against, Finding, Severity, unreadable
from dml_tile.input_errors import ProblemList
from dml_tile.json_text import Document
from dml_tile.rules.descriptor import not_executed
from dml_tile.rules.execution import execution_findings
from dml_tile.rules.tile_findings import blocks_creation
from dml_tile.simulation.target import resolve
from dml_tile.text import json_pointer, printable

_MAX_NPY_DIMENSIONS: Final = 32
"""NumPy's limit, of its older versions too."""

MAX_WRITTEN_BYTES: Final = 2**30
"""The most bytes that the files of one run may take, with the folders that hold them."""

MAX_PRINTED_BYTES: Final = 2**26
"""The most bytes that one run prints."""

MAX_MOVED_BYTES: Final = 2**36
"""The most bytes that the dispatches of one run write, together."""

_BLOCK: Final = 2**12
"""The bytes that a small file, or a folder, takes on a disk."""


def run_model(
    document: Document,
    folders: AllowedFolders,
    write: Callable[[str], object],
    target: TargetLike | None = None,
    against: Against = "both",
    *,
    as_dxdispatch: bool = False,
    in_rows: bool = False,
) -> tuple[dict[str, tuple[Finding, ...]], str]:
    """Run a model; what its commands print goes to ``write``, line by line or in parts of long lines.

    ``as_dxdispatch`` prints exactly what DxDispatch prints. ``in_rows`` prints a resource in rows of its tensor's last
    dimension.

    Returns the notes on the model's parts by their JSON pointers, and the labels of its operators' values, empty if all
    equal DirectML's in every recorded byte.

    Nothing is printed or written before all operators, resources, bindings and paths are known to be good. Raises
    RefusedModelError with the findings of its parts, operators and bindings, and with those of an index out of range,
    which ends the run; InputError for values, names and paths that cannot be used, and for more than may be moved or
    written (before the run) or printed (after it), OSError, which ends the run.
    """
    target = resolve(target)
    model = read_model(document.value)
    parts = dict(model_parts(document))
    found = model_findings(parts, target)
    described = _operators_of(model, parts, document.value)
    _require_operators(model, described, parts, target, against, found)
    if empty := [pointer for pointer, count in resource_counts(model) if count == 0]:  # empty lists can be read
        raise InputError([unreadable(pointer, "no resource is bound; a tensor takes one") for pointer in empty])
    memory = allocate(model.resources, folders)
    bound = _BoundOperators(described, parts, memory, target, against)
    bounds = RunBounds(write)
    rows = _row_lengths(model, bound.tensors_at) if in_rows and not as_dxdispatch else {}

    def prepared(command: Command, pointer: str) -> Callable[[], object]:
        """Refuse what can be refused before the run, and return the function that runs the command."""
        match command:
            case DispatchCommand():
                return bound.dispatch(command, pointer) or (lambda: None)
            case PrintCommand():
                printed = memory[command.resource]
                shown = _elements(printed, f"{pointer}/resource", printed.shown_bytes)
                parts = partial(printed_parts, command, shown, row=rows.get(command.resource, 0))
                return lambda: bounds.print(parts(as_dxdispatch=as_dxdispatch), pointer)
            case WriteFileCommand():
                return _prepared_file(command, pointer, memory[command.resource], folders, bounds)

    steps = [prepared(command, json_pointer(["commands", i])) for i, command in enumerate(model.commands)]
    if bound.results:
        raise RefusedModelError(bound.results)
    if bound.moved > MAX_MOVED_BYTES:
        message = f"the dispatches would write {bound.moved} bytes together; at most {MAX_MOVED_BYTES} are written"
        raise input_error("/commands", message)
    for step in steps:
        step()
    bounds.require_all_printed()
    return found, how_true(operators()[desc.type].name for desc in described.values())


def _operators_of(model: Model, parts: Mapping[str, ModelPart], data: dict[str, Any]) -> dict[str, OperatorDesc]:
    """Return the operators of a model's dispatchables. Raises InputError if some cannot be read."""
    problems, found = ProblemList(data, sections=("resources", "dispatchables")), dict[str, OperatorDesc]()
    for name, dispatchable in model.dispatchables.items():
        part = parts[_pointer_to(name)]
        if isinstance(dispatchable, TileDispatchable):
            found[name] = dispatchable.operator
        elif (operator := part.operator) is not None:
            try:
                found[name] = read_operator(operator, part)
            except ValidationError as error:
                problems.add_error(error, ("dispatchables", name))
            for count in part.missing_counts():
                problems.add(unreadable(_pointer_to(name), f"{count} is missing; DxDispatch requires it"))
    for pointer, part in parts.items():
        dispatched = part.fields.get("dispatchable") if part.kind == "command" else None
        for problem in binding_problems(part, found.get(dispatched or ""), pointer):
            problems.add(problem)
    if problems.reported():
        raise InputError(problems.reported())
    return found


def _require_operators(
    model: Model,
    described: Mapping[str, OperatorDesc],
    parts: Mapping[str, ModelPart],
    target: Target,
    against: Against,
    found: Mapping[str, tuple[Finding, ...]],
) -> None:
    """Raise RefusedModelError for a model that is not run; ``found`` are the findings of its parts."""
    results = {
        pointer: findings
        for pointer, findings in found.items()
        if any(finding.severity is Severity.ERROR for finding in findings)
    }
    if device := tuple(device_can_be_made.findings(ModelPart("model", None), target)):
        others = (finding for finding in results.get("", ()) if finding.rule != device_can_be_made.id)
        results[""] = (*others, *(replace(finding, severity=Severity.ERROR) for finding in device))
    for name, dispatchable in model.dispatchables.items():
        pointer, desc = _pointer_to(name), described.get(name)
        if desc is None:
            assert isinstance(dispatchable, OtherDispatchable)
            findings: tuple[Finding, ...] = (not_executed(dispatchable.type, parts[pointer].said_of_no_operator),)
        else:
            findings = tuple(filter(blocks_creation, check(desc, target, against))) or execution_findings(desc, target)
        if findings:
            results[pointer] = results.get(pointer, ()) + findings
    if results:
        raise RefusedModelError(results)


class _BoundOperators:
    """The model's operators with their resources; ``results`` collects the findings of the bindings.

    ``moved`` counts the bytes that all dispatches write.
    """

    def __init__(
        self,
        operators: Mapping[str, OperatorDesc],
        parts: Mapping[str, ModelPart],
        memory: Mapping[str, Contents],
        target: Target,
        against: Against,
    ) -> None:
        self.results: dict[str, tuple[Finding, ...]] = {}
        self.moved = 0
        self._operators, self._memory, self._target = operators, memory, target
        extents = {
            name: Extent(each.bytes.nbytes, ELEMENT_SIZES.get(each.data_type, 0)) for name, each in memory.items()
        }
        self._parts = {pointer: replace(part, resources=extents) for pointer, part in parts.items()}
        self._compiled = cache(lambda tile: compile_tile(tile, target, against))
        self._executable = cache(lambda desc: executable("execute", desc, target, against))
        owned: dict[tuple[str, str], Bytes] = {}
        for name, desc in operators.items():
            # checked before the first command, and never again; other bindings are ignored
            part = self._parts[_pointer_to(name)]
            if findings := self._findings(part, name):
                self.results[_pointer_to(name)] = findings
            else:
                bound = self._bound(part, desc)
                owned |= {(name, tensor.path): given[: tensor.size_in_bytes] for tensor, given in bound}
        needed = sum(resource.bytes.nbytes for resource in memory.values())
        require_memory(needed + sum(each.nbytes for each in owned.values()), "/dispatchables")
        self._persistent = {key: each.copy() for key, each in owned.items()}

    def dispatch(self, command: DispatchCommand, pointer: str) -> Callable[[], object] | None:
        """Return a function that runs the operator of a command; None if its bindings break a rule."""
        name, part = command.dispatchable, self._parts[pointer]
        if _pointer_to(name) in self.results:
            return None
        desc, findings = self._operators[name], self._findings(part, name)
        if not findings:
            memory = {tensor.path: given for tensor, given in self._bound(part, desc)}
            memory |= {path: kept for (owner, path), kept in self._persistent.items() if owner == name}
            if tile := tile_of(desc):
                try:
                    bind = partial(self._compiled(tile).bind, memory["InputTensor"], memory["OutputTensor"])
                    # for its findings and size; what it takes would add up over all commands
                    self.moved += bind().size
                except DmlError as error:
                    findings = error.findings
                else:
                    return lambda: bind().run()
            else:
                operator = self._executable(desc)
                findings = tuple(operator.findings_of(memory))
                self.moved += sum(tensor.size_in_bytes for tensor in operator.written)
                if not findings:
                    return partial(_run_operator, operator, memory, pointer)
        self.results[pointer] = findings
        return None

    def tensors_at(self, name: str, point: str) -> Sequence[TensorArgument]:
        """Return the tensors of a dispatchable at a bind point; none at one that is not the operator's."""
        return self._executable(self._operators[name]).tensors(point)

    def _findings(self, part: ModelPart, name: str) -> tuple[Finding, ...]:
        """Return the findings on a part's bindings to an operator, with the sizes of resources known by now."""
        behind = bindings_begin_within_resources.findings(part, self._target)
        return (*behind, *binding_findings(part, self._parts[_pointer_to(name)], self._operators[name]))

    def _bound(self, part: ModelPart, desc: OperatorDesc) -> Iterator[tuple[TensorArgument, Bytes]]:
        """Yield the tensors that a part binds resources to, and the memory from there on."""
        operator = self._executable(desc)
        for point in part.bind_points:
            sources = part.sources(point) or ()  # none of a tensor that DirectML owns
            for tensor, source in zip(operator.tensors(point), sources, strict=False):
                offset, _ = part.place_of(source)
                yield tensor, self._memory[source["name"]].bytes[offset:]


def _run_operator(operator: ExecutableOperator, memory: Mapping[str, Bytes], pointer: str) -> None:
    """Execute an operator. Raises RefusedModelError with what it does not execute, at its command."""
    try:
        operator.run(memory, {tensor.path: [memory[tensor.path]] for tensor in operator.written})
    except DmlError as error:
        raise RefusedModelError({pointer: error.findings}) from None


def _pointer_to(dispatchable: str) -> str:
    return json_pointer(["dispatchables", dispatchable])


class RunBounds:
    """Counts the bytes that a run writes and prints. Text goes to ``write`` as long as there is room for it."""

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
            raise input_error(
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
            raise input_error(
                self._cut_at,
                f"the model prints more than {MAX_PRINTED_BYTES} bytes; {self._unprinted_values} values were left out",
            )


def _row_lengths(model: Model, tensors_at: Callable[[str, str], Sequence[TensorArgument]]) -> dict[str, int]:
    """Return the elements of a row of each resource that dispatches bind from its first element on, in like rows."""
    lengths: defaultdict[str, set[int]] = defaultdict(set)
    for command in model.commands:
        if isinstance(command, DispatchCommand):
            for point, sources in command.bindings.items():
                for source, tensor in zip(sources, tensors_at(command.dispatchable, point), strict=False):
                    lengths[source.name].add(0 if source.element_offset else _row_length(tensor.desc))
    return {name: found.pop() for name, found in lengths.items() if len(found) == 1}


def _row_length(tensor: BufferTensorDesc) -> int:
    """Return the elements of the last dimension, with the padding behind them."""
    size = (tensor.sizes or (0,))[-1]
    *_, pitch, step = (0, 0, *(tensor.strides or ()))
    return pitch if step == 1 and pitch > size else size


def _elements(memory: Contents, pointer: str, size_in_bytes: int) -> NDArray[Any]:
    dtype = DTYPES.get(memory.data_type)
    if dtype is None:
        raise input_error(pointer, "the resource mixes types, so it has no elements to print or to save")
    return memory.bytes[: size_in_bytes // dtype.itemsize * dtype.itemsize].view(dtype)


def _prepared_file(
    command: WriteFileCommand, pointer: str, memory: Contents, folders: AllowedFolders, bounds: RunBounds
) -> Callable[[], object]:
    path = folders.writable(command.target_path, f"{pointer}/targetPath")
    suffix = path.suffix.lower()
    contents: NDArray[Any] = memory.bytes
    if suffix in IMAGE_SUFFIXES:
        message = f"{command.target_path!r} is an image; only .npy and raw bytes are written"
        raise input_error(f"{pointer}/targetPath", message)
    if suffix == ".npy":
        contents = _elements(memory, f"{pointer}/resource", memory.bytes.nbytes)
        if command.dimensions:
            if len(command.dimensions) > _MAX_NPY_DIMENSIONS:
                raise input_error(f"{pointer}/dimensions", f"at most {_MAX_NPY_DIMENSIONS} were expected")
            count = math.prod(command.dimensions)
            if count > len(contents):
                message = f"{count} elements are promised, but the resource has {len(contents)}"
                raise input_error(f"{pointer}/dimensions", message)
            contents = contents[:count].reshape(command.dimensions)
    bounds.reserve(command.target_path, contents.nbytes, f"{pointer}/resource")

    def write_file() -> None:
        try:
            with replacement(path, makes_folders=True) as file:
                if suffix == ".npy":
                    np.save(file, contents, allow_pickle=False)
                else:
                    file.write(contents.data)
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None
        done = f"Resource '{printable(command.resource)}' written to '{printable(command.target_path)}'\n"
        bounds.print([(done, 0)], pointer)

    return write_file
