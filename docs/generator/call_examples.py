"""For each rule that is not a descriptor's or a lowering's: calls that break it, and calls that do not.

Each example runs by itself, after the preparation that its family of rules shares.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Calls(NamedTuple):
    """Python that breaks a rule: its last expression gives findings, or it raises them; and Python that does not."""

    bad: str
    good: str


_DIALECTS: Final = """\
from dml_tile.back_ends import directml
from dml_tile.back_ends.dialects import ONNX_TILE_13, OPENVINO_TILE_1
"""

_BACK_ENDS: Final = """\
from dml_tile.back_ends.dialects import ONNX_TILE_13
from dml_tile import check_via
"""

_DEVICE: Final = """\
from dml_tile import BindingDesc, BindingTableDesc, BindingType, Buffer, BufferArrayBinding, BufferBinding
from dml_tile import CommandList, Device, Direct3DDevice, Feature, HRESULT, ResourceDimension, TileOperatorDesc

device = Device("6_4", raise_on_removal=True)
tile = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2, 3], repeats=[1, 2])  # reads 24 bytes, writes 48
owned = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2, 3], repeats=[1, 2], flags="OWNED_BY_DML")
operator = device.create_operator(tile)
plain = device.compile_operator(operator)
owner = device.compile_operator(device.create_operator(owned))

nothing, weights, persistent = BufferBinding(None), BufferBinding(Buffer(24)), BufferBinding(Buffer(24))
initializer = device.create_operator_initializer([plain, owner])
initial = device.create_binding_table(BindingTableDesc(initializer))
initial.bind_inputs([BufferArrayBinding([nothing]), BufferArrayBinding([weights])])
initial.bind_outputs([BindingDesc(), persistent])
recorder = device.create_command_recorder()
recorder.record_dispatch(initializer, initial)

source, result = BufferBinding(Buffer(24)), BufferBinding(Buffer(48))
table = device.create_binding_table(BindingTableDesc(plain))
table.bind_inputs([source])
table.bind_outputs([result])
owner_table = device.create_binding_table(BindingTableDesc(owner))
owner_table.bind_persistent_resource(persistent)
owner_table.bind_outputs([result])
"""

_GRAPHS: Final = """\
from dml_tile import Device, GraphDesc, InputGraphEdge, IntermediateGraphEdge, OperatorGraphNodeDesc, OutputGraphEdge
from dml_tile import BufferTensorDesc, OperatorDesc, TileOperatorDesc, check

first = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2, 3], repeats=[1, 2])
second = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2, 6], repeats=[3, 1])
owner = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2, 6], repeats=[3, 1], flags="OWNED_BY_DML")
into = InputGraphEdge(graph_input_index=0, to_node_index=0)
onward = IntermediateGraphEdge(from_node_index=0, to_node_index=1)
out = OutputGraphEdge(from_node_index=1, graph_output_index=0)
graph = GraphDesc(
    input_count=1,
    output_count=1,
    nodes=[first, second],
    input_edges=[into],
    output_edges=[out],
    intermediate_edges=[onward],
)
"""

_EXECUTION: Final = """\
import numpy as np
from dml_tile import BindingTableDesc, Buffer, BufferBinding, Device, GraphDesc, IntermediateGraphEdge, OperatorDesc
from dml_tile import OperatorGraphNodeDesc, OutputGraphEdge, Target, evaluate


def tensor(*sizes, data_type="FLOAT32"):
    return {"DataType": data_type, "Sizes": sizes}


constant = OperatorGraphNodeDesc(operator=None, type="CONSTANT", data=np.ones(3, np.float32), data_size=12)
absolute = OperatorDesc(type="ELEMENT_WISE_ABS", desc={"InputTensor": tensor(3), "OutputTensor": tensor(3)})


def dispatched(node):
    graph = GraphDesc(
        input_count=0,
        output_count=1,
        nodes=[node, absolute],
        intermediate_edges=[IntermediateGraphEdge(from_node_index=0, to_node_index=1)],
        output_edges=[OutputGraphEdge(from_node_index=1, graph_output_index=0)],
    )
    device = Device(raise_on_removal=True)
    operator, output = device.compile_graph(graph), BufferBinding(Buffer(12))
    recorder, initializer = device.create_command_recorder(), device.create_operator_initializer([operator])
    recorder.record_dispatch(initializer, device.create_binding_table(BindingTableDesc(initializer)))
    table = device.create_binding_table(BindingTableDesc(operator))
    table.bind_outputs([output])
    recorder.record_dispatch(operator, table)
    return output.buffer


