"""The files that a command names, and the tiles chosen from them."""

from __future__ import annotations

import codecs
import itertools
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from glob import has_magic
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

from dml_tile.errors import ConfigError, InputError
from dml_tile.files.paths import (
    STANDARD_INPUT,
    ListedPath,
    Matches,
    ProjectPath,
    WrittenPath,
    is_url,
    require_local,
    why_refused,
)
from dml_tile.files.patterns import OUTSIDE, Patterns
from dml_tile.files.repository import list_root, path_from
from dml_tile.files.whole import read_whole
from dml_tile.findings import NOTHING_TO_CHECK, Finding, own_finding, unreadable
from dml_tile.readers.descriptors import open_source
from dml_tile.readers.file_kinds import kind_of
from dml_tile.readers.item import Item
from dml_tile.readers.model_names import KnownShapes, ModelFacts
from dml_tile.readers.sources import (
    EMPTY,
    EMPTY_FOLDER,
    EXCLUDED,
    LINKED,
    LINKED_FROM_OUTSIDE,
    Sources,
    expanded,
    is_model_file,
    passing_over,
    why_skipped,
)
from dml_tile.text import did_you_mean, listed

if TYPE_CHECKING:
    from dml_tile.back_ends import BackEnd
    from dml_tile.directml.targets import Target

Complain: TypeAlias = Callable[[str, Finding], None]
"""Takes the name of a source, and a reason why a part of it cannot be read."""

ChosenTiles: TypeAlias = Iterator[tuple[str, Item]]
"""Tiles, each with the file that holds it."""

MAX_LIST_BYTES: Final = 2**24
"""The size of the largest list of files that is read."""

HOLDS_NOTHING: Final = own_finding(NOTHING_TO_CHECK, "holds nothing to check")

_NO_MATCH: Final = unreadable("", "no file matches the pattern")


class Exclusion:
    """Files and folders that are left out, by patterns in the language of .gitignore, as ``build`` or ``/models/old``.

    They begin at the folder ``base``. Only patterns without a slash, or with ``**/``, match files elsewhere.
    """

    def __init__(self, patterns: Iterable[str] = (), base: str = ".") -> None:
        self.patterns = Patterns(patterns)
        self._base = base

    def leaves_out(self, file: str) -> bool:
        """Return True if a file, or a folder (with a slash at the end), is excluded; named from the current folder."""
        return bool(self.patterns.lines) and file != STANDARD_INPUT and self.patterns.leaves_out(self._path(file))

    def matching(self, file: str) -> frozenset[int]:
        """Return the numbers of the patterns that match a file or a folder above it."""
        if file == STANDARD_INPUT or not self.patterns.lines:
            return frozenset()
        return self.patterns.matching(self._path(file))

    def _path(self, file: str) -> str:
        path = path_from(self._base, file) + "/" * file.endswith("/")
        if path.startswith(OUTSIDE) or PurePath(path).is_absolute():
            return OUTSIDE + re.sub(r"\A(?:\.\./)+|\A/+", "", path)
        return path


NO_EXCLUSION: Final = Exclusion()


def forbidden(reason: str) -> Finding:
    """Return the problem of a skipped file under --strict-files."""
    return unreadable("", f"would be skipped ({reason}), which --strict-files forbids")


def names_in(file: str, settings_file: str = "", root: str = "") -> list[str]:
    """Return the names in a list of files, or in standard input (``-``): one a line, or each ended by NUL.

    Names are paths, neither patterns nor URLs, that lead below ``list_root(settings_file)``. Raises ConfigError for a
    list that cannot be read, or that a link in a repository leads to, out of that and not below ``root``.
    """
    if refused := why_refused(file, root, may_be_special=True):
        raise ConfigError(file, refused)
    try:
        folder = list_root(settings_file)
        with open_source(file) as opened:
            text = read_whole(opened, MAX_LIST_BYTES)
    except (OSError, InputError) as error:
        raise ConfigError(file, getattr(error, "strerror", None) or str(error)) from None
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as PowerShell's > writes
        text = os.fsencode(text.decode("utf-16", "replace"))
    text = text.removeprefix(codecs.BOM_UTF8)
    names = text.split(b"\0") if b"\0" in text else text.splitlines()
    return [ListedPath(os.fsdecode(name), *folder) for name in dict.fromkeys(names) if name]


