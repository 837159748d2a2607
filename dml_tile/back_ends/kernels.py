"""The kernels of ONNX Runtime's DirectML and CPU providers, by release, and the limits of each release.

registrations.json   the releases, and the DirectML provider's kernels
cpu_kernels.json     the CPU provider's kernels
formals.json         inputs, then outputs, of operators that the onnx package lacks, with their types' names

Each row holds for the releases from its first to its last; a release names the commit that was read. A kernel of
DirectML takes exactly the version ``since`` of an operator, never a later one; a kernel of the CPU provider takes the
versions from ``since`` to ``to``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from dml_tile.directml.enums import FeatureLevel

Version: TypeAlias = tuple[int, int]
"""A release of ONNX Runtime: ``(1, 24)``."""


class RuntimeRelease(NamedTuple):
    """A release's limits: the newest IR version and opsets that it loads, and the lowest level of its device.

    ``opsets`` are by domain; one of an application's domain has no limit.
    ``int64`` says how DirectML gets 64-bit integers: "strided", "direct or strided", "direct". With ``cpu_preferred``,
    nodes stay on the CPU if all that they need is there.
    """

    version: Version
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
    cpu_inputs: Sequence[int] = ()
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


def _of(rows: Sequence[Sequence[Any]], version: Version) -> Iterator[Any]:
    """Yield the rows of a release, without their first and last release."""
    for *row, first, last in rows:
        if version_of(first) <= version <= version_of(last):
            yield row


@cache
def _table(name: str) -> Any:
    return json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


@cache
def releases() -> Mapping[Version, RuntimeRelease]:
    """Return the releases whose tables were read, the oldest first."""
    table = _table("registrations.json")
    return {
        version_of(name): RuntimeRelease(
            version_of(name),
            {"": row["opset"], **dict(_of(table["domain_opsets"], version_of(name)))},
            row["ir"],
            FeatureLevel.parse(row["device_level"]),
            row["cpu_preferred"],
            row["int64"],
        )
        for name, row in table["releases"].items()
    }


@cache
def limits_at(release: Version) -> RuntimeRelease:
    """Return the limits of a release, or of the nearest whose tables were read."""
    oldest, *_, newest = releases()
    return releases()[min(max(release, oldest), newest)]


def difference_of(name: str) -> str:
    """Return how a package's patch release differs from the tables of its minor release; empty if it does not."""
    patches: dict[str, str] = _table("registrations.json")["patches"]
    return patches.get(name.partition("+")[0].rpartition("-")[2], "")


@cache
def _kernels(table_name: str, release: Version) -> Kernels:
    table = _table(table_name)
    type_sets = {name: frozenset(types.split()) for name, types in table["types"].items()}
    found: dict[tuple[str, str], list[Kernel]] = {}
    for domain, operator, since, to, types, *notes in _of(table["rows"], release):
        constraints = (each.partition(":") for each in types.split())
        type_of = {name: type_sets[types] for name, _, types in constraints}
        found.setdefault((domain, operator), []).append(Kernel(since, to or since, type_of, **dict(*notes)))
    return found


directml_kernels: Final = partial(_kernels, "registrations.json")
"""Returns the DirectML provider's kernels of a release."""

cpu_kernels: Final = partial(_kernels, "cpu_kernels.json")
"""Returns the CPU provider's kernels of a release."""


@cache
def first_registration(domain: str, operator: str) -> Version | None:
    """Return the first release with a DirectML kernel of an operator; None if no release has one."""
    rows = _table("registrations.json")["rows"]
    return min((version_of(row[-2]) for row in rows if row[:2] == [domain, operator]), default=None)


@cache
def known_versions(domain: str, operator: str) -> frozenset[int]:
    """Return the versions of an operator for which any provider has had a kernel."""
    rows = (*_table("registrations.json")["rows"], *_table("cpu_kernels.json")["rows"])
    return frozenset(row[2] for row in rows if row[:2] == [domain, operator])


def queried_attributes(domain: str, operator: str) -> Mapping[str, str]:
    """Return the attributes of an operator that a support query may look at, with their types' names."""
    attributes: dict[str, str] = _table("registrations.json")["attributes"]
    return attributes if (domain, operator) in _queried() else {}


@cache
def _queried() -> frozenset[tuple[str, str]]:
    """Return the operators with a support query; asked for each name that a model has, which may be any number."""
    return frozenset((row[0], row[1]) for row in _table("registrations.json")["rows"] if "query" in row[5])


def recognised_equations() -> Mapping[str, str]:
    """Return the Einsums of two inputs, their labels in order, that are recognised, by the release that first does."""
    equations: dict[str, str] = _table("registrations.json")["equations"]
    return equations


def formals_of(domain: str, operator: str) -> Any:
    """Return the inputs, then the outputs, of an operator that onnx lacks, with their types' names; None for others."""
    return _table("formals.json")["formals"].get(f"{domain}:{operator}")
