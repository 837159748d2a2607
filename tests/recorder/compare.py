"""The emulator beside the real DirectML, descriptor by descriptor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dml_tile import Device
from dml_tile.checking import check
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.targets import Target
from tests.helpers.recorded_answers import CRASH, OVER_READS, S_OK
from tests.helpers.recorded_answers import answer as emulated_answer
from tests.recorder.draws import long_enough
from tests.recorder.releases import Release
from tests.recorder.runtime import Adapter, Answer, ask_runtime

TRIES: Final = 3
"""How often DirectML is asked again about a descriptor on which it disagrees with the emulator."""

Ask = Callable[[Sequence[TileOperatorDesc], Release, Adapter], Iterator[Answer]]


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

    def __str__(self) -> str:
        said = "; asked again: ".join(map(str, dict.fromkeys([self.real, *self.again])))
        desc = self.desc.model_dump_json(by_alias=True)
        return f"{self.release.level}, {self.adapter}:\n  DirectML: {said}\n  emulator: {self.emulated}\n  {desc}"


def disagreements(
    descs: Sequence[TileOperatorDesc], adapter: Adapter, releases: Sequence[Release]
) -> list[Disagreement]:
    """Return where a release and the emulator disagree on descriptors."""
    return [
        Disagreement(desc, release, adapter, real, emulated)
        for release in releases
        for desc, real in zip(descs, ask_runtime(descs, release, adapter), strict=True)
        if (emulated := why_not(desc, adapter.target(release), real)) is not None
    ]


def asked_again(found: Disagreement, ask: Ask = ask_runtime) -> Disagreement:
    """The disagreement with what DirectML says now, in several processes."""
    again = [answer for _ in range(TRIES) for answer in ask([found.desc], found.release, found.adapter)]
    return replace(found, again=tuple(again))


def why_not(desc: TileOperatorDesc, target: Target, real: Answer) -> str | None:
    """What the emulator says, if that is not what DirectML answered; else None."""
    findings = check(desc, target, against="runtime")
    if any(finding.rule in OVER_READS for finding in findings):
        # whether DirectML refuses the entries that there are, or reads on, depends on the order of its checks
        answer = emulated_answer(check(completed(desc), target, against="runtime"))
        agrees = real.hresult == CRASH or real.hresult == answer != S_OK
        return None if agrees else f"an array is read past its end; {answer} if ones were there"
    expected = emulated_answer(findings)
    if real.hresult != expected:
        return expected
    if real.persistent_resource_size is not None:
        size = emulated_persistent_resource_size(desc, target)
        if size != real.persistent_resource_size:
            return f"{expected}, with a PersistentResourceSize of {size}"
    return None


def completed(desc: TileOperatorDesc) -> TileOperatorDesc:
    """The descriptor with ones behind the entries of each array that is shorter than its count."""
    tile = desc.model_dump(mode="json", by_alias=True)
    tensors = [tensor["Desc"] for tensor in (tile["InputTensor"], tile["OutputTensor"]) if tensor and tensor["Desc"]]
    arrays = [(tensor, array, "DimensionCount") for tensor in tensors for array in ("Sizes", "Strides")]
    for holder, array, count in ((tile, "Repeats", "RepeatsCount"), *arrays):
        if holder[array] is not None:
            holder[array] = long_enough(holder[array], holder[count])
    return TileOperatorDesc.model_validate(tile)


def emulated_persistent_resource_size(desc: TileOperatorDesc, target: Target) -> int:
    """What the emulated operator needs, in bytes."""
    device = Device(target, against="runtime")
    return device.compile_operator(device.create_operator(desc)).get_binding_properties().persistent_resource_size
