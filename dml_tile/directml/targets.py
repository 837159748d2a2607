"""Simulated targets: feature levels, and the libraries, Windows releases and packages with them; and Tile's support.

Pages:
https://learn.microsoft.com/en-us/windows/win32/api/directml/ns-directml-dml_tile_operator_desc (tensor support)
https://learn.microsoft.com/en-us/windows/ai/directml/dml-version-history (DirectML versions, Windows releases)
https://learn.microsoft.com/en-us/windows/ai/directml/dml-feature-level-history (feature levels)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from dml_tile.directml import pages
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType, types_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.levels import LEVELS, Level
from dml_tile.directml.operator_table import operator_table
from dml_tile.text import did_you_mean

_RELEASES: Final = json.loads(Path(__file__).with_name("releases.json").read_text("utf-8"))
"""The versions of DirectML, Windows releases, and releases of packages; a row each, the oldest first."""

_L = FeatureLevel.parse


class TileSupport(NamedTuple):
    """One documented row of Tile's tensor support; it holds for the input and the output."""

    since: FeatureLevel
    dimension_counts: range
    data_types: frozenset[TensorDataType]


@cache
def tile_rows() -> tuple[TileSupport, ...]:
    """Return Tile's documented rows, the oldest first."""
    rows = operator_table("TILE", ("InputTensor", "OutputTensor")).rows
    columns = ((level, *row["InputTensor"]) for level, row in rows.items())
    return tuple(TileSupport(level, range(min(counts), max(counts) + 1), types) for level, counts, types in columns)


def tile_support(level: FeatureLevel) -> TileSupport:
    """Return the newest documented row that is not above ``level``."""
    return next(row for row in reversed(tile_rows()) if row.since <= level)


class DirectMLVersion(NamedTuple):
    """A minor version of DirectML and its patch releases, or None if any is accepted; ``remark`` shortens ``note``."""

    version: str
    patches: Sequence[int] | None
    level: FeatureLevel
    remark: str = ""
    note: str = ""


DIRECTML_VERSIONS: Final = tuple(
    DirectMLVersion(version, patches, _L(level), *remarks)
    for version, patches, level, *remarks in _RELEASES["directml"]
)

_HIGHEST_MINIMUMS: Final = {"directml-1.10.0": _L("5_0")}
"""The patch releases in which DMLCreateDevice1 fails with any minimum above a level, by pages.RELEASES."""


class WindowsRelease(NamedTuple):
    """A Windows release and the DirectML version in its box."""

    name: str
    directml: str
    page: str
    note: str = ""


WINDOWS_RELEASES: Final = tuple(
    WindowsRelease(name, directml, getattr(pages, page), *notes)
    for name, directml, page, *notes in _RELEASES["windows"]
)


class Packaged(NamedTuple):
    """The releases of a package from ``first`` to ``last`` and the DirectML in each.

    ``instead`` says which DirectML is loaded where the package has none.
    """

    package: str
    first: str
    last: str
    directml: str | None
    instead: str = ""


PACKAGES: Final = tuple(Packaged(*row) for row in _RELEASES["packages"])
"""The packages with a DirectML.dll, by ranges of releases: PyPI's wheels for Windows, and npm's onnxruntime-node.

The version is that of the file's version resource; the packages for x64 and arm64 contain the same.
"""

Release: TypeAlias = tuple[int, int, int]
"""A release of DirectML: its major, minor and patch version."""

NEWEST_PROVIDER: Final = (1, 24)
"""The newest release of onnxruntime-directml, for ``--via ort`` where no package is named."""

NEWEST_READ: Final = (1, 30)
"""The newest release of ONNX Runtime whose DirectML provider was read."""


