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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dml_tile.arrays.numpy import tile as tile
    from dml_tile.back_ends.webnn_limits import op_support_limits as op_support_limits
    from dml_tile.bindings.memory import POISON as POISON
    from dml_tile.bindings.memory import BufferLike as BufferLike
    from dml_tile.bindings.memory import Bytes as Bytes
    from dml_tile.bindings.memory import Padding as Padding
    from dml_tile.bindings.memory import SupportsDLPack as SupportsDLPack
    from dml_tile.bindings.memory import tensor_view as tensor_view
    from dml_tile.bindings.resources import BindingDesc as BindingDesc
    from dml_tile.bindings.resources import BindingLike as BindingLike
    from dml_tile.bindings.resources import Buffer as Buffer
    from dml_tile.bindings.resources import BufferArrayBinding as BufferArrayBinding
    from dml_tile.bindings.resources import BufferBinding as BufferBinding
    from dml_tile.bindings.resources import Direct3DDevice as Direct3DDevice
    from dml_tile.bindings.resources import Span as Span
    from dml_tile.checks.catalogue import RULES as RULES
    from dml_tile.checks.models import check_model as check_model
    from dml_tile.checks.models import check_via as check_via
    from dml_tile.checks.result import Result as Result
    from dml_tile.checks.result import Verdict as Verdict
    from dml_tile.checks.sweep import CheckedFile as CheckedFile
    from dml_tile.checks.sweep import sweep as sweep
    from dml_tile.descriptors.graph import Descriptor as Descriptor
    from dml_tile.descriptors.graph import GraphDesc as GraphDesc
    from dml_tile.descriptors.graph import InputGraphEdge as InputGraphEdge
    from dml_tile.descriptors.graph import IntermediateGraphEdge as IntermediateGraphEdge
    from dml_tile.descriptors.graph import NodeLike as NodeLike
    from dml_tile.descriptors.graph import OperatorGraphNodeDesc as OperatorGraphNodeDesc
    from dml_tile.descriptors.graph import OutputGraphEdge as OutputGraphEdge
    from dml_tile.descriptors.tile import UINT as UINT
    from dml_tile.descriptors.tile import UINT64 as UINT64
    from dml_tile.descriptors.tile import UINTS as UINTS
    from dml_tile.descriptors.tile import BufferTensorDesc as BufferTensorDesc
    from dml_tile.descriptors.tile import DataTypeLike as DataTypeLike
    from dml_tile.descriptors.tile import IntegersLike as IntegersLike
    from dml_tile.descriptors.tile import OperatorDesc as OperatorDesc
    from dml_tile.descriptors.tile import TensorDesc as TensorDesc
    from dml_tile.descriptors.tile import TensorFlagsLike as TensorFlagsLike
    from dml_tile.descriptors.tile import TileOperatorDesc as TileOperatorDesc
    from dml_tile.device import BindingProperties as BindingProperties
    from dml_tile.device import Bindings as Bindings
    from dml_tile.device import BindingTable as BindingTable
    from dml_tile.device import BindingTableDesc as BindingTableDesc
    from dml_tile.device import CommandList as CommandList
    from dml_tile.device import CommandRecorder as CommandRecorder
    from dml_tile.device import CompiledOperator as CompiledOperator
    from dml_tile.device import Device as Device
    from dml_tile.device import Dispatchable as Dispatchable
    from dml_tile.device import LevelLike as LevelLike
    from dml_tile.device import Operator as Operator
    from dml_tile.device import OperatorInitializer as OperatorInitializer
    from dml_tile.device import RecordedDispatch as RecordedDispatch
    from dml_tile.directml.data_types import TensorDataType as TensorDataType
    from dml_tile.directml.dtypes import data_type_of as data_type_of
    from dml_tile.directml.dtypes import dtype_of as dtype_of
    from dml_tile.directml.enums import HRESULT as HRESULT
    from dml_tile.directml.enums import BindingType as BindingType
    from dml_tile.directml.enums import CommandListType as CommandListType
    from dml_tile.directml.enums import CreateDeviceFlags as CreateDeviceFlags
    from dml_tile.directml.enums import ExecutionFlags as ExecutionFlags
    from dml_tile.directml.enums import Feature as Feature
    from dml_tile.directml.enums import FeatureLevel as FeatureLevel
    from dml_tile.directml.enums import GraphEdgeType as GraphEdgeType
    from dml_tile.directml.enums import GraphNodeType as GraphNodeType
    from dml_tile.directml.enums import HeapType as HeapType
    from dml_tile.directml.enums import OperatorType as OperatorType
    from dml_tile.directml.enums import ResourceDimension as ResourceDimension
    from dml_tile.directml.enums import ResourceFlags as ResourceFlags
    from dml_tile.directml.enums import TensorFlags as TensorFlags
    from dml_tile.directml.enums import TensorType as TensorType
    from dml_tile.directml.targets import Target as Target
    from dml_tile.directml.targets import TargetLike as TargetLike
    from dml_tile.directml.targets import TileSupport as TileSupport
    from dml_tile.emit.cpp import cpp_text as cpp_text
    from dml_tile.emit.cpp import get_include as get_include
    from dml_tile.errors import DmlError as DmlError
    from dml_tile.execution.executor import CompiledTile as CompiledTile
    from dml_tile.execution.executor import compile_tile as compile_tile
    from dml_tile.execution.executor import execute as execute
    from dml_tile.execution.mover import BoundTile as BoundTile
    from dml_tile.execution.threads import Progress as Progress
    from dml_tile.findings import Against as Against
    from dml_tile.findings import Basis as Basis
    from dml_tile.findings import Finding as Finding
    from dml_tile.findings import Rule as Rule
    from dml_tile.findings import Severity as Severity
    from dml_tile.findings import Violation as Violation
    from dml_tile.geometry.layout import calc_buffer_tensor_size as calc_buffer_tensor_size
    from dml_tile.lowering.lower import lower as lower
    from dml_tile.lowering.lower import run_lowering as run_lowering
    from dml_tile.lowering.steps import Lowering as Lowering
    from dml_tile.lowering.steps import LoweringStep as LoweringStep
    from dml_tile.lowering.steps import StepBuffer as StepBuffer
    from dml_tile.pictures.picture import Picture as Picture
    from dml_tile.pictures.picture import show as show
    from dml_tile.readers.c_structs import DML_GRAPH_DESC as DML_GRAPH_DESC
    from dml_tile.readers.c_structs import DML_OPERATOR_DESC as DML_OPERATOR_DESC
    from dml_tile.readers.c_structs import DML_TILE_OPERATOR_DESC as DML_TILE_OPERATOR_DESC
    from dml_tile.readers.c_structs import read_graph_desc as read_graph_desc
    from dml_tile.readers.c_structs import read_operator_desc as read_operator_desc
    from dml_tile.readers.c_structs import read_tile_operator_desc as read_tile_operator_desc
    from dml_tile.readers.c_structs import write_operator_desc as write_operator_desc
    from dml_tile.readers.c_structs import write_tile_operator_desc as write_tile_operator_desc
    from dml_tile.rules.check import check as check
    from dml_tile.rules.check import lowest_level as lowest_level
    from dml_tile.rules.check import require as require
    from dml_tile.rules.device import Removal as Removal
    from dml_tile.simulation.target import Simulation as Simulation
    from dml_tile.simulation.target import current_target as current_target
    from dml_tile.simulation.target import simulate as simulate

    __version__: str

