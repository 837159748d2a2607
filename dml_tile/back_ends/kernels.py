"""The kernels of ONNX Runtime's DirectML and CPU providers, by release, and the limits of each release.

registrations.json   the releases, and the DirectML provider's kernels
cpu_kernels.json     the CPU provider's kernels
formals.json         inputs and outputs of operators that the onnx package lacks, with their types' names

Each row holds for the releases from its first to its last; a release names the commit that was read. A kernel of
DirectML takes exactly the version ``since`` of an operator, never a later one; a kernel of the CPU provider takes the
versions from ``since`` to ``to``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from dml_tile.directml.enums import FeatureLevel

Version: TypeAlias = tuple[int, int]
"""A release of ONNX Runtime: ``(1, 24)``."""

_FOLDER: Final = Path(__file__).parent


class RuntimeRelease(NamedTuple):
    """A release's limits: the newest IR version and opsets that it loads, and the lowest level of its device.

    ``opsets`` are by domain; one of an application's domain has no limit.
    ``int64`` says how DirectML gets 64-bit integers: "strided", "direct or strided", "direct". With ``cpu_preferred``,
    nodes stay on the CPU if all that they need is there.
    """

    version: Version
    name: str
    opsets: Mapping[str, int]
    ir: int
    device_level: FeatureLevel
    cpu_preferred: bool
    int64: str


class Kernel(NamedTuple):
    """A kernel: the operator's versions that it takes, and the types that it takes by the names of constraints.

    ``cpu_inputs`` are read on the CPU, ``query`` names the support query. ``int64`` is how 1.9 and 1.10 take 64-bit
    integers. A ``shader`` is a custom one; ``sequences`` marks a kernel that may have them as inputs and outputs. The
    look-up ``throws`` where a constraint is that of no input or output.
    """

    since: int
    to: int
    types: Mapping[str, frozenset[str]]
    cpu_inputs: frozenset[int] = frozenset()
    query: str = ""
    int64: str = ""
    shader: bool = False
    sequences: bool = False
    throws: bool = False


Kernels: TypeAlias = Mapping[tuple[str, str], Sequence[Kernel]]
"""Kernels by domain and operator."""


def version_of(text: str) -> Version:
    """Return the release that a text such as ``1.24`` or ``1.24.4`` names."""
    major, minor, *_ = text.split(".")
    return int(major), int(minor)


def version_text(version: Version) -> str:
    """Return a release as text: ``1.24``."""
    return ".".join(map(str, version))


_COMMA_BETWEEN_TYPES: Final = re.compile(r",(?![^(]*\))")
"""Not that of ``map(int64,float)``."""


def _of(rows: Sequence[Sequence[Any]], version: Version) -> Iterator[Any]:
    """Yield the rows of a release, without their first and last release."""
    for *row, first, last in rows:
        if version_of(first) <= version <= version_of(last):
            yield row


@cache
def _table(name: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))
    return table


@cache
def releases() -> Mapping[Version, RuntimeRelease]:
    """Return the releases whose tables were read, the oldest first."""
    table = _table("registrations.json")
    return {
        version_of(name): RuntimeRelease(
            version_of(name),
            name,
            {"": row["opset"], **dict(_of(table["domain_opsets"], version_of(name)))},
            row["ir"],
            FeatureLevel.parse(row["device_level"]),
            row["cpu_preferred"],
            row["int64"],
        )
        for name, row in table["releases"].items()
    }


def limits_at(release: Version) -> RuntimeRelease:
    """Return the limits of a release, or of the nearest whose tables were read."""
    oldest, *_, newest = releases()
    return releases()[min(max(release, oldest), newest)]


@cache
def _type_sets(table: str) -> Mapping[str, frozenset[str]]:
    return {name: frozenset(_COMMA_BETWEEN_TYPES.split(types)) for name, types in _table(table)["types"].items()}


def _constraints(types: str, table: str) -> dict[str, frozenset[str]]:
    """Return the types of a row by the names of constraints: ``T:fh T1:l`` names sets of the table."""
    return {name: _type_sets(table)[types] for name, _, types in (each.partition(":") for each in types.split())}


@cache
def directml_kernels(version: Version) -> Kernels:
    """Return the DirectML provider's kernels of a release."""
    found: dict[tuple[str, str], list[Kernel]] = {}
    for domain, operator, since, types, notes in _of(_table("registrations.json")["rows"], version):
        given = dict(note.partition("=")[::2] for note in notes.split())
        kernel = Kernel(
            since,
            since,
            _constraints(types, "registrations.json"),
            frozenset(map(int, filter(None, given.get("cpu", "").split(",")))),
            given.get("query", ""),
            given.get("int64", ""),
            shader="shader" in given,
            sequences="sequences" in given,
            throws="throws" in given,
        )
        found.setdefault((domain, operator), []).append(kernel)
    return found


@cache
def cpu_kernels(version: Version) -> Kernels:
    """Return the CPU provider's kernels of a release; those without an end take exactly the version ``since``."""
    found: dict[tuple[str, str], list[Kernel]] = {}
    for domain, operator, since, to, types in _of(_table("cpu_kernels.json")["rows"], version):
        kernel = Kernel(since, to or since, _constraints(types, "cpu_kernels.json"))
        found.setdefault((domain, operator), []).append(kernel)
    return found


@cache
def registrations() -> Mapping[tuple[str, str], Mapping[int, Version]]:
    """Return the first release with a DirectML kernel of each operator, by the operator's version."""
    found: dict[tuple[str, str], dict[int, Version]] = {}
    for domain, operator, since, _, _, first, _ in _table("registrations.json")["rows"]:
        versions = found.setdefault((domain, operator), {})
        versions[since] = min(version_of(first), versions.get(since, version_of(first)))
    return found


@cache
def known_versions(domain: str, operator: str) -> frozenset[int]:
    """Return the versions of an operator for which any provider has had a kernel."""
    rows = (*_table("registrations.json")["rows"], *_table("cpu_kernels.json")["rows"])
    return frozenset(row[2] for row in rows if row[:2] == [domain, operator])


@cache
def formals() -> Mapping[tuple[str, str], tuple[tuple[str, str, str], ...]]:
    """Return "i" or "o", the name and the type's name of the inputs and outputs of operators that onnx lacks."""
    rows = _table("formals.json")["formals"].items()
    return {(key.partition(":")[0], key.partition(":")[2]): tuple(map(tuple, each)) for key, each in rows}
