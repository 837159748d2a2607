"""Known departures of DirectML, and of ONNX Runtime's provider, from their documents: ``known.toml``.

The head of the table explains its keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.sections import sections, values_below
from dml_tile.directml.targets import Target, numbers_in, releases_of
from dml_tile.text import listed

TABLE: Final = Path(__file__).with_name("known.toml")
OTHER_LINES: Final = "other-lines"
"""The heading of the lines of DirectML's release notes that are no row."""
SURE: Final = {
    "said": "the maintainers say otherwise",
    "listed": "a test that fails is listed",
    "read": "the source reads otherwise, and was not run",
    "seen": "recorded bytes are otherwise",
}
"""The grounds of a row, in words."""
_UNKNOWN: Final = "unknown"
_ALL: Final = "all"


class Known(NamedTuple):
    """A known departure; ``sources`` are addresses. The head of ``known.toml`` explains the other fields."""

    id: str
    does: str
    sources: tuple[str, ...]
    sure: str
    tries: tuple[str, ...]
    operators: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    graph: bool = False
    where: str = ""
    shows: str = ""
    since: str = ""
    fixed: str = ""
    levels: tuple[str, ...] = ()
    only: str = ""

    @property
    def url(self) -> str:
        """The first source."""
        return self.sources[0]

    @property
    def is_certain(self) -> bool:
        """True if it happens wherever the condition and the release are met."""
        return not self.only and self.since != _UNKNOWN

    @property
    def condition(self) -> str:
        """The condition, in words where it is always met, or never looked at."""
        where = "" if self.where == "1" else self.where or "it is not looked at, and no finding says so"
        return ", ".join(filter(None, ["in a graph" if self.graph else "", where])) or "always"

    def told_of(self, library: str) -> str:
        """Return what a release, by its name, does or may do."""
        certainly = "was seen to" if self.sure == "seen" and self.levels else "is known to"
        return f"{library} {certainly if self.is_certain else 'may'} {self.does} ({self.when})"

    @property
    def when(self) -> str:
        """Return what else decides, and the releases, in words."""
        return ", ".join(filter(None, [self.only, self.releases]))

    @property
    def releases(self) -> str:
        """The releases, in words."""
        words = {_UNKNOWN: "since when is not known", _ALL: "" if self.fixed else "in every release", "": ""}
        since = words.get(self.since, f"since {self.since}")
        is_open = not (self.fixed or self.levels or self.since == _ALL)
        fixed = f"fixed in {self.fixed}" if self.fixed else "fixed in no release" if is_open else ""
        seen = f"seen from {self.levels[0]} to {self.levels[1]}" if self.levels else ""
        return ", ".join(filter(None, [seen, since, fixed]))

    @property
    def says(self) -> str:
        """The requirement that is not met, and how sure that is."""
        library = "ONNX Runtime's DirectML provider" if self.nodes else "DirectML"
        return f"{library} treats {listed(self.subjects) or 'calls'} as documented; {SURE[self.sure]}."

    @property
    def subjects(self) -> tuple[str, ...]:
        """The operators, of DirectML or of ONNX."""
        return self.operators or self.nodes

    def holds_at(self, target: Target) -> bool:
        """Return True if a target's release of DirectML may have it.

        A feature level alone has what all its releases are known to have, or what was seen at it.
        """
        release = target.directml
        if self.levels and (release is None or not self.since):
            first, last = map(FeatureLevel.parse, self.levels)
            return first <= target.feature_level <= last
        if release is None:
            return self.since != _UNKNOWN and all(map(self.is_in, releases_of(target.feature_level)))
        return self.is_in(release)

    def is_in(self, release: tuple[int, ...]) -> bool:
        """Return True if a release may have it, of DirectML, or of ONNX Runtime for a row of nodes."""
        since = (0,) if self.since in (_UNKNOWN, _ALL) else numbers_in(self.since)
        return since <= release and (not self.fixed or release < numbers_in(self.fixed))


@cache
def known(table: Path = TABLE) -> Mapping[str, Known]:
    """Return the rows by their ids. Raises ValueError for a row without a source."""
    addresses = values_below(table, "sources")
    rows = {}
    for heading in sections(table):
        if heading in ("sources", OTHER_LINES):
            continue
        row = values_below(table, heading)
        named = [source.partition(" ") for source in row.pop("sources", ())]
        if not named:
            raise ValueError(f"{table.name}: {heading} has no source")
        found = tuple(addresses[word].format(place) for word, _, place in named)
        rest: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
        rows[heading] = Known(heading, sources=found, tries=rest.pop("try"), **rest)
    return rows


@cache
def known_of_nodes() -> Mapping[str, tuple[Known, ...]]:
    """Return the rows with a condition of nodes, by ONNX's operator behind its domain, without a version."""
    found: dict[str, tuple[Known, ...]] = {}
    for row in known().values():
        for operator in dict.fromkeys(node.partition("-")[0] for node in row.nodes if row.where):
            found[operator] = (*found.get(operator, ()), row)
    return found


@cache
def known_of(operator: str) -> tuple[Known, ...]:
    """Return the rows with a condition of an operator, by its name without a prefix; also of CONSTANT, a node."""
    return tuple(row for row in known().values() if row.where and operator in row.operators)