def fill(size):
    value = {"OutputTensor": tensor(size), "ValueDataType": "FLOAT32", "Value": 1}
    return OperatorDesc(type="FILL_VALUE_CONSTANT", desc=value)


indices = {"IndicesTensor": tensor(2, data_type="UINT32"), "Axis": 0, "IndexDimensions": 1}
gather = OperatorDesc(type="GATHER", desc={"InputTensor": tensor(3), "OutputTensor": tensor(2), **indices})
pool = {
    "InputTensor": tensor(1, 1, 2, 2),
    "ROITensor": tensor(1, 1, 1, 5),
    "OutputTensor": tensor(1, 1, 1, 1),
    "SpatialScale": 1,
    "PooledSize": {"Width": 1, "Height": 1},
}
roi_pooling = OperatorDesc(type="ROI_POOLING", desc=pool)
image = np.ones((1, 1, 2, 2), np.float32)
regions = {
    "InputGradientTensor": tensor(1, 1, 1, 1),
    "ROITensor": tensor(1, 4),
    "BatchIndicesTensor": tensor(1, data_type="UINT32"),
    "OutputGradientTensor": tensor(1, 1, 2, 2),
    "OutputROIGradientTensor": None,
    "InterpolationMode": "LINEAR",
    "SpatialScaleX": 1,
    "SpatialScaleY": 1,
    "InputPixelOffset": 0.5,
    "OutputPixelOffset": -0.5,
    "MinimumSamplesPerOutput": 1,
    "MaximumSamplesPerOutput": 4,
    "AlignRegionsToCorners": False,
}
gradients = {
    "InputGradientTensor": np.ones((1, 1, 1, 1), np.float32),
    "ROITensor": np.array([[0, 0, 1, 1]], np.float32),
    "BatchIndicesTensor": np.array([0], np.uint32),
}


def roi_align_grad(function, input_tensor=None):
    chosen = {"ReductionFunction": function, "InputTensor": input_tensor}
    return OperatorDesc(type="ROI_ALIGN_GRAD", desc=regions | chosen)
