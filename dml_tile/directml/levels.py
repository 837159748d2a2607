"""The facts of each feature level, one row a level: documented, measured, and on which build.

Three builds of DirectML were measured, which report 5_0, 5_2 and 6_2. Older levels are taken to be as 5_0, 5_1 as 5_2,
and all from 6_0 on as 6_2, which is inferred at 6_0 and 6_1. The build that reports 5_0 has the operators of 5_1, and
answers about them as 5_1's pages do; for Tile the two levels do not differ.

Page: https://learn.microsoft.com/en-us/windows/ai/directml/dml-feature-level-history
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dml_tile.directml.enums import HRESULT, FeatureLevel

_L = FeatureLevel.parse


class Runtime(NamedTuple):
    """The measured differences between builds of DirectML."""

    wraps_extents: bool
    """It computes a strided tensor's extent modulo 2^32."""
    has_private_tensors: bool
    """It has a tensor type of its own, 0x80000000."""
    bytes_need_typed_loads: bool
    """It takes UINT8 and INT8 only on an adapter with TypedUAVLoadAdditionalFormats."""
    rounds_persistent_sizes: bool
    """It rounds the size of an OWNED_BY_DML tensor in the persistent resource up to 4 bytes."""
    compares_elements: bool
    """CompileGraph compares packed tensors at the ends of an edge by their elements."""
    takes_highest_flag: bool
    """DMLCreateDevice1 takes the flag 0x80000000."""
    debug_layers: HRESULT
    """DMLCreateDevice1's result for the DEBUG flag where the debug layers are missing."""


_INVALID: Final = HRESULT.E_INVALIDARG
_UNSUPPORTED: Final = HRESULT.DXGI_ERROR_UNSUPPORTED
_AS_5_0: Final = Runtime(True, False, True, False, True, True, _INVALID)
_AS_5_2: Final = Runtime(True, False, True, False, False, False, _UNSUPPORTED)
_AS_6_2: Final = Runtime(False, True, False, True, False, False, _UNSUPPORTED)


CONSTANT_NODES: Final = _L("6_2")
"""The level that brings DML_GRAPH_NODE_TYPE_CONSTANT, by the page, DirectML.h (0x6200) and Releases.md (1.13.0). The
build that reports 6_2 returns E_NOTIMPL for one, and does not count: ONNX Runtime, DxDispatch and DirectMLX create such
nodes on Windows.
"""


class Level(NamedTuple):
    """The facts of a feature level."""

    level: FeatureLevel
    runtime: Runtime
    tiles_are_measured: bool = False
    """True if Tile, graphs and adapters were measured, at this level or by the next older build."""
    operators_are_measured: bool = False
    """True if other operators were measured at this very level."""
    exports_create_device1: bool = True
    """Its DirectML.dll has the function DMLCreateDevice1, which DirectML.h declares from 2_0 on."""
    has_level_queries: bool = True
    """CheckFeatureSupport knows FEATURE_LEVELS."""
    takes_custom_heaps: bool = True
    """An initializer's input may be on a heap of type CUSTOM."""
    has_graphs: bool = True
    """IDMLDevice1, with CompileGraph, is there."""
    new_types: tuple[str, ...] = ()
    """The kinds of data types that it brought, for whichever operators."""


LEVELS: Final = {
    row.level: row
    for row in (
        Level(
            _L("1_0"),
            _AS_5_0,
            exports_create_device1=False,
            has_level_queries=False,
            takes_custom_heaps=False,
            has_graphs=False,
            new_types=("float", "int"),
        ),
        Level(_L("2_0"), _AS_5_0, has_graphs=False),
        Level(_L("2_1"), _AS_5_0),
        Level(_L("3_0"), _AS_5_0, new_types=("float64", "int64")),
        Level(_L("3_1"), _AS_5_0),
        Level(_L("4_0"), _AS_5_0),
        Level(_L("4_1"), _AS_5_0),
        Level(_L("5_0"), _AS_5_0, tiles_are_measured=True),
        Level(_L("5_1"), _AS_5_2, tiles_are_measured=True, operators_are_measured=True),
        Level(_L("5_2"), _AS_5_2, tiles_are_measured=True, operators_are_measured=True),
        Level(_L("6_0"), _AS_6_2),
        Level(_L("6_1"), _AS_6_2),
        Level(_L("6_2"), _AS_6_2, tiles_are_measured=True, operators_are_measured=True),
        Level(_L("6_3"), _AS_6_2, tiles_are_measured=True, new_types=("int4",)),
        Level(_L("6_4"), _AS_6_2, tiles_are_measured=True),
    )
}


def measured_like(level: FeatureLevel) -> FeatureLevel:
    """Return the level of the build that a level's operators are taken to be as: the next with one, else the last."""
    measured = [each for each, row in LEVELS.items() if row.operators_are_measured]
    return next((each for each in measured if each >= level), measured[-1])