def files_named(
    names: Sequence[str],
    complain: Complain,
    *,
    exclusion: Exclusion = NO_EXCLUSION,
    skips_others: bool = False,
    ignores_none: bool = False,
    via: BackEnd | None = None,
    root: str = "",
) -> tuple[list[str], list[Finding], dict[str, list[str]]]:
    """Return the files to check, each once, the skipped ones, and the files of each name that has to hold something.

    Files that the ``exclusion`` names are skipped everywhere; with ``skips_others``, so are files without tiles, and
    models that the back end ``via`` does not read. ``ignores_none`` and ``root`` are passed to ``expanded``.
    ``complain`` is called for each name that stands for no file, for named models that ``via`` does not read, for links
    out of a ProjectPath's project, for a ListedPath or ProjectPath that is special or leads out, for links that
    ``why_not_followed`` refuses, and for special files that match a pattern. Each name but a ProjectPath has to hold
    something to check, unless all of it is excluded, or with ``skips_others``.
    """
    of_names: dict[str, list[str]] = {}
    files: dict[Hashable, str] = {}
    over: dict[Hashable, Finding] = {}
    walked: set[PurePath] = set()
    search = partial(expanded, walked=walked, ignores_none=ignores_none, leaves_out=exclusion.leaves_out, root=root)
    patterns = dict.fromkeys(filter(is_pattern, names))
    matches = Matches(*patterns, root=root)
    for link in itertools.filterfalse(exclusion.leaves_out, matches.passed_over):
        over[_identity(link)] = passing_over(link, LINKED if link.endswith("/") else LINKED_FROM_OUTSIDE)
    matched: set[str] = set()
    for name in names:
        for match in _matched(name, matches, complain, exclusion) if name in patterns else [name]:
            if match in matched or _identity(match) in walked:
                continue
            if name in patterns:
                matched.add(match)
            # only what an argument itself names may be a pipe
            is_argument = not (name in patterns or isinstance(name, WrittenPath))
            if refused := why_refused(match, root, may_be_special=is_argument):
                complain(match, unreadable("", refused))
                continue
            passed: list[Finding] = []
            try:
                require_local(match)
                found = list(search(match, pass_over=passed.append))
            except InputError as error:
                complain(match, *error.problems)
                continue
            has_to_hold = not (skips_others or isinstance(name, ProjectPath))
            if found and has_to_hold:
                of_names.setdefault(name, []).extend(found)
            elif has_to_hold and all(finding.message != EXCLUDED for finding in passed):
                complain(match, EMPTY_FOLDER)
            if found == [match] and skips_others and (skipped := why_skipped(match)):
                found, passed = [], [skipped]
            for file in found:
                if not (unread := unread_through(file, via)):
                    files.setdefault(_identity(file), file)
                elif file == name:
                    complain(file, unreadable("", f"is {unread}"))
                else:
                    passed.append(passing_over(file, unread))
            for found_over in passed:
                over.setdefault(_identity(found_over.source), found_over)
    passed_over = [one for identity, one in over.items() if identity not in files]
    return [*files.values()], passed_over, of_names


def _matched(name: str, matches: Matches, complain: Complain, exclusion: Exclusion) -> list[str]:
    """Return the files and folders that match a pattern."""
    if name in matches.problems:
        complain(name, matches.problems[name])
        return []
    outside = [(link, reason) for link, reason in matches.outside[name] if not exclusion.leaves_out(link)]
    for link, reason in outside:
        complain(link, unreadable("", reason))
    if not matches.names[name] and not outside:
        complain(name, _NO_MATCH)
    return matches.names[name]


def is_pattern(name: str) -> bool:
    """Return True if a name is a pattern: it has wildcards, and is no file itself."""
    if name == STANDARD_INPUT or isinstance(name, ListedPath) or is_url(name):
        return False
    # the question mark of \\?\C: is none
    return has_magic(os.path.splitdrive(name)[1]) and not os.path.exists(name)  # noqa: PTH110 - Path.exists may raise


def _identity(name: str) -> Hashable:
    """Return a key that is the same for two names of a file; links are files of their own."""
    try:
        return None if name == STANDARD_INPUT else PurePath(os.path.abspath(name))  # noqa: PTH100  # links are not followed
    except OSError:  # the current folder was removed
        return PurePath(name)


