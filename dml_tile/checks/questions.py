"""Checks one file: the questions, and the events in which the answers come."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import chain, islice
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias

from dml_tile.checks.files import forbidden, unknown_names, unread_through
from dml_tile.checks.judging import judged
from dml_tile.checks.result import NOT_SELECTED, CheckedFile, Result
from dml_tile.checks.selection import FileIgnores, Selection
from dml_tile.checks.verdict import NOT_FOR_DIRECTML, verdict_of
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.errors import InputError, require_instance
from dml_tile.files.paths import STANDARD_INPUT
from dml_tile.findings import CONTRADICTION, Against, Finding, Severity, bases_of, location_of, own_finding, unreadable
from dml_tile.readers.item import Item
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.sources import EMPTY, SourcePart, Sources, StoredFile, is_model_file
from dml_tile.rules.tile import LOWERED_RULES
from dml_tile.simulation.target import resolve
from dml_tile.text import listed

if TYPE_CHECKING:  # most checks need none
    from onnx import ModelProto

    from dml_tile.back_ends import BackEnd
    from dml_tile.back_ends.deployment import Deployment
    from dml_tile.back_ends.placement import PlacedModel, Placement
    from dml_tile.checks.baseline import Baseline
    from dml_tile.checks.captures import Outcome
    from dml_tile.checks.placements import ModelNodes

Event: TypeAlias = "tuple[Result, ...] | ModelNodes | Finding | CheckedFile"
"""The results of a tile, one for each target; the placements of a model's nodes, which come first; a finding about the
file; or, at its end, the file."""


class Questions(NamedTuple):
    """The questions asked of each file, and the findings that count. It pickles.

    Findings count if the ``selection`` takes them, none of ``file_ignores`` suppresses them, and the ``baseline`` does
    not have them; ``fail_on`` is the least severity that fails a tile. With ``is_strict``, a file
    without descriptors is a problem. ``max_cpu_nodes`` of a model may be on the CPU; None: any number, and each is a
    note. ``locates_all`` gives all results a position. ``stdin_name`` is the file whose text standard input holds;
    ``-`` is none.
    """

    targets: Sequence[Target]
    against: Against
    known_shapes: KnownShapes = KnownShapes()
    via: BackEnd | None = None
    selection: Selection = Selection()
    baseline: Baseline | None = None
    fail_on: Severity | None = Severity.WARNING
    file_ignores: FileIgnores = FileIgnores()
    is_strict: bool = False
    max_cpu_nodes: int | None = None
    locates_all: bool = False
    stdin_name: str = STANDARD_INPUT

    @property
    def deployments(self) -> Sequence[Deployment]:
        """The releases of ONNX Runtime that place the nodes of models, a target each."""
        return [*map(self.via.deployed, self.targets)] if self.via and self.via.places_nodes else ()

    def name_of(self, file: str) -> str:
        """Return the name of a file, or of standard input, in results."""
        return self.stdin_name if file == STANDARD_INPUT else str(file)

    def events(self, file: str, sources: Sources) -> Iterator[Event]:
        """Yield the results of a file, the findings about it, then the file; equal messages are one finding."""
        opened, file = file, self.name_of(file)
        parts = sources.parts(opened, file)
        checked = CheckedFile(file, is_model=is_model_file(file), patterns=self.file_ignores.files.matching(file))
        problems: dict[str, list[Finding]] = {}
        equals = Counter[str]()
        first_parts = list(islice(parts, 2))
        first_own = [part for part in first_parts if not (isinstance(part, Item) and part.is_whole_model)]
        outcomes: dict[str, Sequence[Outcome]] = {}
        for part in _merged(chain(first_parts, parts)):
            if isinstance(part, Finding):
                problems.setdefault(part.message, []).append(part)
                continue
            if not isinstance(part, Item):
                yield self._placed(checked, part)
                continue
            targets = checked.nodes.targets_of(part) if checked.nodes else self.targets
            of_part = [*judged(file, part, targets, self.against, self.via, locates_all=self.locates_all)]
            if not of_part:
                continue
            is_open = any(result.findings or result.notes for result in of_part)
            if not part.node and is_open:
                item = replace(of_part[0].item, content=part.numbered(equals))
                of_part = [replace(result, item=item) for result in of_part]
            if is_open:
                of_part = [self._counted(result, checked) for result in of_part]
            if part.capture:
                from dml_tile.checks.captures import completed

                of_part = completed(of_part, outcomes)
            checked.add(of_part, self.fail_on)
            rules = {finding.rule for result in of_part for finding in result.findings}
            if rules and (part.node or not LOWERED_RULES.isdisjoint(rules)):
                from dml_tile.checks.lowerings import with_lowering_suggested  # imports all that lowers tiles

                is_alone = len(first_own) == 1
                of_part = [
                    with_lowering_suggested(each, part, self.known_shapes, is_alone=is_alone) for each in of_part
                ]
            yield tuple(of_part)
        checked.is_empty = not first_own or bool(checked.placed and not checked.placed.node_count)
        if checked.is_empty and self.is_strict and not checked.is_model:
            problems[EMPTY] = [forbidden(EMPTY)]
        for first, *others in problems.values():
            places = [f"line {other.line}" if other.line else other.path for other in others]
            also = f"; also at {listed(places)}" if others else ""
            yield replace(first, message=first.message + also, about=first.message, source=file)
        checked.is_whole = not problems
        checked.facts = sources.new_facts()
        if checked.nodes:
            from dml_tile.checks.placements import targets_to_tell, with_places

            counted = checked.nodes.counted
            yield from (with_places(each, targets_to_tell(each, self.targets)) for each in counted)
        for message in checked.facts.contradictions:
            yield own_finding(CONTRADICTION, message, source=file)
        yield checked

    def _placed(self, checked: CheckedFile, placed: PlacedModel) -> ModelNodes:
        """Return the placements of a model's nodes, with the departures that count, and the level of a device."""
        from dml_tile.back_ends.placement import Placement
        from dml_tile.checks.placements import ModelNodes, against_of_nodes
        from dml_tile.checks.sessions import placed_summary

        assert self.via, "it placed the nodes"
        against = against_of_nodes(self.against)
        nodes = ModelNodes(checked.source, tuple(self.targets), placed, self.via, self.max_cpu_nodes, against)
        allowed = {target.name for i, target in enumerate(self.targets) if nodes.allows_cpu_nodes(i)}
        counted = []
        departures = ((each, ()) for each in nodes.departures)
        for each, known in self.baseline.known_departures(nodes.departures) if self.baseline else departures:
            nodes.known += [replace(each, targets=known)] if known else []
            at = {*each.targets}.difference(known)
            if each.placement == Placement.CPU and each.severity is Severity.NOTE:
                at -= allowed
            if not self._leaves_out(each.rule, checked) and at:
                counted.append(replace(each, targets=tuple(name for name in each.targets if name in at)))
        nodes.counted = counted
        checked.nodes, checked.placed = nodes, placed_summary(nodes)
        checked.lowest_level = max(map(self.via.minimum_level, self.targets))
        return nodes

    def _leaves_out(self, rule: str, checked: CheckedFile) -> bool:
        """Return True if findings of a rule do not count in a file, which remembers what suppresses them."""
        suppressions = self.file_ignores.suppressions(rule, checked.patterns)
        checked.met |= suppressions
        return bool(suppressions) or not self.selection.takes(rule)

    def _counted(self, result: Result, checked: CheckedFile) -> Result:
        rules = {finding.rule for finding in (*result.findings, *result.notes)}
        left_out = {rule for rule in rules if self._leaves_out(rule, checked)}
        counted = result.without(NOT_SELECTED, lambda finding: finding.rule in left_out)
        if counted is not result and result.verdict not in NOT_FOR_DIRECTML:
            verdict = verdict_of(counted.findings, result.item.unknown, result.not_looked_at)
            counted = replace(counted, verdict=verdict)
        return self.baseline.with_known(counted) if self.baseline else counted


