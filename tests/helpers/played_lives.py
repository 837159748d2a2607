"""Plays a life of devices: calls, as JSON, of the emulator or of DirectML behind the emulator's interface.

A call is a list: its name, and its arguments. An object is named by its kind and a number, modulo how many there are:
``c3`` is a compiled operator, and a call without its object is skipped. Kinds: h a device of Direct3D 12, b a buffer, d
an IDMLDevice, r a recorder, o an operator, c a compiled operator, i an initializer, t a binding table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from itertools import chain, repeat
from typing import Any, Final

from dml_tile import (
    BindingDesc,
    BindingTableDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    CommandList,
    Device,
    Direct3DDevice,
    Operator,
    OperatorInitializer,
)
from dml_tile.bindings.resources import BindingLike
from dml_tile.descriptors.graph import (
    GraphDesc,
    InputGraphEdge,
    IntermediateGraphEdge,
    OperatorGraphNodeDesc,
    OutputGraphEdge,
)
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc, described
from dml_tile.device.dispatches import IMMEDIATE
from dml_tile.directml.enums import HRESULT, BindingType, Feature, GraphNodeType
from dml_tile.errors import DmlError
from tests.helpers.descriptors import changed, page_tile, row

Life = dict[str, Any]
"""Its ``calls``, and whether it ``asks`` each device for its removed reason after each."""

TILES: Final = (
    page_tile(),
    page_tile(InputTensor__Flags=1),
    row("UINT8", [1, 1, 1, 3], [1, 1, 1, 2], InputTensor__Flags=1),
    row("FLOAT16", [3], [3]),
    page_tile(InputTensor__GuaranteedBaseOffsetAlignment=64),
    page_tile(OutputTensor__GuaranteedBaseOffsetAlignment=512),
    page_tile(InputTensor__TotalTensorSizeInBytes=30, InputTensor__Flags=1),
    row("INT64", [2, 3], [2, 2]),
    page_tile(OutputTensor__TotalTensorSizeInBytes=301),
    row("INT8", [1, 1, 1, 5], [1, 1, 1, 1], InputTensor__Flags=1, InputTensor__TotalTensorSizeInBytes=9),
    page_tile(Repeats=[1, 1, 3, 4]),
    page_tile(OutputTensor__Flags=1),
)
"""The last two are refused."""

_B: Final = row("FLOAT32", [1, 1, 6, 9], [1, 1, 2, 1])
GRAPH_TILES: Final = {
    "A": page_tile(),  # [1, 1, 2, 3] to [1, 1, 6, 9]
    "A owned": page_tile(InputTensor__Flags=1),
    "A aligned": page_tile(InputTensor__GuaranteedBaseOffsetAlignment=256),
    "A owned aligned": page_tile(InputTensor__Flags=1, InputTensor__GuaranteedBaseOffsetAlignment=256),
    "A large": page_tile(OutputTensor__TotalTensorSizeInBytes=512),
    "A strided": page_tile(OutputTensor__Strides=[54, 54, 1, 6]),
    "A padded": page_tile(OutputTensor__Strides=[96, 96, 16, 1], OutputTensor__TotalTensorSizeInBytes=384),
    "B": _B,
    "B owned": changed(_B, InputTensor__Flags=1),
    "B large": changed(_B, InputTensor__TotalTensorSizeInBytes=512),
    "B strided": changed(_B, InputTensor__Strides=[54, 54, 1, 6]),
    "B padded": changed(_B, InputTensor__Strides=[96, 96, 16, 1], InputTensor__TotalTensorSizeInBytes=384),
    "B small": row("FLOAT32", [1, 1, 6, 8], [1, 1, 2, 1], InputTensor__TotalTensorSizeInBytes=216),
    "B turned": row("FLOAT32", [1, 1, 9, 6], [1, 1, 2, 1]),
    "B of rank 2": row("FLOAT32", [6, 9], [2, 1]),
    "B of INT32": row("INT32", [1, 1, 6, 9], [1, 1, 2, 1]),
    "B of UINT8": row("UINT8", [1, 1, 24, 9], [1, 1, 2, 1]),
    "B of INT64": row("INT64", [1, 1, 3, 9], [1, 1, 2, 1]),
    "I": row("FLOAT32", [1, 1, 6, 9], [1, 1, 1, 1]),
    "half": row("FLOAT16", [3], [1], OutputTensor__TotalTensorSizeInBytes=12),
    "half of 2": row("FLOAT16", [2], [1], OutputTensor__TotalTensorSizeInBytes=8),
    "half strided": row("FLOAT16", [3], [1], OutputTensor__Strides=[1], OutputTensor__TotalTensorSizeInBytes=12),
    "single": row("FLOAT32", [3], [1]),
    "single of 2": row("FLOAT32", [2], [1]),
    "single strided": row("FLOAT32", [3], [1], InputTensor__Strides=[1]),
}
"""Tiles by the names that nodes of graphs have."""


def _chain(*tiles: Any, inputs: int = 1, outputs: int = 1, first: int = 0, last: int = 0) -> dict[str, Any]:
    """A graph of tiles one after another, from one input of several to one output of several."""
    return {
        "InputCount": inputs,
        "OutputCount": outputs,
        "Nodes": [[1, tile] for tile in tiles],
        "InputEdges": [[first, 0, 0]],
        "OutputEdges": [[len(tiles) - 1, 0, last]],
        "IntermediateEdges": [[i, 0, i + 1, 0] for i in range(len(tiles) - 1)],
    }


def _fan(first: str, second: str) -> dict[str, Any]:
    """A graph of two tiles, each with an input and an output of its own."""
    edges = {"InputEdges": [[0, 0, 0], [1, 1, 0]], "OutputEdges": [[0, 0, 0], [1, 0, 1]], "IntermediateEdges": []}
    return {"InputCount": 2, "OutputCount": 2, "Nodes": [[1, first], [1, second]], **edges}


GRAPHS: Final = (
    _chain("A"),
    _chain("A", "B"),
    _chain("A owned"),
    _chain("A owned", "I", "B"),
    _chain("A aligned", "B", inputs=2, first=1),
    _chain("A", "I", "I", outputs=2, last=1),
    _chain("A", "B turned"),
    _fan("A owned", "A"),
    _fan("A owned", "B owned"),
    _fan("A", "B of INT64"),
    _fan("A owned aligned", "A aligned"),
)
"""Graphs that lives compile, besides drawn ones."""

KNOWN_DEPARTURES: Final = {"graph: a constant feeds a tile": {"6_2": ["ok"]}}
"""What recorded lives come to on the emulator where it does not follow the builds for Linux, by the level: the feature
level history has constants from 6_2 on, and programs for Windows create them.
"""

CRASH: Final = "crash"
SKIPPED: Final = "skipped"


class SkipError(Exception):
    """A call's object does not exist."""


