"""The summary of a file that was checked, its suppressions of findings by per-file-ignores, and the notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dml_tile.checks.files import Exclusion
from dml_tile.checks.result import Result, lowest_level_at_all
from dml_tile.checks.selection import beginnings
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.findings import (
    OTHER_RUNTIME,
    UNUSED_BASELINE_ENTRY,
    UNUSED_IGNORE,
    UNUSED_VIA,
    Found,
    Severity,
    own_finding,
)
from dml_tile.readers.model_names import ModelNames
from dml_tile.text import plural

if TYPE_CHECKING:  # most checks need none
    from dml_tile.back_ends import BackEnd
    from dml_tile.checks.placements import ModelNodes


class Suppression(NamedTuple):
    """A rule, or the first words of several, that a pattern, by its number, suppresses."""

    rule: str
    pattern: int


class FileIgnores:
    """Patterns of files, and the rules whose findings do not count in matching files."""

    def __init__(self, files: Exclusion | None = None, rules: Sequence[Sequence[str]] = ()) -> None:
        self.files = files or Exclusion()
        self.rules = tuple(map(tuple, map(dict.fromkeys, rules)))
        self.by_rule: dict[str, list[int]] = {}
        """The numbers of the patterns that ignore each rule, or the first words of several."""
        for number, each in enumerate(self.rules):
            for rule in each:
                self.by_rule.setdefault(rule, []).append(number)


class Suppressions:
    """The suppressions of one file by the ``patterns`` that match it. ``met`` suppressed something."""

    def __init__(self, patterns: frozenset[int], by_rule: dict[str, list[int]]) -> None:
        self.patterns = patterns
        self.met: set[Suppression] = set()
        self._by_rule = by_rule
        self._known: dict[str, bool] = {}

    def suppress(self, rule_id: str) -> bool:
        """Return True if a pattern suppresses findings of a rule, and remember which."""
        if rule_id not in self._known:
            met = {
                Suppression(rule, pattern)
                for rule in beginnings(rule_id)
                for pattern in self._by_rule.get(rule, ())
                if pattern in self.patterns
            }
            self.met |= met
            self._known[rule_id] = bool(met)
        return self._known[rule_id]


def file_ignore_notices(
    file: str, ignores: FileIgnores, met: set[Suppression], patterns: frozenset[int], *, is_whole: bool
) -> Iterator[Found]:
    """Yield notices of per-file-ignores in a settings file that match a file and suppress nothing.

    ``met`` suppressed something. If the whole project was checked (``is_whole``), all patterns count.
    """
    for number, (pattern, rules) in enumerate(zip(ignores.files.patterns.lines, ignores.rules, strict=True)):
        for rule in rules:
            if Suppression(rule, number) not in met and (is_whole or number in patterns):
                message = f"per-file-ignores: {pattern!r}: {rule} silences nothing"
                yield file, own_finding(UNUSED_IGNORE, message)


def baseline_notices(file: str, missing: Iterable[object]) -> Iterator[Found]:
    """Yield a notice of each baseline entry that was not found."""
    return ((file, own_finding(UNUSED_BASELINE_ENTRY, f"no longer occurs: {entry}")) for entry in missing)


def via_notices(via: str, sources: Iterable[SourceSummary]) -> Iterator[Found]:
    """Yield a notice, at the first file of descriptors, that a back end's option says nothing of these."""
    names = [source.name for source in sources if source.operators and not source.is_model]
    if names:
        others = f", as are those of {plural(len(names) - 1, 'more file')}" if len(names) > 1 else ""
        message = f"its descriptors are checked as DirectML gets them{others}; --via {via} is of models"
        yield names[0], own_finding(UNUSED_VIA, message)


def runtime_notices(via: BackEnd, targets: Iterable[Target], sources: Iterable[SourceSummary]) -> Iterator[Found]:
    """Yield a notice, at the first model, of targets where Chromium may pass a graph to ONNX Runtime."""
    from dml_tile.back_ends.chromium import CHROMIUM, may_use_onnx_runtime

    if via.name != CHROMIUM.name:
        return
    names = [target.name for target in targets if may_use_onnx_runtime(target)]
    model = next((source.name for source in sources if source.is_model), None)
    if names and model is not None:
        where = f"at {', '.join(names)}, where Chromium's feature WebNNOnnxRuntime is on"
        message = f"{where}, ONNX Runtime takes the graph, with a provider that is not known here"
        yield model, own_finding(OTHER_RUNTIME, message)


@dataclass(slots=True)
class SourceSummary:
    """The operators of one file; ``lowest_level`` is the lowest level at which all pass, None if there is none.

    ``unknown`` tiles are known in part only before they are run, ``failing`` tiles fail at a target; ``is_whole`` is
    False if a part of the file could not be read, ``is_empty`` True for JSON without a descriptor and a model without a
    Tile. ``names`` are the names by which a model's sizes may be given, ``patterns`` the numbers of the patterns that
    ignore rules in the file, ``met`` the suppressions that have a finding.
    """

    name: str
    is_model: bool
    operators: int = 0
    unknown: int = 0
    failing: int = 0
    lowest_level: FeatureLevel | None = FeatureLevel.DML_FEATURE_LEVEL_1_0
    is_whole: bool = True
    is_empty: bool = False
    names: ModelNames = field(default=ModelNames(), compare=False)
    patterns: frozenset[int] = frozenset()
    met: set[Suppression] = field(default_factory=set)
    nodes: ModelNodes | None = None
    """The placements of a model's nodes, if ONNX Runtime placed them."""

    @property
    def is_checked(self) -> bool:
        """True if operators of the file were checked, or a model's nodes placed."""
        return bool(self.operators or (self.nodes and self.nodes.placed.nodes))

    def place(self, nodes: ModelNodes) -> None:
        """Take the placements of a model's nodes: no level is lower than that of a device."""
        from dml_tile.back_ends.onnxruntime import ORT

        self.nodes = nodes
        self.lowest_level = max(ORT.release_at(target).minimum_level for target in nodes.targets)

    def add(self, results: Sequence[Result], fail_on: Severity | None) -> None:
        """Count an operator by its results, one for each target."""
        first = results[0]
        if not first.is_checked:
            return
        self.operators += 1
        self.unknown += bool(first.item.unknown)
        self.failing += not all(result.passes(fail_on) for result in results)
        if self.lowest_level is not None:
            lowest = lowest_level_at_all(results)
            self.lowest_level = lowest and max(self.lowest_level, lowest)
