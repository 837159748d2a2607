"""A DirectML-style operator descriptor emulator for DML_TILE_OPERATOR_DESC that runs anywhere.

    >>> import dml_tile
    >>> desc = dml_tile.TileOperatorDesc.from_input(data_type="INT64", sizes=[1, 1, 2, 3], repeats=[1, 1, 3, 3])
    >>> [finding.rule for finding in dml_tile.check(desc, "windows-11-21h2")]
    ['DML-TILE-DataType-level', 'DML-TILE-DataType-level']
    >>> print(dml_tile.lowest_level(desc))
    4_1

The names below are imported when they are first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

__version__ = "0.1.0"  # pyproject.toml's; importlib.metadata takes longer to find it than Python to start

# `python -m docs.generate` writes __init__.pyi of these, for type checkers.
_NAMES = {
    "arrays": "tile",
    "back_ends.chromium": "op_support_limits",
    "back_ends.placement": "NamedNode PlacedModel Placement Reason",
    "bindings.memory": "POISON BufferLike Bytes Padding SupportsDLPack tensor_view",
    "bindings.resources": "BindingDesc BindingLike Buffer BufferArrayBinding BufferBinding Direct3DDevice Span",
    "checking": "check require",
    "checks.catalogue": "RULES",
    "checks.file_check": "ModelResults check_model",
    "checks.placements": "Departure ModelNodes",
    "checks.result": "CheckedFile Result Verdict",
    "checks.sweep": "sweep",
    "checks.via": "check_via",
    "descriptors.graph": (
        "Descriptor GraphDesc InputGraphEdge IntermediateGraphEdge NodeLike OperatorGraphNodeDesc OutputGraphEdge"
    ),
    "descriptors.numbers": "FLOAT ScaleBias Size2D",
    "descriptors.operator": "OperatorDesc OperatorFields OperatorFieldsLike",
    "descriptors.tile": (
        "UINT UINT64 UINTS BufferTensorDesc DataTypeLike IntegersLike TensorDesc TensorFlagsLike TileOperatorDesc"
    ),
    "device.device": "Device LevelLike",
    "device.dispatchables": "BindingProperties CompiledOperator Dispatchable Operator OperatorInitializer",
    "device.dispatches": "CommandList CommandRecorder",
    "device.table": "Bindings BindingTable BindingTableDesc",
    "directml.data_types": "TensorDataType",
    "directml.dtypes": "data_type_of dtype_of",
    "directml.enums": (
        "HRESULT BindingType CommandListType CreateDeviceFlags ExecutionFlags Feature FeatureLevel GraphEdgeType "
        "GraphNodeType HeapType OperatorType ResourceDimension ResourceFlags TensorFlags TensorType"
    ),
    "directml.levels": "Level Runtime",
    "directml.targets": "Target TargetLike TileSupport",
    "emit.cpp": "cpp_text get_include",
    "errors": "DmlError",
    "execution.executor": "CompiledTile compile_tile execute",
    "execution.mover": "BoundTile Progress",
    "findings": "Against Basis Finding Position Rule Severity Try Violation",
    "geometry.layout": "calc_buffer_tensor_size",
    "lowering.lower": "lower",
    "lowering.run": "run_lowering",
    "lowering.steps": "Lowering LoweringStep StepBuffer",
    "pictures.picture": "Picture show",
    "readers.c_structs": (
        "DML_GRAPH_DESC DML_OPERATOR_DESC DML_TILE_OPERATOR_DESC read_graph_desc read_operator_desc "
        "read_tile_operator_desc write_operator_desc write_tile_operator_desc"
    ),
    "readers.item": "Item",
    "readers.model_tile": "UnknownField ValueOrigin ValueSource",
    "rules.check": "lowest_level",
    "rules.device": "Removal",
    "simulation.target": "Simulation current_target simulate",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

_DRAWN = "TileOperatorDesc"

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    if name == _DRAWN:
        register_strategies()
    return value


def register_strategies() -> None:
    """Let ``st.from_type`` draw tiles; hypothesis calls this, as it may be imported first or last."""
    if "hypothesis" in sys.modules and _DRAWN in globals():
        import_module(f"{__name__}.testing.strategies")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