@dataclass
class Made:
    """An object of a life, and its device of Direct3D 12.

    ``use`` is a table's dispatchable, an initializer's operators, a compiled operator's graph, or an operator's tile.
    """

    object: Any
    host: Direct3DDevice
    use: Any = None


class Player:
    """The objects of a life, on the emulator unless other devices are given."""

    def __init__(
        self,
        make_host: Callable[[], Direct3DDevice],
        make_device: Callable[..., Any],
        note: Callable[[list[str]], None] = lambda results: None,
    ) -> None:
        self._make_host, self._make_device, self._note = make_host, make_device, note
        self._objects: dict[str, list[Made]] = defaultdict(list)
        self.ID3D12Device()
        self.DMLCreateDevice("h0")
        self.CreateCommandRecorder("d0")

    def play(self, life: Life) -> list[str]:
        """Return what each call came to, until one crashes."""
        results: list[str] = []
        for name, *arguments in life["calls"]:
            try:
                result = getattr(self, name.replace(".", "_"))(*arguments) or "ok"
            except SkipError:
                result = SKIPPED
            except DmlError as error:
                result = CRASH if error.crash else hexadecimal(error.hresult)
            asked = self._objects["d"] if life["asks"] and result not in (CRASH, SKIPPED) else ()
            reasons = [hexadecimal(device.object.get_device_removed_reason()) for device in asked]
            results.append(" ".join((result, *reasons)))
            if result == CRASH:
                break
            self._note(results)
        return results

    def _get(self, name: str | None) -> Any:
        """Return what was made under a name; None for null."""
        if name is None:
            return None
        objects = self._objects[name[0]]
        if not objects:
            raise SkipError
        return objects[int(name[1:]) % len(objects)]

    def _make(self, kind: str, device: str, method: str, *arguments: Any) -> Made:
        maker = self._get(device)
        made = Made(getattr(maker.object, method)(*arguments), maker.host)
        self._objects[kind].append(made)
        return made

    def ID3D12Device(self) -> None:  # noqa: N802 - the calls have the names of C
        host = self._make_host()
        self._objects["h"].append(Made(host, host))

    def Remove(self, host: str, reason: int) -> None:  # noqa: N802
        self._get(host).object.remove(HRESULT(reason))

    def CreateCommittedResource(self, host: str, width: int) -> None:  # noqa: N802
        owner = self._get(host).object
        self._objects["b"].append(Made(Buffer(width, direct3d_device=owner), owner))

    def DMLCreateDevice(self, host: str, minimum: str | int | None = None, flags: int = 0) -> None:  # noqa: N802
        owner = self._get(host).object
        self._objects["d"].append(Made(self._make_device(minimum, flags, direct3d_device=owner), owner))

    def GetDeviceRemovedReason(self, device: str) -> str:  # noqa: N802
        return hexadecimal(self._get(device).object.get_device_removed_reason())

    def CheckFeatureSupport(self, device: str, query: list[str | int] | int, feature: int | None = None) -> str:  # noqa: N802
        if feature is None:
            feature = Feature.FEATURE_LEVELS if isinstance(query, list) else Feature.TENSOR_DATA_TYPE_SUPPORT
        return f"{int(self._get(device).object.check_feature_support(feature, query)):#x}"

    def CreateCommandRecorder(self, device: str) -> None:  # noqa: N802
        self._make("r", device, "create_command_recorder")

    def CreateOperator(self, device: str, tile: Any) -> None:  # noqa: N802
        self._make("o", device, "create_operator", operator_of(tile)).use = tile

    def CompileOperator(self, device: str, operator: str, flags: int) -> None:  # noqa: N802
        made = self._get(operator)
        self._make("c", device, "compile_operator", _plain(made), flags).use = _chain(made and made.use)

    def CompileGraph(self, device: str, graph: dict[str, Any] | int | None, flags: int) -> None:  # noqa: N802
        drawn = GRAPHS[graph] if isinstance(graph, int) else graph
        self._make("c", device, "compile_graph", drawn and graph_of(drawn), flags).use = drawn

    def GetBindingProperties(self, dispatchable: str) -> str:  # noqa: N802
        return ",".join(map(str, astuple(self._get(dispatchable).object.get_binding_properties())))

    def CreateOperatorInitializer(self, device: str, operators: Sequence[str | None] | None) -> None:  # noqa: N802
        given = self._operators(operators)
        self._make("i", device, "create_operator_initializer", _plain(given)).use = given

    def initializer_Reset(self, initializer: str, operators: Sequence[str | None] | None) -> None:  # noqa: N802
        made, given = self._get(initializer), self._operators(operators)
        made.object.reset(_plain(given))
        made.use = given

    def _operators(self, names: Sequence[str | None] | None) -> list[Made | None] | None:
        return None if names is None else list(map(self._get, names))

    def CreateBindingTable(self, device: str, *desc: Any) -> None:  # noqa: N802
        dispatchable, given = self._table_desc(*desc)
        self._make("t", device, "create_binding_table", given).use = dispatchable

    def table_Reset(self, table: str, *desc: Any) -> None:  # noqa: N802
        made, (dispatchable, given) = self._get(table), self._table_desc(*desc)
        made.object.reset(given)
        made.use = dispatchable

    def _table_desc(self, *desc: Any) -> tuple[Made | None, BindingTableDesc | None]:
        if not desc:
            return None, None
        name, size, cpu, gpu = desc
        dispatchable = self._get(name)
        if size is None and name and name[0] != "o":
            size = dispatchable.object.get_binding_properties().required_descriptor_count
        return dispatchable, BindingTableDesc(_plain(dispatchable), cpu, gpu, 2 if size is None else size)

    def BindInputs(self, table: str, bindings: Any) -> None:  # noqa: N802
        made = self._get(table)
        made.object.bind_inputs(self._bindings(made, bindings, self._fitting_inputs, _sizes_of_inputs))

    def BindOutputs(self, table: str, bindings: Any) -> None:  # noqa: N802
        made = self._get(table)
        made.object.bind_outputs(self._bindings(made, bindings, self._fitting_outputs, _sizes_of_outputs))

    def BindTemporaryResource(self, table: str, binding: Any) -> None:  # noqa: N802
        made = self._get(table)
        made.object.bind_temporary_resource(self._resource(made, binding, "temporary_resource_size"))

    def BindPersistentResource(self, table: str, binding: Any) -> None:  # noqa: N802
        made = self._get(table)
        made.object.bind_persistent_resource(self._resource(made, binding, "persistent_resource_size"))

    def _resource(self, table: Made, binding: Any, size: str) -> BindingLike | None:
        told = getattr(table.use.object.get_binding_properties(), size) if table.use else 0
        if binding == "fit":
            return self._range(table, GOOD_RANGE) if told else BindingDesc()
        return None if binding is None else self._binding(table, binding, [told])

    def _bindings(
        self,
        table: Made,
        bindings: Any,
        fitting: Callable[[Made], list[BindingLike]],
        sizes: Callable[[Made], list[list[int]]],
    ) -> Any:
        if bindings is None:
            if table.use and not table.use.use:
                raise SkipError  # a null array of 0 bindings, of an initializer
            return None
        if bindings == "fit":
            if table.use is None:
                raise SkipError
            return fitting(table)
        told = chain(sizes(table.use) if table.use else (), repeat([]))
        return [self._binding(table, *each) for each in zip(bindings, told, strict=False)]

    def _fitting_inputs(self, table: Made) -> list[BindingLike]:
        good, nothing = self._range(table, GOOD_RANGE), BufferBinding(None)
        if isinstance(table.use.object, OperatorInitializer):
            kinds = [_inputs(operator.use) for operator in table.use.use]
            return [BufferArrayBinding([good if kind == "owned" else nothing for kind in each]) for each in kinds]
        return [good if kind == "bound" else BindingDesc() for kind in _inputs(table.use.use)]

    def _fitting_outputs(self, table: Made) -> list[BindingLike]:
        good = self._range(table, GOOD_RANGE)
        if isinstance(table.use.object, OperatorInitializer):
            return [good if "owned" in _inputs(operator.use) else BindingDesc() for operator in table.use.use]
        graph = table.use.use
        used = {edge[-1] for edge in graph["OutputEdges"]}
        return [good if i in used else BindingDesc() for i in range(graph["OutputCount"])]

    def _binding(self, table: Made, binding: Any, told: list[int]) -> BindingLike:
        match binding:
            case int(kind):
                return BindingDesc(kind)
            case ["array", None]:
                return BufferArrayBinding(None)
            case ["array", ranges]:
                pairs = zip(ranges, chain(told, repeat(0)), strict=False)
                return BufferArrayBinding([self._range(table, *pair) for pair in pairs])
            case ["none", placed]:
                described: Any = self._binding(table, placed, told)
                return BindingDesc(BindingType.NONE, described)
        return self._range(table, binding, *told[:1])

    def _range(self, table: Made, placed: Any, told: int = 0) -> BufferBinding:
        """A range: its offset and size; then a buffer's name, or its width, flags, heap, dimension and device.

        ``["told", -4]`` for a size is the size that the slot was told to need, less 4 bytes.
        """
        offset, size, *resource = placed
        if isinstance(size, list):
            size = max(told + size[1], 0)
        if len(resource) < 2:
            return BufferBinding(_plain(self._get(resource[0])) if resource else None, offset, size)
        width, flags, heap, dimension, host = resource
        owner = (self._get(host) if host else table.use or table).host
        buffer = Buffer(width, flags=flags, heap=heap, dimension=dimension, direct3d_device=owner)
        return BufferBinding(buffer, offset, size)

    def RecordDispatch(self, recorder: str, dispatchable: str | None, table: str | None, commands: Any) -> None:  # noqa: N802
        bindings = self._get(table)
        fitting = (bindings and bindings.use) or self._get("c0")
        wanted = _plain(fitting if dispatchable == "fit" else self._get(dispatchable))
        if isinstance(wanted, Operator):
            raise SkipError  # it cannot be dispatched
        lists = None if commands is None else IMMEDIATE
        if isinstance(commands, int):
            lists = CommandList(abs(commands), is_graphics=commands >= 0)
        self._get(recorder).object.record_dispatch(wanted, _plain(bindings), lists)


