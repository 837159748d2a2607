"""Addresses of the pages that the tables and the rules follow."""

from __future__ import annotations

from typing import Final

_REFERENCE: Final = "https://learn.microsoft.com/en-us/windows/win32/api/directml"
_GUIDE: Final = "https://learn.microsoft.com/en-us/windows/ai/directml"

# structs and enumerations
OPERATOR_PAGE: Final = f"{_REFERENCE}/ns-directml-dml_operator_desc"
TILE_PAGE: Final = f"{_REFERENCE}/ns-directml-dml_tile_operator_desc"
TENSOR_PAGE: Final = f"{_REFERENCE}/ns-directml-dml_tensor_desc"
BUFFER_PAGE: Final = f"{_REFERENCE}/ns-directml-dml_buffer_tensor_desc"
FLAGS_PAGE: Final = f"{_REFERENCE}/ne-directml-dml_tensor_flags"
BUFFER_BINDING_PAGE: Final = f"{_REFERENCE}/ns-directml-dml_buffer_binding"
BINDING_DESC_PAGE: Final = f"{_REFERENCE}/ns-directml-dml_binding_desc"
GRAPH_PAGE: Final = f"{_REFERENCE}/ns-directml-dml_graph_desc"
TABLE_PAGE: Final = f"{_REFERENCE}/ns-directml-dml_binding_table_desc"

# functions, methods and interfaces
CREATE_DEVICE_PAGE: Final = f"{_REFERENCE}/nf-directml-dmlcreatedevice1"
FEATURE_PAGE: Final = f"{_REFERENCE}/nf-directml-idmldevice-checkfeaturesupport"
COMPILE_PAGE: Final = f"{_REFERENCE}/nf-directml-idmldevice-compileoperator"
COMPILE_GRAPH_PAGE: Final = f"{_REFERENCE}/nf-directml-idmldevice1-compilegraph"
CREATE_OPERATOR_PAGE: Final = f"{_REFERENCE}/nf-directml-idmldevice-createoperator"
CREATE_INITIALIZER_PAGE: Final = f"{_REFERENCE}/nf-directml-idmldevice-createoperatorinitializer"
CREATE_TABLE_PAGE: Final = f"{_REFERENCE}/nf-directml-idmldevice-createbindingtable"
REMOVED_PAGE: Final = f"{_REFERENCE}/nf-directml-idmldevice-getdeviceremovedreason"
INITIALIZER_PAGE: Final = f"{_REFERENCE}/nn-directml-idmloperatorinitializer"
BIND_INPUTS_PAGE: Final = f"{_REFERENCE}/nf-directml-idmlbindingtable-bindinputs"
BIND_OUTPUTS_PAGE: Final = f"{_REFERENCE}/nf-directml-idmlbindingtable-bindoutputs"
BIND_PERSISTENT_PAGE: Final = f"{_REFERENCE}/nf-directml-idmlbindingtable-bindpersistentresource"
DISPATCH_PAGE: Final = f"{_REFERENCE}/nf-directml-idmlcommandrecorder-recorddispatch"

# the guide
BINDING_PAGE: Final = f"{_GUIDE}/dml-binding"
ERRORS_PAGE: Final = f"{_GUIDE}/dml-errors"
HELPER_PAGE: Final = f"{_GUIDE}/dml-helper-functions"
LEVELS_PAGE: Final = f"{_GUIDE}/dml-feature-level-history"
STRIDES_PAGE: Final = f"{_GUIDE}/dml-strides"
VERSION_PAGE: Final = f"{_GUIDE}/dml-version-history"
RELEASES_PAGE: Final = "https://github.com/microsoft/DirectML/blob/master/Releases.md"

# Microsoft's command-line runner of models
_DXDISPATCH: Final = "https://github.com/microsoft/DirectML/blob/master/DxDispatch"
DXDISPATCH_PAGE: Final = f"{_DXDISPATCH}/doc/Guide.md"
DXDISPATCH_PARSER: Final = f"{_DXDISPATCH}/src/model/JsonParsers.cpp"

# the specifications of other dialects
ONNX_PAGE: Final = "https://onnx.ai/onnx/operators/onnx__Tile.html"
OPENVINO_PAGE: Final = (
    "https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html"
)