@dataclass(frozen=True)
class Target:
    """A DirectML library's feature level, and the capabilities of the adapter it runs on.

    ``double_precision`` is D3D12's DoublePrecisionFloatShaderOps, ``typed_uav_loads`` its
    TypedUAVLoadAdditionalFormats, ``native_16_bit_ops`` its Native16BitShaderOpsSupported. ``note`` says what about the
    name was inferred, else it is empty.
    """

    feature_level: FeatureLevel
    name: str = ""
    double_precision: bool = True
    typed_uav_loads: bool = True
    native_16_bit_ops: bool = True
    note: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.feature_level, FeatureLevel):
            object.__setattr__(self, "feature_level", FeatureLevel.parse(self.feature_level))
        if not self.name:
            object.__setattr__(self, "name", self.feature_level.short)

    @cached_property
    def _hash(self) -> int:
        return hash((int(self.feature_level), *self.capabilities))

    def __hash__(self) -> int:
        return self._hash  # kept, since targets are keys of caches, and without strings, so that it can be pickled

    @property
    def capabilities(self) -> tuple[bool, ...]:
        """The capabilities of the adapter, in the order of the fields."""
        return self.double_precision, self.typed_uav_loads, self.native_16_bit_ops

    def simulates_as(self, other: Target) -> bool:
        """Return True if both simulate the same, whatever their names."""
        return (
            self.feature_level == other.feature_level
            and self.capabilities == other.capabilities
            and self.highest_minimum == other.highest_minimum
        )

    @property
    def label(self) -> str:
        """The name with its level: ``windows-11-21h2 (4_0)``; a level alone stands for itself."""
        level = self.feature_level.short
        return self.name if self.name.partition("+")[0] == level else f"{self.name} ({level})"

    def __str__(self) -> str:
        return self.label

    def __repr__(self) -> str:
        """Return the call that makes an equal target, as short as it can be."""
        if Target.parse(self.spelling) == self:
            return f"Target.parse({self.spelling!r})"
        supplied = {"name": self.feature_level.short} | dict.fromkeys(_LACKS, True) | {"note": ""}
        given = [f"{name}={getattr(self, name)!r}" for name, value in supplied.items() if getattr(self, name) != value]
        return f"Target({', '.join([repr(self.feature_level.short), *given])})"

    @cached_property
    def tile_support(self) -> TileSupport:
        """Tile's documented row at this level."""
        return tile_support(self.feature_level)

    @property
    def level(self) -> Level:
        """The facts of the feature level."""
        return LEVELS[self.feature_level]

    @property
    def highest_minimum(self) -> FeatureLevel:
        """The highest minimum feature level that DMLCreateDevice1 takes: its own level, but for one patch release."""
        return _HIGHEST_MINIMUMS.get(self.name.partition("+")[0].lower(), self.feature_level)

    @property
    def directml(self) -> tuple[int, int, int] | None:
        """The release of DirectML that the name means, such as (1, 8, 0); None for a level alone."""
        return _directml_in(self.spelling.partition("+")[0])

    def supports_data_type(self, data_type: int) -> bool:
        """Return True if tensors can have a data type, by CheckFeatureSupport; an operator may take fewer types."""
        if self.missing_capability(data_type):
            return False
        return any(data_type in types_of(*row.new_types) for row in LEVELS.values() if row.level <= self.feature_level)

    def missing_capability(self, data_type: int) -> str | None:
        """Return the capability, in D3D12's words, that the adapter lacks for a data type, or None."""
        if data_type == TensorDataType.FLOAT64 and not self.double_precision:
            return "DoublePrecisionFloatShaderOps"
        if self.typed_uav_loads:
            return None
        element_size = ELEMENT_SIZES.get(data_type)
        if element_size == 1 and self.level.runtime.bytes_need_typed_loads:
            return "TypedUAVLoadAdditionalFormats"
        if element_size == 2 and not self.native_16_bit_ops:
            return "TypedUAVLoadAdditionalFormats or Native16BitShaderOpsSupported"
        return None

    @property
    def spelling(self) -> str:
        """A text that ``parse`` reads as a target that simulates the same: the name, or that of the level if it is new.

        What the adapter lacks stands behind it: ``5_2+no-typed-uav-loads``.
        """
        name = self.name.partition("+")[0].lower()
        try:
            known = _named(name).feature_level == self.feature_level
        except ValueError:
            known = False
        lacks = (lack for field, lack in _LACKS.items() if not getattr(self, field))
        return "+".join([name if known else self.feature_level.short, *lacks])

    @classmethod
    def parse(cls, value: TargetLike) -> Target:
        """Return the target named by a level, a DirectML version, a Windows release, or a package and its release.

            >>> [str(Target.parse(name)) for name in ("4_1", 0x4100, "directml-1.6.0", "windows-10-22h2")]
            ['4_1', '4_1', 'directml-1.6.0 (4_0)', 'windows-10-22h2 (2_0)']
            >>> Target.parse("onnxruntime-directml-1.16.3+no-double-precision").double_precision
            False

        Upper and lower case are the same. A Target is returned as it is. Raises ValueError for anything else, with the
        nearest known names, or, for a release of Windows or a package without a known DirectML, the one it loads.
        """
        if isinstance(value, Target):
            return value
        return _parsed(value.strip().lower()) if isinstance(value, str) else cls(FeatureLevel.parse(value))


