"""Checks one file: the questions that it is asked, what is found as a series of events, and a summary of it.

Comments in files, and patterns of pyproject.toml, silence findings of rules.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from dml_tile.back_ends import BackEnd, back_end_named
from dml_tile.checks.catalogue import Selection, is_named
from dml_tile.checks.files import Exclusion, listed, unknown_dimension
from dml_tile.checks.result import NOT_FOR_DIRECTML, Result, results, verdict_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.errors import InputError, Problem, place_of, require_instance
from dml_tile.files.urls import Url, source_named
from dml_tile.findings import Against, Severity, bases_of
from dml_tile.json_text import IgnoreComment, SourceText
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.readers.file_kinds import SAVED_MODEL
from dml_tile.readers.model_tile import ONNXRUNTIME, KnownShapes, TileNode
from dml_tile.readers.sources import Sources, is_model_file
from dml_tile.simulation.target import resolve

if TYPE_CHECKING:  # most checks need none
    from onnx import ModelProto

    from dml_tile.checks.baseline import Baseline

_ALL_RULES: Final = Selection()
_DIGEST_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class FileIgnore:
    """Rules whose findings do not count in the files that match a ``pattern``."""

    pattern: str
    rules: tuple[str, ...]
    files: Exclusion = field(compare=False)


class Silence(NamedTuple):
    """A rule, or the first words of several, that a comment or a FileIgnore silences."""

    rule: str
    source: IgnoreComment | FileIgnore


class Silences:
    """The silences of one file; ``met`` has True for those that silenced something."""

    def __init__(self, file: str, ignores: Sequence[FileIgnore]) -> None:
        matching = (ignore for ignore in ignores if ignore.files.leaves_out(file))
        self._of_file = [Silence(rule, ignore) for ignore in matching for rule in ignore.rules]
        self.met = dict.fromkeys(self._of_file, False)
        self._text: SourceText | None = None

    def on(self, part: JsonDescriptor | TileNode) -> list[Silence]:
        """Return those that hold for a part of the file."""
        text = part.text if isinstance(part, JsonDescriptor) else None
        if text is None or not text.comments:
            return self._of_file
        if text is not self._text:
            self._text = text
            self.met = dict.fromkeys(_silences(text.comments), False) | self.met
        return [*self._of_file, *_silences(text.comments_on(part.pointer))]

    def silence(self, rule_id: str, on: Sequence[Silence]) -> bool:
        """Return True if some silence findings of a rule, and remember which."""
        met = [silence for silence in on if is_named(rule_id, silence.rule)]
        self.met.update(dict.fromkeys(met, True))
        return bool(met)


def _silences(comments: Sequence[IgnoreComment]) -> Iterator[Silence]:
    return (Silence(rule, comment) for comment in comments for rule in comment.rules)


@dataclass(slots=True)
class SourceSummary:
    """The tiles of one file; ``lowest_level`` is the lowest at which all pass, None if one passes at none.

    ``unknown`` is how many are known in part only before they are run, ``failing`` how many fail at a target;
    ``is_whole`` is False if a part of the file could not be read. ``dimension_names`` are those of an ONNX model that
    no file before it has, ``contradictions`` of its declared shapes fail nothing. ``silences`` are those of the file,
    and whether they silenced something.
    """

    name: str
    is_model: bool
    tiles: int = 0
    unknown: int = 0
    failing: int = 0
    lowest_level: FeatureLevel | None = FeatureLevel.DML_FEATURE_LEVEL_1_0
    is_whole: bool = True
    dimension_names: frozenset[str] = field(default=frozenset(), compare=False)
    silences: dict[Silence, bool] = field(default_factory=dict)
    contradictions: tuple[str, ...] = ()

    def add(self, results: Sequence[Result], fail_on: Severity | None) -> None:
        """Count a tile by its results, one for each target."""
        first = results[0]
        if not first.is_a_tile:
            return
        self.tiles += 1
        self.unknown += bool(first.unknown)
        self.failing += not all(result.passes(fail_on) for result in results)
        if self.lowest_level is not None:
            self.lowest_level = first.lowest_level and max(self.lowest_level, first.lowest_level)


DescriptorOrNode: TypeAlias = JsonDescriptor | TileNode | Problem

Event: TypeAlias = tuple[Result, ...] | Problem | SourceSummary
"""The results of a tile, one for each target; a part of the file that cannot be read; or, at its end, its summary."""


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The questions that each file is asked, and the findings that count. It pickles.

    Findings count where the ``selection`` takes them, no comment and none of ``file_ignores`` silences them, and the
    ``baseline`` does not have them; ``fail_on`` is the severity from which on a tile fails.
    """

    targets: Sequence[Target]
    against: Against
    known_shapes: KnownShapes = field(default_factory=KnownShapes)
    via: BackEnd | None = None
    selection: Selection = _ALL_RULES
    baseline: Baseline | None = None
    fail_on: Severity | None = Severity.WARNING
    file_ignores: tuple[FileIgnore, ...] = ()

    def events(self, file: str, sources: Sources) -> Iterator[Event]:
        """Yield the results of a file, its problems, those of the same message as one, then its summary."""
        summary = SourceSummary(file, is_model_file(file))
        silences = Silences(file, self.file_ignores)
        problems: dict[str, list[Problem]] = {}
        equals = Counter[str]()
        parts = sources.parts(file)
        first_parts = list(islice(parts, 2))
        for part in _merged(chain(first_parts, parts)):
            if isinstance(part, Problem):
                problems.setdefault(part.message, []).append(part)
                continue
            of_part = [*results(file, part, self.targets, self.against, self.via)]
            if isinstance(part, TileNode):
                summary.contradictions += part.contradictions
            on = silences.on(part)
            if any(result.findings for result in of_part):
                content = _content(part, equals)
                of_part = [self._counted(replace(result, content=content), silences, on) for result in of_part]
            summary.add(of_part, self.fail_on)
            if any(result.findings for result in of_part):
                from dml_tile.checks.lowerings import with_suggestions  # with all that lowers tiles

                is_alone = len(first_parts) == 1
                of_part = [with_suggestions(each, part, self.known_shapes, is_alone=is_alone) for each in of_part]
            yield tuple(of_part)
        for first, *others in problems.values():
            also = f"; also at {listed([other.pointer for other in others])}" if others else ""
            yield replace(first, message=first.message + also)
        summary.is_whole = not problems
        summary.dimension_names = sources.new_dimension_names()
        summary.silences = silences.met
        yield summary

    def _counted(self, result: Result, silences: Silences, on: Sequence[Silence]) -> Result:
        selected = tuple(
            finding
            for finding in result.findings
            if not silences.silence(finding.rule, on) and self.selection.takes(finding.rule)
        )
        if deselected := len(result.findings) - len(selected):
            is_judged = result.verdict not in NOT_FOR_DIRECTML
            verdict = verdict_of(selected, result.unknown) if is_judged else result.verdict
            result = replace(result, verdict=verdict, findings=selected, deselected=deselected)
        return self.baseline.with_known(result) if self.baseline else result


