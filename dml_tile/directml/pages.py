"""Addresses of the pages that the tables and the rules follow."""

from __future__ import annotations

from typing import Final

_REFERENCE: Final = "https://learn.microsoft.com/en-us/windows/win32/api/directml"
_GUIDE: Final = "https://learn.microsoft.com/en-us/windows/ai/directml"

# structs and enumerations
OPERATOR: Final = f"{_REFERENCE}/ns-directml-dml_operator_desc"
TILE: Final = f"{_REFERENCE}/ns-directml-dml_tile_operator_desc"
TENSOR: Final = f"{_REFERENCE}/ns-directml-dml_tensor_desc"
BUFFER: Final = f"{_REFERENCE}/ns-directml-dml_buffer_tensor_desc"
FLAGS: Final = f"{_REFERENCE}/ne-directml-dml_tensor_flags"
BUFFER_BINDING: Final = f"{_REFERENCE}/ns-directml-dml_buffer_binding"
BINDING_DESC: Final = f"{_REFERENCE}/ns-directml-dml_binding_desc"
GRAPH: Final = f"{_REFERENCE}/ns-directml-dml_graph_desc"
TABLE: Final = f"{_REFERENCE}/ns-directml-dml_binding_table_desc"

# functions, methods and interfaces
CREATE_DEVICE: Final = f"{_REFERENCE}/nf-directml-dmlcreatedevice1"
FEATURE: Final = f"{_REFERENCE}/nf-directml-idmldevice-checkfeaturesupport"
COMPILE: Final = f"{_REFERENCE}/nf-directml-idmldevice-compileoperator"
COMPILE_GRAPH: Final = f"{_REFERENCE}/nf-directml-idmldevice1-compilegraph"
CREATE_OPERATOR: Final = f"{_REFERENCE}/nf-directml-idmldevice-createoperator"
CREATE_INITIALIZER: Final = f"{_REFERENCE}/nf-directml-idmldevice-createoperatorinitializer"
CREATE_TABLE: Final = f"{_REFERENCE}/nf-directml-idmldevice-createbindingtable"
REMOVED: Final = f"{_REFERENCE}/nf-directml-idmldevice-getdeviceremovedreason"
INITIALIZER: Final = f"{_REFERENCE}/nn-directml-idmloperatorinitializer"
BIND_INPUTS: Final = f"{_REFERENCE}/nf-directml-idmlbindingtable-bindinputs"
BIND_OUTPUTS: Final = f"{_REFERENCE}/nf-directml-idmlbindingtable-bindoutputs"
BIND_PERSISTENT: Final = f"{_REFERENCE}/nf-directml-idmlbindingtable-bindpersistentresource"
DISPATCH: Final = f"{_REFERENCE}/nf-directml-idmlcommandrecorder-recorddispatch"

# Direct3D 12, DXGI
DXGI_ERRORS: Final = "https://learn.microsoft.com/en-us/windows/win32/direct3ddxgi/dxgi-error"
DIRECT3D_CONSTANTS: Final = "https://learn.microsoft.com/en-us/windows/win32/direct3d12/constants"
STATIC_DESCRIPTORS: Final = "https://learn.microsoft.com/en-us/windows/win32/direct3d12/root-signature-version-1-1"

# the guide
BINDING: Final = f"{_GUIDE}/dml-binding"
ERRORS: Final = f"{_GUIDE}/dml-errors"
HELPER: Final = f"{_GUIDE}/dml-helper-functions"
FUSED_ACTIVATIONS: Final = f"{_GUIDE}/dml-fused-activations"
LEVELS: Final = f"{_GUIDE}/dml-feature-level-history"
STRIDES: Final = f"{_GUIDE}/dml-strides"
VERSION: Final = f"{_GUIDE}/dml-version-history"
RELEASES: Final = "https://github.com/microsoft/DirectML/blob/master/Releases.md"

# Microsoft's command-line runner of models
_DXDISPATCH: Final = "https://github.com/microsoft/DirectML/blob/master/DxDispatch"
DXDISPATCH: Final = f"{_DXDISPATCH}/doc/Guide.md"
DXDISPATCH_PARSER: Final = f"{_DXDISPATCH}/src/model/JsonParsers.cpp"

# ONNX Runtime
SOFTWARE_ADAPTER: Final = "https://github.com/microsoft/onnxruntime/pull/14273"

# the specifications of other dialects
ONNX: Final = "https://onnx.ai/onnx/operators/onnx__Tile.html"
OPENVINO: Final = (
    "https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html"
)


def operator(name: str, *, is_in_guide: bool) -> str:
    """Return the page of an operator; those of 5_1 and later are part of the guide."""
    folder = f"{_GUIDE}/api" if is_in_guide else _REFERENCE
    return f"{folder}/ns-directml-dml_{name.lower()}_operator_desc"