def _plain(made: Made | list[Made | None] | None) -> Any:
    """Return objects without what is known of them."""
    return [_plain(each) for each in made] if isinstance(made, list) else made and made.object


def _inputs(graph: dict[str, Any]) -> list[str]:
    """Return whether each input is bound at execution, or owned, or used by no node."""
    kinds = ["unused"] * graph["InputCount"]
    for i, node, _ in graph["InputEdges"]:
        kinds[i] = "owned" if _tensors(graph, node)[0].flags else "bound"
    return kinds


def _tensors(graph: dict[str, Any], node: int) -> tuple[BufferTensorDesc, BufferTensorDesc]:
    tile = operator_of(graph["Nodes"][node][1])
    assert isinstance(tile, TileOperatorDesc)
    return described(tile)


def _sizes_of_inputs(dispatchable: Made) -> list[list[int]]:
    """Return the bytes of what each binding takes: of a tensor, or of each input of an initializer's operator."""
    if isinstance(dispatchable.object, OperatorInitializer):
        return [[size for sizes in _sizes_of_inputs(operator) for size in sizes] for operator in dispatchable.use]
    sizes = [0] * dispatchable.use["InputCount"]
    for i, node, _ in dispatchable.use["InputEdges"]:
        sizes[i] = _tensors(dispatchable.use, node)[0].total_tensor_size_in_bytes
    return [[size] for size in sizes]