def _merged(parts: Iterable[DescriptorOrNode]) -> Iterator[DescriptorOrNode]:
    """Yield parts as they come, but at the end those of a capture: of equal lines the first, with their number."""
    captured: dict[tuple[str, int | None, FeatureLevel | None], JsonDescriptor] = {}
    for part in parts:
        if not isinstance(part, JsonDescriptor) or part.capture is None:
            yield part
            continue
        key = part.content, part.capture.hresult, part.capture.feature_level
        first = captured.setdefault(key, part)
        if first is not part:
            captured[key] = replace(first, times=first.times + 1)
    yield from captured.values()


def _content(part: JsonDescriptor | TileNode, equals: Counter[str]) -> str:
    """Return what an item of a list says, in short; ``equals`` counts those that say the same."""
    if not isinstance(part, JsonDescriptor) or part.part or not part.pointer[1:2].isdigit():
        return ""
    digest = blake2b(part.content.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    content = f"{part.other or part.desc or 'null'} {digest}"
    equals[content] += 1
    return content if equals[content] == 1 else f"{content} {equals[content]}"


def file_check(
    targets: Sequence[TargetLike | None],
    against: Against,
    *,
    via: str | None,
    dims: Mapping[str, int] | None,
    input_shapes: Mapping[str, Sequence[int | None]] | None,
    infer: str | None = None,
) -> FileCheck:
    """Return the check that the arguments of ``check_model`` and ``sweep`` describe. Raises ValueError."""
    bases_of(against)
    for known in (dims, input_shapes):
        require_instance({} if known is None else known, Mapping)
    shapes = {name: tuple(shape) for name, shape in (input_shapes or {}).items()}
    back_end = None if via is None else back_end_named(via)
    return FileCheck(tuple(map(resolve, targets)), against, KnownShapes(dims or {}, shapes, infer or ""), back_end)


def checked_here(check: FileCheck, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
    """Yield the events of files, each with its file, as they are asked for."""
    with Sources(check.known_shapes) as sources:
        for file in files:
            for event in check.events(file, sources):
                yield file, event


def check_model(
    model: str | os.PathLike[str] | ModelProto,
    target: TargetLike | None = None,
    *,
    via: str | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    infer: str | None = None,
    against: Against = "both",
) -> tuple[Result, ...]:
    """Return the result of each tile of a model: its verdict, its findings, and what is known at run time only.

    ``model`` is a file of any kind that ``dml-tile check`` reads, a SavedModel's folder, or an onnx.ModelProto, of
    which tensors in other files are not read. ``target`` None means the current target. ``via`` names the back end that
    the tiles go through. ``dims`` are the sizes of named dimensions, ``input_shapes`` the shapes of inputs, in
    elements; a size of None stays as it is. ``infer="onnxruntime"`` has onnxruntime infer what its own operators give;
    it must be installed, and sympy.

    Warns of declared shapes that contradict the inferred ones.

    Raises InputError, which names the file, if a part of the model cannot be read, ValueError for an unknown target,
    back end, inference or ``against``, and for a name in ``dims`` that the model does not have.
    """
    if infer not in (None, ONNXRUNTIME):
        raise ValueError(f"infer is {infer!r}; {ONNXRUNTIME!r} or None was expected")
    check = file_check([target], against, via=via, dims=dims, input_shapes=input_shapes, infer=infer)
    with _named_file(model) as (name, file), Sources(check.known_shapes) as sources:
        parts = list(sources.parts(file))
        names = sources.new_dimension_names()
    if problems := [part for part in parts if isinstance(part, Problem)]:
        raise InputError([replace(each, pointer=place_of(name, each.pointer)) for each in problems])
    if problem := unknown_dimension(dims or (), names, [file]):
        raise ValueError(f"{name}: {problem}")
    tiles = [part for part in parts if not isinstance(part, Problem)]
    for text in chain.from_iterable(part.contradictions for part in tiles if isinstance(part, TileNode)):
        warnings.warn(f"{name}: {text}", stacklevel=2)
    return tuple(result for part in tiles for result in results(name, part, check.targets, against, check.via))


@contextmanager
def _named_file(model: str | os.PathLike[str] | ModelProto) -> Iterator[tuple[str, str]]:
    """Yield the model's name in results, and its file."""
    if isinstance(model, str | os.PathLike):
        name = source_named(model)
        saved_model = Path(name, SAVED_MODEL)
        yield name, str(saved_model) if not isinstance(name, Url) and saved_model.is_file() else name
        return
    if not hasattr(model, "SerializeToString"):
        raise TypeError(f"a path or an onnx.ModelProto was expected, not a {type(model).__name__}")
    with TemporaryDirectory() as folder:
        file = Path(folder, "model.onnx")
        file.write_bytes(model.SerializeToString())
        yield model.graph.name or "model", str(file)
