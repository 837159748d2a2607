"""The emulator beside the real DirectML, descriptor by descriptor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dml_tile.descriptors import OperatorDesc, TileOperatorDesc
from dml_tile.device import Device
from dml_tile.enums import DML_TENSOR_DIMENSION_COUNT_MAX1
from dml_tile.rules.check import check
from dml_tile.targets import Target
from tests.helpers.recorded_answers import answer as emulated_answer
from tests.recorder.releases import Release
from tests.recorder.runtime import ADAPTERS, Adapter, Answer, creation
from tests.recorder.workers import Crash, ask_each

BATCH: Final = 4000
OVER_READS: Final = ("DML-BUFFER-array-length", "DML-TILE-Repeats-length")
"""The rules of arrays that are shorter than their counts: DirectML reads on, and crashes where memory ends."""

CRASH: Final = "CRASH:SIGSEGV"
S_OK: Final = "0x00000000"

Descriptor = TileOperatorDesc | OperatorDesc
Ask = Callable[[Sequence[TileOperatorDesc], Release, Adapter], Iterator[Answer]]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A descriptor to which DirectML and the emulator say different things."""

    desc: TileOperatorDesc
    release: Release
    adapter: Adapter
    real: Answer
    emulated: str


def ask_runtime(descs: Sequence[Descriptor], release: Release, adapter: Adapter) -> Iterator[Answer]:
    """What a release answers to each descriptor, in workers."""
    for answer in ask_each(descs, creation(release, adapter)):
        yield Answer(f"CRASH:{answer.signal}") if isinstance(answer, Crash) else Answer(*answer)


def disagreements(
    descs: Iterable[TileOperatorDesc], releases: Sequence[Release], ask: Ask = ask_runtime
) -> Iterator[tuple[str, Disagreement | None]]:
    """Each descriptor's release, by level, and what it comes to there: None where both sides agree.

    Each batch has another adapter.
    """
    adapters = itertools.cycle(ADAPTERS)
    descs = iter(descs)
    while batch := list(itertools.islice(descs, BATCH)):
        adapter = next(adapters)
        for release in releases:
            target = adapter.target(release)
            for desc, real in zip(batch, ask(batch, release, adapter), strict=True):
                emulated = why_not(desc, target, real)
                found = None if emulated is None else Disagreement(desc, release, adapter, real, emulated)
                yield release.level, found


def why_not(desc: TileOperatorDesc, target: Target, real: Answer) -> str | None:
    """What the emulator says, if that is not what DirectML answered; else None."""
    findings = check(desc, target, against="runtime")
    if any(finding.rule in OVER_READS for finding in findings):
        # whether DirectML refuses the entries that there are, or reads on, depends on the order of its checks
        completed = emulated_answer(check(long_enough(desc), target, against="runtime"))
        agrees = real.hresult == CRASH or real.hresult == completed != S_OK
        return None if agrees else f"an array is read past its end; {completed} if ones were there"
    expected = emulated_answer(findings)
    if real.hresult != expected:
        return expected
    if real.persistent_resource_size is not None:
        size = emulated_persistent_resource_size(desc, target)
        if size != real.persistent_resource_size:
            return f"{expected}, with a PersistentResourceSize of {size}"
    return None


def long_enough(desc: TileOperatorDesc) -> TileOperatorDesc:
    """The descriptor with ones behind the entries of each array that is shorter than its count."""
    tile = desc.model_dump(mode="json", by_alias=True)
    _extend(tile, "Repeats", tile["RepeatsCount"])
    for tensor in (tile["InputTensor"], tile["OutputTensor"]):
        for array in ("Sizes", "Strides") if tensor and tensor["Desc"] else ():
            _extend(tensor["Desc"], array, tensor["Desc"]["DimensionCount"])
    return TileOperatorDesc.model_validate(tile)


def _extend(holder: dict[str, Any], array: str, count: int) -> None:
    if holder[array] is not None and count <= DML_TENSOR_DIMENSION_COUNT_MAX1:
        holder[array] += [1] * (count - len(holder[array]))


def emulated_persistent_resource_size(desc: TileOperatorDesc, target: Target) -> int:
    """What the emulated operator needs, in bytes."""
    device = Device(target, against="runtime")
    return device.compile_operator(device.create_operator(desc)).get_binding_properties().persistent_resource_size
