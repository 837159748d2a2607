"""The pydantic mirrors of DML_GRAPH_DESC, its operator nodes and its edges."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Self, SupportsIndex, TypeAlias

from pydantic import Field, GetPydanticSchema, model_validator
from pydantic_core import PydanticCustomError, core_schema

from dml_tile.descriptors.operator import UNKNOWN_STRUCT, OperatorDesc
from dml_tile.descriptors.structs import Enumerator, Struct, left_out, ordered
from dml_tile.descriptors.tile import UINT, UINT64, TileOperatorDesc
from dml_tile.directml.enums import GraphEdgeType, GraphNodeType, OperatorType
from dml_tile.directml.operators import operator_named
from dml_tile.text import plural

if TYPE_CHECKING:
    from typing_extensions import Buffer

NODE_TYPE: Final = Enumerator(GraphNodeType.__members__, "DML_GRAPH_NODE_TYPE_")
EDGE_TYPE: Final = Enumerator(GraphEdgeType.__members__, "DML_GRAPH_EDGE_TYPE_")
_ENTRIES: Final = ordered("a list or a tuple")


class _GraphPart(Struct):
    """The description of a node or an edge, with the type that stands before it in C; it has a name for debugging."""

    name: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _respell(cls, data: Any) -> Any:
        return _flattened(data)


def _flattened(data: Any) -> Any:
    """Put the fields under ``Desc``, as they lie in C, beside ``Type``."""
    if not isinstance(data, dict) or not isinstance(data.get("Desc"), dict):
        return data
    return {**{key: value for key, value in data.items() if key != "Desc"}, **data["Desc"]}


def _bytes(value: Any) -> bytes:
    """Return bytes, from base64 if they are text."""
    try:
        return b64decode(value, validate=True) if isinstance(value, str) else memoryview(value).tobytes()
    except (TypeError, ValueError, Error):
        raise PydanticCustomError("bytes", "Input should be bytes, or their text in base64") from None


_WRITTEN: Final = core_schema.plain_serializer_function_ser_schema(
    lambda data: b64encode(data).decode(), when_used="json"
)
_BASE64: Final = GetPydanticSchema(
    lambda source, handler: core_schema.no_info_plain_validator_function(_bytes, serialization=_WRITTEN),
    lambda schema, handler: {"type": "string", "contentEncoding": "base64"},
)


class OperatorGraphNodeDesc(_GraphPart):
    """DML_OPERATOR_GRAPH_NODE_DESC: an operator of a graph, by its descriptor; None is a null pointer.

    A node of type CONSTANT has no operator, but the fields of DML_CONSTANT_DATA_GRAPH_NODE_DESC.
    """

    type: Annotated[GraphNodeType | int, NODE_TYPE] = Field(default=GraphNodeType.OPERATOR)
    operator: OperatorDesc | None
    """The descriptor of the IDMLOperator, or null."""
    data: Annotated[bytes, _BASE64] | None = None
    """A constant's bytes, in JSON in base64; None where they are not known, as in a capture."""
    data_size: UINT64 | None = None
    """The number of a constant's bytes, by default that of its data."""
    null_data: bool = False
    """True where a constant's Data is a null pointer."""

    @model_validator(mode="before")
    @classmethod
    def _respell(cls, data: Any) -> Any:
        """Read a tile, or an operator's descriptor, as the node's operator."""
        match data := _flattened(data):
            case TileOperatorDesc() | OperatorDesc():
                return {"operator": _operator(data)}
            case {"Operator": operator, **rest} | {"operator": operator, **rest}:
                return {"Operator": _operator(operator), **rest}
            case {"Type": str(kind)} | {"type": str(kind)} if operator_named(kind):
                raise PydanticCustomError("operator_key", "An operator's descriptor belongs under the key Operator")
        return data

    @model_validator(mode="after")
    def _work_out_what_is_left_out(self) -> Self:
        if self.data is not None and self.null_data:
            raise PydanticCustomError("null_data", "NullData is true, but there are Data")
        if self.data_size is None:
            self.__dict__.update(self._worked_out())
        return self

    def _worked_out(self) -> dict[str, Any]:
        return {"data_size": None if self.data is None else len(self.data)}

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            operator: OperatorDesc | TileOperatorDesc | None,
            data: Buffer | str | None = ...,
            data_size: SupportsIndex | None = ...,
            null_data: bool = ...,
            name: str | None = ...,
            type: SupportsIndex | str = ...,  # noqa: A002
        ) -> None: ...


def is_constant(node: OperatorGraphNodeDesc | None) -> bool:
    """Return True for a DML_CONSTANT_DATA_GRAPH_NODE_DESC."""
    return node is not None and node.type == GraphNodeType.CONSTANT


def _operator(data: Any) -> Any:
    is_tile = isinstance(data, TileOperatorDesc) or (isinstance(data, dict) and not data.keys() & {"Type", "type"})
    return {"type": OperatorType.TILE, "desc": data} if is_tile else data


class InputGraphEdge(_GraphPart):
    """DML_INPUT_GRAPH_EDGE_DESC: from an input of the graph to an input of a node."""

    type: Annotated[GraphEdgeType | int, EDGE_TYPE] = Field(default=GraphEdgeType.INPUT)
    graph_input_index: UINT
    to_node_index: UINT
    to_node_input_index: UINT = 0