def _sizes_of_outputs(dispatchable: Made) -> list[list[int]]:
    """Return the bytes of what each binding takes: of a tensor, or of an operator's persistent resource."""
    if isinstance(dispatchable.object, OperatorInitializer):
        return [[each.object.get_binding_properties().persistent_resource_size] for each in dispatchable.use]
    sizes = [0] * dispatchable.use["OutputCount"]
    for node, _, i in dispatchable.use["OutputEdges"]:
        sizes[i] = _tensors(dispatchable.use, node)[1].total_tensor_size_in_bytes
    return [[size] for size in sizes]


def operator_of(written: Any) -> OperatorDesc | TileOperatorDesc | None:
    """Return a tile, an operator of another type, or None for null.

    A tile is its number in ``TILES``, its name in ``GRAPH_TILES``, or what ``row`` takes; another operator is in JSON.
    """
    match written:
        case {"Desc": dict()}:
            return OperatorDesc.model_validate(written)
        case {"Type": kind, "Desc": tile}:
            return OperatorDesc.model_validate({"Type": kind, "Desc": operator_of(tile)})
        case str(name):
            return GRAPH_TILES[name]
        case [data_type, sizes, repeats, *changes]:
            return row(data_type, sizes, repeats, **(changes[0] if changes else {}))
    return None if written is None else TILES[written]