DEFAULT_TARGET: Final = Target(FeatureLevel.DML_FEATURE_LEVEL_6_4)
"""The target where none is simulated, named or configured."""

TargetLike = Target | FeatureLevel | str | int
"""The types that ``Target.parse`` takes."""


@cache
def first_directml(level: FeatureLevel) -> str:
    """Return the first widespread release of DirectML with a level."""
    return next(f"{row.version}.0" for row in DIRECTML_VERSIONS if row.level >= level and not row.remark)


@cache
def oldest_windows(level: FeatureLevel) -> str | None:
    """Return the oldest Windows release whose DirectML has a feature level, or None if no release has it yet.

    >>> oldest_windows(FeatureLevel.parse("4_1"))
    'windows-11-22h2'
    """
    return next(
        (release.name for release in WINDOWS_RELEASES if Target.parse(release.name).feature_level >= level), None
    )


def target_names() -> list[str]:
    """Return every name that ``Target.parse`` lists, levels first."""
    names = [level.short for level in FeatureLevel]
    for row in DIRECTML_VERSIONS:
        names += [f"directml-{row.version}.{patch}" for patch in row.patches or (1,)]
    names += [release.name for release in WINDOWS_RELEASES]
    rows = (row for row in PACKAGES if row.directml)
    names += [f"{row.package}-{version}" for row in rows for version in dict.fromkeys((row.first, row.last))]
    return names


_LACKS: Final[Mapping[str, str]] = {
    "double_precision": "no-double-precision",
    "typed_uav_loads": "no-typed-uav-loads",
    "native_16_bit_ops": "no-native-16-bit-ops",
}
"""The capabilities of an adapter, and the suffixes of a target's name, after ``+``, where it lacks them."""


@lru_cache(maxsize=256)
def _parsed(text: str) -> Target:
    """Return the target of a name, which may be followed by lacking capabilities, each after a +."""
    name, *lacks = text.split("+")
    target = _named(name)
    for lack in lacks:
        if lack not in _LACKS.values():
            raise ValueError(f"{lack!r} in {text!r} is no capability; expected {', '.join(_LACKS.values())}")
    lacking: dict[str, Any] = {field: False for field, lack in _LACKS.items() if lack in lacks}
    return replace(target, **lacking, name="+".join([target.name, *(_LACKS[field] for field in lacking)]))


@lru_cache(maxsize=256)
def _named(name: str) -> Target:
    if why := _RELEASES["no_targets"].get(name):
        raise ValueError(f"{name!r} is no target: {why}")
    if target := _directml_target(name) or _windows_target(name) or _packaged_target(name):
        return target
    try:
        return Target(FeatureLevel.parse(name))
    except ValueError:
        names = target_names()
        version = name.removeprefix("ort-").removeprefix("onnxruntime-")
        meant = [known for known in names if known.endswith(f"-{version}")]
        if not meant and packaged_directml(wheel := f"onnxruntime-directml-{version}"):
            meant = [wheel]
        hint = did_you_mean(name, meant or names, "see `dml-tile levels`", count=4, cutoff=0 if meant else 0.5)
        raise ValueError(
            f"{name!r} is no known target; expected a feature level such as 4_1, directml-VERSION, windows-RELEASE or "
            f"a package with a DirectML, such as onnxruntime-directml-VERSION: {hint}"
        ) from None