class OutputGraphEdge(_GraphPart):
    """DML_OUTPUT_GRAPH_EDGE_DESC: from an output of a node to an output of the graph."""

    type: Annotated[GraphEdgeType | int, EDGE_TYPE] = Field(default=GraphEdgeType.OUTPUT)
    from_node_index: UINT
    from_node_output_index: UINT = 0
    graph_output_index: UINT


class IntermediateGraphEdge(_GraphPart):
    """DML_INTERMEDIATE_GRAPH_EDGE_DESC: from an output of a node to an input of a node."""

    type: Annotated[GraphEdgeType | int, EDGE_TYPE] = Field(default=GraphEdgeType.INTERMEDIATE)
    from_node_index: UINT
    from_node_output_index: UINT = 0
    to_node_index: UINT
    to_node_input_index: UINT = 0


NodeLike: TypeAlias = OperatorGraphNodeDesc | OperatorDesc | TileOperatorDesc | None
"""A node, the descriptor of its operator, or None for a null Desc."""


class GraphArray(NamedTuple):
    """An array of a graph: its name in C, the field that counts its entries, and their struct and type."""

    c_name: str
    counted_by: str
    struct: type[Struct]
    types: Enumerator
    type: GraphNodeType | GraphEdgeType


ARRAYS: Final = {
    "nodes": GraphArray("Nodes", "node_count", OperatorGraphNodeDesc, NODE_TYPE, GraphNodeType.OPERATOR),
    "input_edges": GraphArray("InputEdges", "input_edge_count", InputGraphEdge, EDGE_TYPE, GraphEdgeType.INPUT),
    "output_edges": GraphArray("OutputEdges", "output_edge_count", OutputGraphEdge, EDGE_TYPE, GraphEdgeType.OUTPUT),
    "intermediate_edges": GraphArray(
        "IntermediateEdges", "intermediate_edge_count", IntermediateGraphEdge, EDGE_TYPE, GraphEdgeType.INTERMEDIATE
    ),
}
"""The arrays of a graph, by their names in Python."""


class GraphDesc(Struct):
    """DML_GRAPH_DESC: operators and the edges between them. An edge leads from one output to one input.

    Counts of entries are by default the lengths of their arrays. An entry that is None has a null Desc.
    """

    input_count: UINT
    """The number of inputs of the graph."""
    output_count: UINT
    """The number of outputs of the graph."""
    node_count: UINT = left_out()
    """The number of Nodes."""
    nodes: Annotated[tuple[OperatorGraphNodeDesc | None, ...], Field(fail_fast=True), _ENTRIES] | None
    input_edge_count: UINT = left_out()
    """The number of InputEdges."""
    input_edges: Annotated[tuple[InputGraphEdge | None, ...], Field(fail_fast=True), _ENTRIES] | None = ()
    output_edge_count: UINT = left_out()
    """The number of OutputEdges."""
    output_edges: Annotated[tuple[OutputGraphEdge | None, ...], Field(fail_fast=True), _ENTRIES] | None = ()
    intermediate_edge_count: UINT = left_out()
    """The number of IntermediateEdges."""
    intermediate_edges: Annotated[tuple[IntermediateGraphEdge | None, ...], Field(fail_fast=True), _ENTRIES] | None = ()

    @model_validator(mode="after")
    def _work_out_what_is_left_out(self) -> Self:
        values = self.__dict__
        for count, worked_out in self._worked_out().items():
            if values[count] < 0:
                values[count] = worked_out
        return self

    def _worked_out(self) -> dict[str, Any]:
        return {each.counted_by: len(getattr(self, name) or ()) for name, each in ARRAYS.items()}

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            input_count: SupportsIndex,
            output_count: SupportsIndex,
            nodes: Sequence[NodeLike] | None,
            input_edges: Sequence[InputGraphEdge | None] | None = ...,
            output_edges: Sequence[OutputGraphEdge | None] | None = ...,
            intermediate_edges: Sequence[IntermediateGraphEdge | None] | None = ...,
            node_count: SupportsIndex = ...,
            input_edge_count: SupportsIndex = ...,
            output_edge_count: SupportsIndex = ...,
            intermediate_edge_count: SupportsIndex = ...,
        ) -> None: ...

    def __str__(self) -> str:
        """Return the graph in one line: ``graph of 2 nodes, 1 input, 1 output``."""
        parts = (self.node_count, "node"), (self.input_count, "input"), (self.output_count, "output")
        return f"graph of {', '.join(plural(*part) for part in parts)}"


class CapturedGraph(GraphDesc):
    """A graph of a capture, whose operators are described, and judged, on lines of their own.

    ``UNKNOWN_OPERATOR`` stands for an operator that is not known.
    """


UNKNOWN_OPERATOR: Final = OperatorDesc(type=OperatorType.INVALID, desc=UNKNOWN_STRUCT)


Descriptor: TypeAlias = OperatorDesc | TileOperatorDesc | GraphDesc
"""A descriptor."""