_NAMES = {
    "arrays.numpy": "tile",
    "back_ends.webnn_limits": "op_support_limits",
    "bindings.memory": "POISON BufferLike Bytes Padding SupportsDLPack tensor_view",
    "bindings.resources": "BindingDesc BindingLike Buffer BufferArrayBinding BufferBinding Direct3DDevice Span",
    "checks.catalogue": "RULES",
    "checks.models": "check_model check_via",
    "checks.result": "Result Verdict",
    "checks.sweep": "CheckedFile sweep",
    "descriptors.graph": (
        "Descriptor GraphDesc InputGraphEdge IntermediateGraphEdge NodeLike OperatorGraphNodeDesc OutputGraphEdge"
    ),
    "descriptors.tile": (
        "UINT UINT64 UINTS BufferTensorDesc DataTypeLike IntegersLike OperatorDesc TensorDesc TensorFlagsLike "
        "TileOperatorDesc"
    ),
    "device": (
        "BindingProperties BindingTable BindingTableDesc Bindings CommandList CommandRecorder "
        "CompiledOperator Device Dispatchable LevelLike Operator OperatorInitializer RecordedDispatch"
    ),
    "directml.data_types": "TensorDataType",
    "directml.dtypes": "data_type_of dtype_of",
    "directml.enums": (
        "HRESULT BindingType CommandListType CreateDeviceFlags ExecutionFlags Feature FeatureLevel GraphEdgeType "
        "GraphNodeType HeapType OperatorType ResourceDimension ResourceFlags TensorFlags TensorType"
    ),
    "directml.targets": "Target TargetLike TileSupport",
    "emit.cpp": "cpp_text get_include",
    "errors": "DmlError",
    "execution.executor": "CompiledTile compile_tile execute",
    "execution.mover": "BoundTile",
    "execution.threads": "Progress",
    "findings": "Against Basis Finding Rule Severity Violation",
    "geometry.layout": "calc_buffer_tensor_size",
    "lowering.lower": "lower run_lowering",
    "lowering.steps": "Lowering LoweringStep StepBuffer",
    "pictures.picture": "Picture show",
    "readers.c_structs": (
        "DML_GRAPH_DESC DML_OPERATOR_DESC DML_TILE_OPERATOR_DESC read_graph_desc read_operator_desc "
        "read_tile_operator_desc write_operator_desc write_tile_operator_desc"
    ),
    "rules.check": "check lowest_level require",
    "rules.device": "Removal",
    "simulation.target": "Simulation current_target simulate",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_HOMES)


if not TYPE_CHECKING:  # type checkers shall complain about unknown names

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            return import_module("importlib.metadata").version("dml-tile")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