def _directml_target(name: str) -> Target | None:
    parts = re.fullmatch(r"directml-([0-9]+\.[0-9]+)(?:\.(0|[1-9][0-9]?))?", name)
    row = parts and next((row for row in DIRECTML_VERSIONS if row.version == parts[1]), None)
    if not parts or not row or (parts[2] and row.patches is not None and int(parts[2]) not in row.patches):
        return None
    return Target(row.level, name, note=row.note)


def _windows_target(name: str) -> Target | None:
    release = next((release for release in WINDOWS_RELEASES if release.name == name), None)
    return release and Target(_named(f"directml-{release.directml}").feature_level, name, note=release.note)


def _packaged_target(name: str) -> Target | None:
    """Return the target of a package's release. Raises ValueError for one without a DirectML."""
    if not (found := packaged_directml(name)):
        return None
    row, read = found
    if row.directml is None:
        raise ValueError(f"{name!r} is no target: there is no DirectML in it; {row.instead}")
    library = _named(f"directml-{row.directml}")
    notes = [library.note] if library.note else []
    if read:
        notes.append(f"this release was not read; its DirectML is taken to be that of {read}")
    return Target(library.feature_level, name, note="; ".join(notes))


@lru_cache(maxsize=256)
def _directml_in(name: str) -> Release | None:
    packaged = packaged_directml(name)
    windows = next((release.directml for release in WINDOWS_RELEASES if release.name == name), None)
    version = packaged[0].directml if packaged else windows or name.removeprefix("directml-")
    if not version or name in {level.short for level in FeatureLevel}:
        return None
    major, minor, patch, *_ = (*numbers_in(version), 0)
    return major, minor, patch


@cache
def releases_of(level: FeatureLevel) -> list[Release]:
    """Return the releases of DirectML that have a level and none above; of a version in no table, its first."""
    found = list[Release]()
    for row in DIRECTML_VERSIONS:
        major, minor = numbers_in(row.version)
        found += [(major, minor, patch) for patch in row.patches or (0,) if row.level == level]
    return found


_PROVIDERS: Final = frozenset({"onnxruntime-directml", "onnxruntime-node", "onnxruntime-windowsml"})
"""The packages whose version is that of the provider in them."""

_PACKAGE: Final = "|".join(dict.fromkeys(row.package for row in PACKAGES))
_NAME: Final = rf"({_PACKAGE})-([0-9]{{1,5}})\.([0-9]{{1,5}})(?:\.(0|[1-9][0-9]{{0,4}}))?"
_NO_PATCH: Final = 10**5
"""Stands for the patch of a name without one: beyond all, so that the newest is the nearest."""


def packaged_directml(name: str) -> tuple[Packaged, str | None] | None:
    """Return the row of ``PACKAGE-VERSION``, and the release of its minor version that was read in its place, if any.

    A name without a patch release means those of the row, unless the minor version has several rows. Returns None for
    other names, and for minor versions of which nothing was read.
    """
    if not (parts := re.fullmatch(_NAME, name)):
        return None
    version = (int(parts[2]), int(parts[3]), int(parts[4]) if parts[4] else _NO_PATCH)
    near = []
    for row in PACKAGES:
        nearest = max(numbers_in(row.first), min(version, numbers_in(row.last)))
        if row.package == parts[1] and nearest[:2] == version[:2]:
            read = None if nearest == version else ".".join(map(str, nearest))
            near.append((abs(nearest[2] - version[2]), row, read))
    if not near:
        return None
    _, row, read = min(near, key=lambda each: each[0])
    return row, read if parts[4] or len(near) > 1 else None


def provider_release(name: str) -> tuple[int, int] | None:
    """Return the release of ONNX Runtime's DirectML provider in ``PACKAGE-VERSION``; None for other names."""
    parts = re.match(_NAME, name)
    return (int(parts[2]), int(parts[3])) if parts and parts[1] in _PROVIDERS else None


def package_of(release: tuple[int, int]) -> Packaged:
    """Return the first package with ONNX Runtime's DirectML provider of a release, and a DirectML."""
    rows = (row for row in PACKAGES if row.package in _PROVIDERS and row.directml)
    return next(row for row in rows if numbers_in(row.first)[:2] <= release <= numbers_in(row.last)[:2])


def numbers_in(version: str) -> tuple[int, ...]:
    """Return the parts of a version."""
    return tuple(map(int, version.split(".")))
