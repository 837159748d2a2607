"""The emulator beside the real DirectML, descriptor by descriptor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from dml_tile import Device
from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1
from dml_tile.directml.targets import Target
from tests.helpers.recorded_answers import CRASH, OVER_READS, S_OK
from tests.helpers.recorded_answers import answer as emulated_answer
from tests.recorder.releases import Release
from tests.recorder.runtime import ADAPTERS, Adapter, Answer, creation
from tests.recorder.shrink import shrunk
from tests.recorder.workers import Crash, ask_each

BATCH: Final = 4000
TRIES: Final = 3
"""How often DirectML is asked again about a descriptor on which it disagrees with the emulator."""

Descriptor = TileOperatorDesc | OperatorDesc
Ask = Callable[[Sequence[TileOperatorDesc], Release, Adapter], Iterator[Answer]]


class Batch(NamedTuple):
    """So many random descriptors, to be drawn with a seed of their own."""

    size: int
    seed: str
    adapter: Adapter


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A descriptor to which DirectML and the emulator say different things."""

    desc: TileOperatorDesc
    release: Release
    adapter: Adapter
    real: Answer
    emulated: str
    again: tuple[Answer, ...] = ()
    """What DirectML said when it was asked again."""

    @property
    def target(self) -> Target:
        """What the emulator simulates here."""
        return self.adapter.target(self.release)

    def __str__(self) -> str:
        answers = f"{self.real}"
        if set(self.again) - {self.real}:
            answers += f"; asked again: {'; '.join(map(str, self.again))}"
        desc = self.desc.model_dump_json(by_alias=True)
        return f"{self.release.level}, {self.adapter}:\n  DirectML: {answers}\n  emulator: {self.emulated}\n  {desc}"


def ask_runtime(descs: Sequence[Descriptor], release: Release, adapter: Adapter) -> Iterator[Answer]:
    """What a release answers to each descriptor, in workers."""
    for answer in ask_each(descs, creation(release, adapter)):
        yield Answer(f"CRASH:{answer.signal}") if isinstance(answer, Crash) else Answer(*answer)


def batches(count: int, seed: int) -> list[Batch]:
    """Split ``count`` descriptors into batches, each with another adapter than the last."""
    return [
        Batch(min(BATCH, count - start), f"{seed} from {start}", ADAPTERS[start // BATCH % len(ADAPTERS)])
        for start in range(0, count, BATCH)
    ]


def disagreements(
    descs: Sequence[TileOperatorDesc], adapter: Adapter, releases: Sequence[Release], ask: Ask = ask_runtime
) -> list[Disagreement]:
    """Return where a release and the emulator disagree on descriptors."""
    return [
        Disagreement(desc, release, adapter, real, emulated)
        for release in releases
        for desc, real in zip(descs, ask(descs, release, adapter), strict=True)
        if (emulated := why_not(desc, adapter.target(release), real)) is not None
    ]


def smallest(found: Disagreement, ask: Ask = ask_runtime) -> Disagreement:
    """The same disagreement about a descriptor that is as plain as can be.

    It is about the same descriptor where DirectML, asked again, does not disagree each time, or no plainer one does.
    """

    def answers(descs: Sequence[TileOperatorDesc]) -> Iterator[tuple[Answer, ...]]:
        return zip(*[list(ask(descs, found.release, found.adapter)) for _ in range(TRIES)], strict=True)

    def disagree(descs: Sequence[TileOperatorDesc]) -> list[bool]:
        return [_always_disagree(desc, found.target, given) for desc, given in zip(descs, answers(descs), strict=True)]

    (again,) = answers([found.desc])
    found = replace(found, again=again)
    if not _always_disagree(found.desc, found.target, again):
        return found
    desc = shrunk(found.desc, disagree)
    (given,) = answers([desc])  # alone it may meet another answer than among the other candidates
    emulated = why_not(desc, found.target, given[0])
    if emulated is None or not _always_disagree(desc, found.target, given):
        return found
    return replace(found, desc=desc, real=given[0], emulated=emulated, again=given[1:])


def _always_disagree(desc: TileOperatorDesc, target: Target, given: Sequence[Answer]) -> bool:
    return all(why_not(desc, target, real) is not None for real in given)


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