def graph_of(drawn: dict[str, Any]) -> GraphDesc:
    """Return the graph that a life's call describes: a DML_GRAPH_DESC whose nodes are names, and edges lists."""

    def entries(array: str, kind: Any) -> list[Any] | None:
        names = [name for name in kind.model_fields if name not in ("name", "type")]
        return drawn[array] and [
            entry and kind(**dict(zip((*names, "type"), entry, strict=False))) for entry in drawn[array]
        ]

    nodes = drawn["Nodes"] and [
        node and OperatorGraphNodeDesc(type=node[0], **_described(*node)) for node in drawn["Nodes"]
    ]
    return GraphDesc.model_validate(
        drawn
        | {"Nodes": nodes, "InputEdges": entries("InputEdges", InputGraphEdge)}
        | {"OutputEdges": entries("OutputEdges", OutputGraphEdge)}
        | {"IntermediateEdges": entries("IntermediateEdges", IntermediateGraphEdge)}
    )


def _described(kind: int, desc: Any) -> dict[str, Any]:
    """Return a node's operator, or the bytes of a constant."""
    return {"operator": None, "data_size": desc} if kind == GraphNodeType.CONSTANT else {"operator": operator_of(desc)}


GOOD_RANGE: Final = [0, 4096, 4096, 4, 1, 1, None]


def hexadecimal(hresult: int | None) -> str:
    assert hresult is not None
    return f"0x{hresult & 0xFFFFFFFF:08x}"


def emulated(life: Life, level: str) -> list[str]:
    """What a life comes to on the emulator."""
    return Player(Direct3DDevice, partial(Device, level, against="runtime")).play(life)