def _merged(parts: Iterable[SourcePart]) -> Iterator[SourcePart]:
    """Yield parts, the lines of a capture together."""
    parts = iter(parts)
    for part in parts:
        if isinstance(part, Item) and part.capture:
            from dml_tile.checks.captures import merged  # most sources are no captures

            yield from merged(chain([part], parts))
        else:
            yield part


def questions_of(
    targets: Sequence[TargetLike | None],
    against: Against,
    *,
    via: str | None,
    dims: Mapping[str, int] | None,
    input_shapes: Mapping[str, Sequence[int | None]] | None,
) -> Questions:
    """Return the check that the arguments of ``check_model`` and ``sweep`` describe. Raises ValueError."""
    bases_of(against)
    for known in (dims, input_shapes):
        require_instance({} if known is None else known, Mapping)
    shapes = {name: tuple(shape) for name, shape in (input_shapes or {}).items()}
    resolved, back_end = tuple(map(resolve, targets)), None
    if via is not None:
        from dml_tile.back_ends import back_end_named

        back_end = back_end_named(via, resolved)
    return Questions(resolved, against, KnownShapes(dims or {}, shapes), back_end)


def checked_here(check: Questions, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
    """Yield the events of files, each with its file's name."""
    with Sources(check.known_shapes, deployments=check.deployments) as sources:
        for file in files:
            name = check.name_of(file)
            for event in check.events(file, sources):
                yield name, event


class ModelResults(tuple[Result, ...]):
    """The results of a model's tiles; through ONNX Runtime, also the placements of its ``nodes``.

    ``findings`` say what keeps nodes, or the model as a whole, from DirectML, or from loading.
    """

    nodes: ModelNodes | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def counts(self) -> Mapping[Placement, int]:
        """The numbers of the model's nodes by placement, such as ``counts["cpu"]``; empty without ONNX Runtime."""
        return self.nodes.counts[0] if self.nodes else {}


def check_model(
    model: str | os.PathLike[str] | ModelProto,
    target: TargetLike | None = None,
    *,
    via: str | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    against: Against = "both",
) -> ModelResults:
    """Return the result of each tile of a model: its verdict, its findings, and the fields known at run time only.

    ``model`` is a file of any kind that ``dml-tile check`` reads, or an onnx.ModelProto, whose
    tensors in other files are not read. ``target`` None means the current target. ``via`` names the back end that the
    tiles go through; with ``"ort"``, the result has the placements of all ``nodes``, and results of those tiles alone
    that DirectML takes. ``dims`` are the sizes of named dimensions, ``input_shapes`` the shapes of inputs, in
    elements; a size of None stays as it is.

    Warns of declared shapes that contradict the inferred ones.

    Raises InputError, which names the file, if a part of the model cannot be read, ValueError for an unknown target,
    back end or ``against``, and for a name in ``dims`` or ``input_shapes`` that the model lacks.
    """
    check = questions_of([target], against, via=via, dims=dims, input_shapes=input_shapes)
    name, file = _named_file(model)
    with Sources(check.known_shapes, deployments=check.deployments) as sources:
        if unread := unread_through(file, check.via):
            raise InputError([unreadable(name, f"is {unread}")])
        parts = list(sources.parts(file))
        facts = sources.new_facts()
    if problems := [part for part in parts if isinstance(part, Finding)]:
        raise InputError([replace(each, path=location_of(name, each.path)) for each in problems])
    for _, problem in unknown_names(check.known_shapes, facts, [file]) if is_model_file(file) else ():
        raise ValueError(f"{name}: {problem}")
    nodes, found, outcomes = None, list[Result](), dict[str, "Sequence[Outcome]"]()
    departures: tuple[Finding, ...] = ()
    for part in _merged(parts):
        if isinstance(part, Item):
            targets = nodes.targets_of(part) if nodes else check.targets
            of_part = [*judged(name, part, targets, against, check.via)]
            if part.capture:
                from dml_tile.checks.captures import completed

                of_part = completed(of_part, outcomes)
            found += of_part
        elif not isinstance(part, Finding):
            from dml_tile.checks.placements import ModelNodes, against_of_nodes, with_places

            assert check.via, "it placed the nodes"
            nodes = ModelNodes(name, tuple(check.targets), part, check.via, against=against_of_nodes(against))
            departures = tuple(with_places(each, each.targets) for each in nodes.departures)
    for text in facts.contradictions:
        warnings.warn(f"{name}: {text}", stacklevel=2)
    made = ModelResults(found)
    made.nodes, made.findings = nodes, departures
    return made


class _OpenModel:
    """A model that is read from memory."""

    path = "model.onnx"

    def __init__(self, model: ModelProto) -> None:
        self._model = model

    def open(self) -> BinaryIO:
        return BytesIO(self._model.SerializeToString())


def _named_file(model: str | os.PathLike[str] | ModelProto) -> tuple[str, str]:
    """Return the model's name in results, and its file."""
    if isinstance(model, str | os.PathLike):
        name = os.fspath(model)
        return name, name
    if not hasattr(model, "SerializeToString"):
        raise TypeError(f"a path or an onnx.ModelProto was expected, not a {type(model).__name__}")
    return model.graph.name or "model", StoredFile(_OpenModel(model))