"""

PREPARED: Final = {
    "EXECUTE": _EXECUTION,
    "DIALECT": _DIALECTS,
    "VIA": _BACK_ENDS,
    "GRAPH": _GRAPHS,
    **dict.fromkeys(("BINDING", "DEVICE", "COMPILE", "INITIALIZER", "TABLE", "DISPATCH"), _DEVICE),
}
"""The text before the examples of a family."""

CALLS: Final = {
    "DML-EXECUTE-constant": Calls("dispatched(constant.replace(data=None))", "dispatched(constant)"),
    "DML-EXECUTE-operator": Calls(
        'evaluate(roi_align_grad("MAX", tensor(1, 1, 2, 2)), gradients)',
        'evaluate(roi_align_grad("AVERAGE"), gradients)',
    ),
    "DML-EXECUTE-bound": Calls("evaluate(fill(2**30 + 1), {})", "evaluate(fill(3), {})"),
    "DML-EXECUTE-index": Calls(
        'given = {"InputTensor": np.ones(3, np.float32), "IndicesTensor": np.array([0, 3], np.uint32)}\n'
        "evaluate(gather, given)",
        'given = {"InputTensor": np.ones(3, np.float32), "IndicesTensor": np.array([0, 2], np.uint32)}\n'
        "evaluate(gather, given)",
    ),
    "DML-EXECUTE-region": Calls(
        "corners = np.array([0, 0, 0, np.nan, 1], np.float32).reshape(1, 1, 1, 5)\n"
        'evaluate(roi_pooling, {"InputTensor": image, "ROITensor": corners})',
        "corners = np.array([0, 0, 0, 1, 1], np.float32).reshape(1, 1, 1, 5)\n"
        'evaluate(roi_pooling, {"InputTensor": image, "ROITensor": corners})',
    ),
    "DML-DIALECT-ONNX": Calls(
        'ONNX_TILE_13.request("int8", [2, 3], [2])', 'ONNX_TILE_13.request("int8", [2, 3], [1, 2])'
    ),
    "DML-DIALECT-OpenVINO": Calls(
        'OPENVINO_TILE_1.request("i8", [2, 3], [1.5])', 'OPENVINO_TILE_1.request("i8", [2, 3], [2])'
    ),
    "DML-DIALECT-data-type": Calls(
        'directml.findings(ONNX_TILE_13.request("complex64", [2], [2]))',
        'directml.findings(ONNX_TILE_13.request("uint64", [2], [2]))',
    ),
    "DML-DIALECT-empty": Calls(
        'directml.findings(ONNX_TILE_13.request("int8", [2, 3], [1, 0]))',
        'directml.findings(ONNX_TILE_13.request("int8", [2, 3], [1, 1]))',
    ),
    "DML-DIALECT-rank": Calls(
        'directml.findings(ONNX_TILE_13.request("int8", [2] * 9, [2] * 9))',
        'directml.findings(ONNX_TILE_13.request("int8", [2] * 9, [2] * 8 + [1]))',
    ),
    "DML-DIALECT-size": Calls(
        'directml.findings(ONNX_TILE_13.request("int8", [2], [2**31]))',
        'directml.findings(ONNX_TILE_13.request("int8", [2], [2**31 - 1]))',
    ),
    "DML-VIA-refused": Calls(
        'check_via(ONNX_TILE_13.request("float32", [2, 3], [1, 2]), "windows-11-21h2", "ort")',
        'check_via(ONNX_TILE_13.request("float32", [2, 3], [1, 2]), "onnxruntime-directml-1.16.3", "ort")',
    ),
    "DML-BINDING-missing": Calls(
        "table.bind_inputs([])\nrecorder.record_dispatch(plain, table)", "recorder.record_dispatch(plain, table)"
    ),
    "DML-BINDING-owned": Calls("owner_table.bind_inputs([source])", "owner_table.bind_inputs([BindingDesc()])"),
    "DML-BINDING-SizeInBytes": Calls(
        "table.bind_outputs([BufferBinding(Buffer(40))])", "table.bind_outputs([BufferBinding(Buffer(48))])"
    ),
    "DML-BINDING-Offset": Calls(
        "table.bind_inputs([BufferBinding(Buffer(64), 8)])", "table.bind_inputs([BufferBinding(Buffer(64), 16)])"
    ),
    "DML-BINDING-range": Calls(
        "table.bind_inputs([BufferBinding(Buffer(64), 48, 24)])",
        "table.bind_inputs([BufferBinding(Buffer(64), 32, 24)])",
    ),
    "DML-BINDING-unordered-access": Calls(
        "table.bind_outputs([BufferBinding(Buffer(48, flags=0))])",
        "table.bind_outputs([BufferBinding(Buffer(48, flags=4))])",
    ),
    "DML-BINDING-heap": Calls(
        'table.bind_inputs([BufferBinding(Buffer(24, heap="UPLOAD"))])',
        'table.bind_inputs([BufferBinding(Buffer(24, heap="DEFAULT"))])',
    ),
    "DML-BINDING-count": Calls("table.bind_inputs([source, source])", "table.bind_inputs([source])"),
    "DML-BINDING-Type": Calls("table.bind_inputs([BufferArrayBinding([source])])", "table.bind_inputs([source])"),
    "DML-BINDING-Desc-null": Calls(
        "table.bind_inputs([BindingDesc(BindingType.BUFFER, None)])",
        "table.bind_inputs([BindingDesc(BindingType.BUFFER, source)])",
    ),
    "DML-BINDING-BindingCount": Calls(
        "initial.bind_inputs([BufferArrayBinding([nothing]), BufferArrayBinding([weights, weights])])",
        "initial.bind_inputs([BufferArrayBinding([nothing]), BufferArrayBinding([weights])])",
    ),
    "DML-BINDING-Buffer-null": Calls(
        "table.bind_inputs([BufferBinding(None, 0, 24)])", "table.bind_inputs([BufferBinding(Buffer(24), 0, 24)])"
    ),
    "DML-BINDING-unneeded": Calls(
        "table.bind_persistent_resource(persistent)", "table.bind_persistent_resource(BindingDesc())"
    ),
    "DML-BINDING-initializer-persistent": Calls(
        "initial.bind_persistent_resource(persistent)", "initial.bind_outputs([BindingDesc(), persistent])"
    ),
    "DML-BINDING-initializer-NONE": Calls(
        "initial.bind_inputs([BindingDesc(), BufferArrayBinding([weights])])",
        "initial.bind_inputs([BufferArrayBinding([nothing]), BufferArrayBinding([weights])])",
    ),
    "DML-BINDING-initializer-NONE-Desc": Calls(
        "initial.bind_inputs([BindingDesc(0, BufferArrayBinding([nothing])), BufferArrayBinding([weights])])",
        "initial.bind_inputs([BufferArrayBinding([nothing]), BufferArrayBinding([weights])])",
    ),
    "DML-BINDING-Dimension": Calls(
        "table.bind_inputs([BufferBinding(Buffer(24, dimension=ResourceDimension.TEXTURE2D))])",
        "table.bind_inputs([BufferBinding(Buffer(24))])",
    ),
    "DML-BINDING-device": Calls(
        "table.bind_inputs([BufferBinding(Buffer(24, direct3d_device=Direct3DDevice()))])",
        "table.bind_inputs([BufferBinding(Buffer(24, direct3d_device=device.direct3d_device))])",
    ),
    "DML-BINDING-null": Calls("table.bind_temporary_resource(None)", "table.bind_temporary_resource(BindingDesc())"),
    "DML-BINDING-overlap": Calls(
        "memory = Buffer(96)\n"
        "table.bind_inputs([BufferBinding(memory, 0, 24)])\n"
        "table.bind_outputs([BufferBinding(memory, 16, 48)])\n"
        "recorder.record_dispatch(plain, table)",
        "memory = Buffer(96)\n"
        "table.bind_inputs([BufferBinding(memory, 0, 24)])\n"
        "table.bind_outputs([BufferBinding(memory, 32, 48)])\n"
        "recorder.record_dispatch(plain, table)",
    ),
    "DML-BINDING-recorded": Calls(
        "commands = CommandList()\n"
        "recorder.record_dispatch(plain, table, commands)\n"
        "table.bind_outputs([BufferBinding(Buffer(48))])\n"
        "commands.execute()",
        "commands = CommandList()\n"
        "recorder.record_dispatch(plain, table, commands)\n"
        "commands.execute()\n"
        "table.bind_outputs([BufferBinding(Buffer(48))])",
    ),
    "DML-BINDING-persistent": Calls(
        "owner_table.bind_persistent_resource(BufferBinding(Buffer(24)))\nrecorder.record_dispatch(owner, owner_table)",
        "owner_table.bind_persistent_resource(persistent)\nrecorder.record_dispatch(owner, owner_table)",
    ),
    "DML-BINDING-uninitialised": Calls(
        "another = device.compile_operator(operator)\n"
        "another_table = device.create_binding_table(BindingTableDesc(another))\n"
        "another_table.bind_inputs([source])\n"
        "another_table.bind_outputs([result])\n"
        "recorder.record_dispatch(another, another_table)",
        "recorder.record_dispatch(plain, table)",
    ),
    "DML-BINDING-initialised-twice": Calls(
        "recorder.record_dispatch(initializer, initial)",
        "recorder.record_dispatch(plain, table)\n"
        "recorder.record_dispatch(plain, table)  # executed as often as you like",
    ),
    "DML-DEVICE-DMLCreateDevice1": Calls('Device("1_0", "1_0")', 'Device("1_0")'),
    "DML-DEVICE-flags": Calls("Device(flags=2)", "Device(flags=0)"),
    "DML-DEVICE-debug-layer": Calls("Device(flags=1)", "Device(flags=0)"),
    "DML-DEVICE-minimumFeatureLevel": Calls('Device("5_0", "5_1")', 'Device("5_0", "4_0")'),
    "DML-DEVICE-Direct3D-removed": Calls(
        "direct3d_device = Direct3DDevice()\n"
        "direct3d_device.remove(HRESULT.DXGI_ERROR_DEVICE_HUNG)\n"
        "Device(direct3d_device=direct3d_device)",
        "Device(direct3d_device=Direct3DDevice())",
    ),
    "DML-DEVICE-feature": Calls(
        "device.check_feature_support(2, [])", 'device.check_feature_support(Feature.FEATURE_LEVELS, ["6_4"])'
    ),
    "DML-DEVICE-feature-levels": Calls(
        'Device("5_0").check_feature_support(Feature.FEATURE_LEVELS, ["6_4"])',
        'Device("5_0").check_feature_support(Feature.FEATURE_LEVELS, ["6_4", "4_0"])',
    ),
    "DML-DEVICE-fault": Calls(
        'device.fail("CreateOperator", HRESULT.E_OUTOFMEMORY, at=2)\n'
        "device.create_operator(tile)\n"
        "device.create_operator(tile)",
        "device.create_operator(tile)",
    ),
    "DML-DEVICE-removed": Calls(
        "silent = Device()\n"
        "compiled = silent.compile_operator(silent.create_operator(tile))\n"
        "silent_table = silent.create_binding_table(BindingTableDesc(compiled))\n"
        "silent_table.bind_inputs([BindingDesc()])  # removes the device, and returns nothing\n"
        "silent.create_operator(tile)",
        "Device().create_operator(tile)",
    ),
    "DML-COMPILE-op-null": Calls("device.compile_operator(None)", "device.compile_operator(operator)"),
    "DML-COMPILE-op-device": Calls("Device().compile_operator(operator)", "device.compile_operator(operator)"),
    "DML-COMPILE-flags": Calls("device.compile_operator(operator, 8)", "device.compile_operator(operator, 4)"),
    "DML-INITIALIZER-operators-null": Calls(
        "device.create_operator_initializer(None)", "device.create_operator_initializer([])"
    ),
    "DML-INITIALIZER-operators-device": Calls(
        "Device().create_operator_initializer([plain])", "device.create_operator_initializer([plain])"
    ),
    "DML-INITIALIZER-operators": Calls(
        "device.create_operator_initializer([operator])", "device.create_operator_initializer([plain])"
    ),
    "DML-TABLE-Dispatchable-null": Calls(
        "device.create_binding_table(BindingTableDesc(None))", "device.create_binding_table(BindingTableDesc(plain))"
    ),
    "DML-TABLE-SizeInDescriptors": Calls(
        "device.create_binding_table(BindingTableDesc(plain, size_in_descriptors=1))",
        "device.create_binding_table(BindingTableDesc(plain, size_in_descriptors=2))",
    ),
    "DML-TABLE-handle": Calls(
        "device.create_binding_table(BindingTableDesc(plain, cpu_descriptor_handle=0))",
        "device.create_binding_table(BindingTableDesc(plain, cpu_descriptor_handle=0x1000))",
    ),
    "DML-TABLE-Dispatchable": Calls(
        "device.create_binding_table(BindingTableDesc(operator))",
        "device.create_binding_table(BindingTableDesc(plain))",
    ),
    "DML-TABLE-Dispatchable-device": Calls(
        "Device().create_binding_table(BindingTableDesc(plain))", "device.create_binding_table(BindingTableDesc(plain))"
    ),
    "DML-TABLE-empty": Calls(
        "empty = device.create_binding_table(None)\nempty.bind_inputs([source])",
        "empty = device.create_binding_table(None)\nempty.reset(BindingTableDesc(plain))\nempty.bind_inputs([source])",
    ),
    "DML-TABLE-empty-binding": Calls(
        "device.create_binding_table(None).bind_inputs([BufferBinding(None, 16, 0)])",
        "device.create_binding_table(BindingTableDesc(plain)).bind_inputs([source])",
    ),
    "DML-DISPATCH-graphics-list": Calls(
        "recorder.record_dispatch(plain, table, CommandList(is_graphics=False))",
        "recorder.record_dispatch(plain, table, CommandList())",
    ),
    "DML-DISPATCH-command-list": Calls(
        "recorder.record_dispatch(plain, table, CommandList(3))",
        "commands = CommandList()\nrecorder.record_dispatch(plain, table, commands)\ncommands.execute()",
    ),
    "DML-GRAPH-null": Calls("Device().compile_graph(None)", "Device().compile_graph(graph)"),
    "DML-GRAPH-IDMLDevice1": Calls('check(graph, "2_0")', 'check(graph, "3_1")'),
    "DML-GRAPH-NodeCount": Calls("check(GraphDesc(input_count=0, output_count=0, nodes=[]))", "check(graph)"),
    "DML-GRAPH-array": Calls("check(graph.replace(nodes=None, node_count=2))", "check(graph)"),
    "DML-GRAPH-Desc-null": Calls("check(graph.replace(input_edges=[into, None]))", "check(graph)"),
    "DML-GRAPH-Type": Calls('check(graph.replace(input_edges=[into.replace(type="OUTPUT")]))', "check(graph)"),
    "DML-GRAPH-Type-CONSTANT": Calls(
        'constant = OperatorGraphNodeDesc(operator=None, type="CONSTANT", data_size=216)\n'
        "check(graph.replace(nodes=[constant, second], input_edges=[]))",
        "check(graph)",
    ),
    "DML-GRAPH-index": Calls("check(graph.replace(input_count=0))", "check(graph)"),
    "DML-GRAPH-DataSize": Calls(
        'constant = OperatorGraphNodeDesc(operator=None, type="CONSTANT", data_size=4)\n'
        "check(graph.replace(nodes=[constant, second], input_edges=[]))",
        "check(graph)",
    ),
    "DML-GRAPH-node-input": Calls("check(graph.replace(input_edges=[into, into]))", "check(graph)"),
    "DML-GRAPH-node-output": Calls("check(graph.replace(output_edges=[]))", "check(graph)"),
    "DML-GRAPH-cycle": Calls(
        "back = IntermediateGraphEdge(from_node_index=1, to_node_index=0)\n"
        "check(graph.replace(input_edges=[], intermediate_edges=[onward, back]))",
        "check(graph)",
    ),
    "DML-GRAPH-intermediate-owned": Calls("check(graph.replace(nodes=[first, owner]))", "check(graph)"),
    "DML-GRAPH-TotalTensorSizeInBytes": Calls("check(graph.replace(nodes=[first, first]))", "check(graph)"),
    "DML-GRAPH-extent": Calls(
        'halves = BufferTensorDesc(data_type="FLOAT16", sizes=[2, 6], total_tensor_size_in_bytes=48)\n'
        "copy = TileOperatorDesc(input_tensor=halves, output_tensor=halves, repeats=[1, 1])\n"
        'check(graph.replace(nodes=[copy, second]), "5_0")  # as many bytes, but not for as many elements',
        'check(graph, "5_0")',
    ),
    "DML-GRAPH-shared-input": Calls(
        "edges = [into, into.replace(to_node_index=1)]\n"
        "outs = [out, out.replace(from_node_index=0, graph_output_index=1)]\n"
        "check(GraphDesc(input_count=1, output_count=2, nodes=[first, second], input_edges=edges, output_edges=outs))",
        "check(graph)",
    ),
    "DML-GRAPH-edge-layout": Calls(
        'flat = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 12]}\n'
        'identity = OperatorDesc(type="ACTIVATION_IDENTITY", desc={"InputTensor": flat, "OutputTensor": flat})\n'
        "check(graph.replace(nodes=[first, identity]))",
        "check(graph)",
    ),
    "DML-GRAPH-output-twice": Calls(
        "check(graph.replace(output_edges=[out.replace(from_node_index=0), out]))", "check(graph)"
    ),
    "DML-DISPATCH-null": Calls("recorder.record_dispatch(plain, None)", "recorder.record_dispatch(plain, table)"),
    "DML-DISPATCH-device": Calls(
        "other = Device(raise_on_removal=True).create_command_recorder()\nother.record_dispatch(plain, table)",
        "recorder.record_dispatch(plain, table)",
    ),
    "DML-DISPATCH-table": Calls(
        "recorder.record_dispatch(plain, owner_table)", "recorder.record_dispatch(plain, table)"
    ),
}