def chosen_tiles(
    name: str,
    known_shapes: KnownShapes,
    pointer: str | None,
    complain: Complain,
    pass_over: Callable[[Sequence[Finding]], object],
    via: BackEnd | None = None,
    target: Target | None = None,
    root: str = "",
) -> ChosenTiles:
    """Yield each tile of a file or a folder, with its file; if a ``pointer`` is given, only its tile.

    Where the back end ``via`` places nodes, it does so at the target. ``root`` is passed to ``files_named``.
    Calls ``pass_over`` once, at the end, with the files that a folder's search skips, models that the back end ``via``
    does not read, and files without descriptors.
    """
    files, not_read, _ = files_named([name], complain, via=via, root=root)
    is_readable, is_found = bool(files), False
    passed_over: list[str] = []
    placed_at = [target] if via and via.places_nodes and target else []
    deployments = [via.deployed(each) for each in placed_at] if via else []
    with Sources(known_shapes, deployments=deployments) as sources:
        for file in files:
            is_empty, nodes = not is_model_file(file), None
            for part in sources.parts(file):
                is_empty &= isinstance(part, Item) and part.is_whole_model
                if isinstance(part, Finding):
                    if pointer is None or part.path in ("", pointer) or part.path.startswith(f"{pointer}/"):
                        complain(file, part)
                        is_readable = False
                elif not isinstance(part, Item):
                    assert via, "it placed the nodes"
                    from dml_tile.checks.placements import ModelNodes  # of models only

                    nodes = ModelNodes(file, tuple(placed_at), part, via)
                elif not part.is_operator:
                    continue
                elif pointer not in (None, part.pointer):
                    passed_over.append(part.pointer)
                else:
                    is_found = True
                    yield file, nodes.placed_item(part) if nodes else part
            if is_empty:
                not_read.append(passing_over(file, EMPTY))
        facts = sources.new_facts()
    if is_readable:
        for option, unknown in unknown_names(known_shapes, facts, files):
            complain(option, unreadable("", unknown))
    pass_over(not_read)
    if is_found or not is_readable:
        return
    if pointer is None and files == [name] and is_model_file(name):
        advice = f"; {what_takes_nodes(via.name if via else '', 'its nodes')}" if facts.nodes else ""
        complain(name, own_finding(NOTHING_TO_CHECK, f"has no tiles{advice}"))
    elif pointer is not None:
        there = f"there are {listed(passed_over)}" if any(passed_over) else "no tile has a pointer"
        complain(name, unreadable(pointer, f"there is no such tile; {there}"))


def what_takes_nodes(via: str, nodes: str) -> str:
    """Return where nodes that are no Tiles are answered for, by the back end that was asked for, if one was."""
    if via == "chromium":
        return "docs/webnn.md says how to check another operator than tile"
    return f"`dml-tile check --via ort` says which provider takes {nodes}"


def unread_through(file: str, via: BackEnd | None) -> str:
    """Return the kind of a model that a back end does not read; empty for any other file."""
    if via is None:
        return ""
    kind = kind_of(file)
    if kind is None or not kind.is_model or kind.reader == "ONNX":
        return ""
    return f"{kind.name}, which {via.title} does not read"


def unknown_names(given: KnownShapes, facts: ModelFacts, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option with a name that no model has, and a message about the first such name.

    ``facts`` have the names of the models among the files.
    """
    models = [file for file in files if is_model_file(file)]
    for option, asked, there, kind, what in (
        ("--dim", given.dims, facts.dimensions, "a dimension", "names a dimension"),
        ("--input-shape", given.input_shapes, facts.inputs, "an input", "has an input"),
    ):
        name = next((name for name in asked if name not in there), None)
        if name is None:
            continue
        if not models:
            yield option, f"{name!r} is {kind} of models, and no model was checked"
            continue
        if option == "--dim" and not any(file.lower().endswith(".onnx") for file in models):
            reason = "give the shapes of inputs (--input-shape)"
            yield option, f"OpenVINO keeps no names of dimensions, such as {name!r}; {reason}"
            continue
        others = f"there are {listed([*map(repr, sorted(there))])}" if there else "none has a name"
        yield option, f"no model {what} {name!r}; {did_you_mean(name, there, others)}"
