"""Plays the recorded cases of binding.jsonl on the simulated device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dml_tile.bindings.resources import BindingLike
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device import (
    BindingDesc,
    BindingTable,
    BindingTableDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    CompiledOperator,
    Direct3DDevice,
    OperatorInitializer,
)
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import BindingType, ResourceDimension, ResourceFlags
from tests.helpers.descriptors import row
from tests.helpers.recorded_life import NONE, ROOM, Life, Setup, base, good, owned

EMPTY: Final = BufferBinding(None)
NO_BUFFER: Final = BufferArrayBinding([EMPTY])


def buffer_of(setup: Setup) -> Buffer:
    heap = setup.get("heap", "DEFAULT")
    number = heap.split(" ")[0]
    flags = setup.get("ResourceFlags", ResourceFlags.ALLOW_UNORDERED_ACCESS)
    return Buffer(
        setup.get("Width", ROOM),
        heap=int(number) if number.isdigit() else heap,
        flags=flags,
        dimension=setup.get("Dimension", ResourceDimension.BUFFER),
        direct3d_device=Direct3DDevice() if "device" in setup else None,  # another, or one that it cannot name
    )


def binding_of(setup: Setup) -> BufferBinding:
    buffer = None if "Buffer" in setup else buffer_of(setup)
    offset = setup.get("Offset", 0)
    return BufferBinding(buffer, offset, setup.get("SizeInBytes", max(ROOM - offset, 0) if buffer else 0))


def typed_binding(setup: Setup) -> BindingDesc:
    """A binding of the type that the setup names, with the description that it names."""
    if isinstance(setup["type"], int):
        return BindingDesc(setup["type"], None)
    kind = BindingType[setup["type"]]
    if kind == BindingType.BUFFER_ARRAY and "BindingCount" in setup:
        bindings = None if "Bindings" in setup else [good() for _ in range(setup["BindingCount"])]
        return BindingDesc(kind, BufferArrayBinding(bindings))
    return BindingDesc(kind, good() if setup.get("Desc") else None)


def tile_of(setup: Setup) -> TileOperatorDesc:
    """The tile that the setup describes for its side."""
    tensor = "InputTensor" if setup["side"] == "input" else "OutputTensor"
    if "dtype" in setup:
        changes = {f"{tensor}__GuaranteedBaseOffsetAlignment": setup.get("GuaranteedBaseOffsetAlignment", 0)}
        return row(TensorDataType(setup["dtype"]).name, [1, 1, 2, 3], [1, 1, 2, 2], **changes)
    if "TotalTensorSizeInBytes" in setup:
        return base(**{f"{tensor}__TotalTensorSizeInBytes": setup["TotalTensorSizeInBytes"]})
    return base()


def is_huge(setup: Setup) -> bool:
    """Whether a dispatch would take more memory than a test should: up to 64 GiB."""
    return bool(setup.get("Width", 0) > ROOM)


def bind(life: Life, setup: Setup, bindings: Sequence[BindingLike] | None) -> None:
    """Bind one side as the case does, the other well, and dispatch."""
    compiled = life.compile(tile_of(setup), volatile=setup["volatile"])
    table = life.table(compiled)
    life.inputs(table, bindings if setup["side"] == "input" else [good()])
    life.outputs(table, bindings if setup["side"] == "output" else [good()])
    if not (life.executes and is_huge(setup)):
        life.dispatch(compiled, table)


def bind_count(life: Life, setup: Setup) -> None:
    if "array" in setup:
        bind(life, setup, None)
    else:
        bind(life, setup, [NONE if "both" in setup else good()] * setup["count"])


def bind_type(life: Life, setup: Setup) -> None:
    bind(life, setup, [typed_binding(setup)])


def bind_range(life: Life, setup: Setup) -> None:
    bind(life, setup, [binding_of(setup)])


def bind_rebind(life: Life, setup: Setup) -> None:
    compiled = life.compile(volatile=setup["volatile"])
    table = life.table(compiled)
    first, second = (life.inputs, life.outputs) if setup["side"] == "input" else (life.outputs, life.inputs)
    second(table, [good()])
    first(table, [good()])
    if "RecordDispatch" in setup["binds"]:
        life.dispatch(compiled, table)
    first(table, [] if "BindX(0" in setup["binds"] else [good()])
    life.dispatch(compiled, table)


def alias(life: Life, setup: Setup) -> None:
    sizes, repeats = {
        "2x2": ([1, 1, 2, 3], [1, 1, 2, 2]),
        "ones": ([1, 1, 2, 3], [1] * 4),
        "ones64": ([1, 1, 4, 4], [1] * 4),
    }[setup["tile"]]
    compiled = life.compile(row("FLOAT32", sizes, repeats))
    table, memory = life.table(compiled), Buffer(8192)
    steps: dict[str, Callable[[], None]] = {
        "i": lambda: life.inputs(table, [BufferBinding(memory, *setup["in"])]),
        "o": lambda: life.outputs(table, [BufferBinding(memory, *setup["out"])]),
    }
    for step in setup["order"]:
        steps[step]()
    life.dispatch(compiled, table)


def create_table(life: Life, setup: Setup, make: Callable[[BindingTableDesc | None], Any], call: str) -> None:
    if "desc" in setup:
        life.call(call, make, None)
        return
    dispatchables: dict[str | None, Any] = {
        None: None,
        "exec": life.compile(),
        "exec, other IDMLDevice on other ID3D12Device": type(life)(life.level).compile(),
        "IDMLOperator (not dispatchable)": life.device.create_operator(base()),
        "exec_owned": life.compile(owned()),
        "init": life.device.create_operator_initializer([life.compile()]),
        "init_owned": life.device.create_operator_initializer([life.compile(owned())]),
    }
    cpu, gpu = (int(setup.get(key, "0x1000"), 16) for key in ("cpu", "gpu"))
    desc = BindingTableDesc(dispatchables[setup["dispatchable"]], cpu, gpu, setup.get("SizeInDescriptors", 16))
    life.call(call, make, desc)


def create_binding_table(life: Life, setup: Setup) -> None:
    create_table(life, setup, life.device.create_binding_table, "CreateBindingTable")


def reset_binding_table(life: Life, setup: Setup) -> None:
    create_table(life, setup, life.table(life.compile()).reset, "Reset")


def reset_then_dispatch(life: Life, setup: Setup) -> None:
    compiled = life.compile()
    table = life.table(compiled)
    life.inputs(table, [good()])
    life.outputs(table, [good()])
    life.call("Reset", table.reset, BindingTableDesc(None if setup["reset"] == "null dispatchable" else compiled))
    life.dispatch(compiled, table)


def initializer(life: Life, operators: list[str]) -> tuple[OperatorInitializer, BindingTable]:
    compiled = [life.compile(base(InputTensor__Flags=int(kind == "owned"))) for kind in operators]
    made = life.device.create_operator_initializer(compiled)
    return made, life.table(made)


def initialise(life: Life, setup: Setup) -> None:
    operators: list[str] = setup["operators"]
    made, table = initializer(life, operators)
    inputs = setup.get("BindInputs") or ("Buffer" if "Buffer" in setup else "")
    if inputs and inputs != "not called":
        life.inputs(table, _initializer_inputs(inputs, operators, setup))
    outputs = setup.get("BindOutputs", "")
    if outputs and outputs != "not called":
        life.outputs(table, _initializer_outputs(outputs, operators))
    if "Buffer" not in setup:
        life.dispatch(made, table)


def _initializer_inputs(kind: str, operators: list[str], setup: Setup) -> list[BindingLike]:
    one = BufferArrayBinding([good()])
    each_owned = [one if operator == "owned" else NONE for operator in operators]
    each_null = [one if operator == "owned" else NO_BUFFER for operator in operators]
    forms: dict[str, list[BindingLike]] = {
        "count 0": [],
        "count 1": [one],
        "ARRAY[2]": [BufferArrayBinding([good(), good()])],
        "NONE": [NONE],
        "NONE with a Desc": [
            BindingDesc(BindingType.NONE, one if operator == "owned" else NO_BUFFER) for operator in operators
        ],
        "2 NONE": [NONE, NONE],
        "2 ARRAY[1]": [one, one],
        "type 3": [BindingDesc(3)],
        "BUFFER null": [BindingDesc(BindingType.BUFFER, EMPTY)],
        "one NONE each": [NONE for _ in operators],
        # "right" as it was recorded; it crashes for plain operators
        **{key: list(each_owned) for key in ("one ARRAY[1] each owned, NONE each plain", "right")},
        **{key: list(each_null) for key in ("good", "one ARRAY[1 null] each plain", "ARRAY[1], null buffer for plain")},
        "Buffer": [BufferArrayBinding([BufferBinding(None, setup.get("Offset", 0), setup.get("SizeInBytes", 0))])],
    }
    return forms[kind]


def _initializer_outputs(kind: str, operators: list[str]) -> list[BindingLike]:
    memory = Buffer(ROOM)
    forms: dict[str, list[BindingLike]] = {
        "count 0": [],
        "NONE": [NONE],
        "BUFFER": [good()],
        "BUFFER null": [BindingDesc(BindingType.BUFFER, EMPTY)],
        "ARRAY[1]": [BufferArrayBinding([good()])],
        "count 1 BUFFER": [good()],
        "one NONE each": [NONE for _ in operators],
        "one BUFFER each": [good() for _ in operators],
        **{key: [good() if operator == "owned" else NONE for operator in operators] for key in ("good", "right")},
        "same buffer overlapping": [BufferBinding(memory, 0, 24) for _ in operators],
        "same buffer disjoint": [BufferBinding(memory, 256 * i, 24) for i, _ in enumerate(operators)],
    }
    return forms[kind]


def initialise_same_operator_twice(life: Life, setup: Setup) -> None:
    compiled = life.compile()
    life.call("CreateOperatorInitializer", life.device.create_operator_initializer, [compiled, compiled])


def at_place(life: Life, setup: Setup) -> None:
    """Bind the buffer of a case at the place that it names, all else well, and dispatch."""
    alignment = setup.get("GuaranteedBaseOffsetAlignment", 0)
    compiled = life.compile(owned(InputTensor__GuaranteedBaseOffsetAlignment=alignment))
    binding = binding_of(setup)
    if setup["place"] == "exec_persistent":
        table = life.table(compiled)
        life.call("BindPersistentResource", table.bind_persistent_resource, binding)
        life.inputs(table, [NONE])
        life.outputs(table, [good()])
        life.dispatch(compiled, table)
        return
    made = life.device.create_operator_initializer([compiled])
    table = life.table(made)
    life.inputs(table, [BufferArrayBinding([binding if setup["place"] == "init_input" else good()])])
    life.outputs(table, [binding if setup["place"] == "init_output" else good()])
    life.dispatch(made, table)


def custom_heap(life: Life, setup: Setup) -> None:
    """Bind a buffer on a custom heap at the place that the case names, and nothing else."""
    owns_input = not setup["place"].startswith(("exec_input", "exec_output"))
    compiled = life.compile(owned() if owns_input else base())
    is_initialised = setup["place"].startswith("init_")
    table = life.table(life.device.create_operator_initializer([compiled]) if is_initialised else compiled)
    binding = binding_of(setup)
    places: dict[str, Callable[[], None]] = {
        "exec_input": lambda: life.inputs(table, [binding]),
        "exec_output": lambda: life.outputs(table, [binding]),
        "exec_persistent": lambda: life.call("BindPersistentResource", table.bind_persistent_resource, binding),
        "init_input": lambda: life.inputs(table, [BufferArrayBinding([binding])]),
        "init_output": lambda: life.outputs(table, [binding]),
    }
    places[setup["place"]]()


def init_alias(life: Life, setup: Setup) -> None:
    made, table = initializer(life, ["owned"])
    memory = Buffer(ROOM)
    life.inputs(table, [BufferArrayBinding([BufferBinding(memory, *setup["in"])])])
    life.outputs(table, [BufferBinding(memory, *setup["out"])])
    life.dispatch(made, table)


def exec_owned_input(life: Life, setup: Setup) -> None:
    compiled = life.compile(owned())
    table = life.table(compiled)
    life.call("BindPersistentResource", table.bind_persistent_resource, good())
    life.inputs(table, [good() if setup["BindInputs"] == "BUFFER" else BufferArrayBinding([good()])])
    life.outputs(table, [good()])
    life.dispatch(compiled, table)


def bind_resource(life: Life, setup: Setup) -> None:
    dispatchables: dict[str, CompiledOperator | OperatorInitializer] = {
        "exec": life.compile(),
        "exec_owned": life.compile(owned()),
        "init": initializer(life, ["plain"])[0],
        "init_owned": initializer(life, ["owned"])[0],
    }
    forms: dict[str | None, BindingLike | None] = {
        "NONE": NONE,
        "null pointer": None,
        "type 3": BindingDesc(3),
        "ARRAY[1]": BufferArrayBinding([good()]),
        "BUFFER null desc": BindingDesc(BindingType.BUFFER),
        "BUFFER null buffer size 0": EMPTY,
        "BUFFER 0 bytes": good(0),
        "BUFFER 24": good(24),
        "BUFFER 256": good(256),
        "BUFFER offset 16": BufferBinding(Buffer(ROOM), 16, 24),
        "BUFFER beyond": BufferBinding(Buffer(ROOM), ROOM, 24),
        "BUFFER no UAV": BufferBinding(Buffer(ROOM, flags=0), 0, 24),
        None: BufferBinding(None, setup.get("Offset", 0), setup.get("SizeInBytes", 0)),
    }
    table = life.table(dispatchables[setup["dispatchable"]])
    kinds = {"bind_persistent": table.bind_persistent_resource, "bind_temporary": table.bind_temporary_resource}
    calls = {"bind_persistent": "BindPersistentResource", "bind_temporary": "BindTemporaryResource"}
    life.call(calls[setup["group"]], kinds[setup["group"]], forms[setup.get("binding")])


BOUND_RANGES: Final = ("huge", "null_buffer", "offset", "overflow", "resource", "size", "width")
PLACES: Final = ("exec_persistent", "init_input", "init_output")
BINDING_CASES: Final[dict[str, Callable[[Life, Setup], None]]] = {
    "alias": alias,
    "bind_count": bind_count,
    "bind_rebind": bind_rebind,
    "bind_type": bind_type,
    **{f"bind_{what}": bind_range for what in BOUND_RANGES},
    **{f"bind_{what}": bind_resource for what in ("persistent", "temporary")},
    "create_binding_table": create_binding_table,
    "custom_heap": custom_heap,
    "exec_owned_input": exec_owned_input,
    **{f"{place}_{what}": at_place for place in PLACES for what in ("offset", "resource", "size", "width")},
    "init_alias": init_alias,
    "init_dup": initialise_same_operator_twice,
    **{f"init_{what}": initialise for what in ("input", "many_input", "many_output", "many_output2", "output")},
    "reset_binding_table": reset_binding_table,
    "reset_then_dispatch": reset_then_dispatch,
}
