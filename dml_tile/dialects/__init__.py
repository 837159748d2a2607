"""Tile as other specifications define it, and its DirectML descriptor.

tiles     ONNX_TILE_1, ONNX_TILE_6, ONNX_TILE_13, OPENVINO_TILE_1, WEBNN_TILE and NUMPY_TILE
directml  the descriptor of a request

The ``request`` of a dialect takes a data type, a shape and repeats, and returns a ``Request`` or raises
``dml_tile.errors.DialectError``. Only NumPy is needed.

    request = ONNX_TILE_13.request("float32", [2, 3], [1, 2])
    directml.tile_desc(request)
"""

from dml_tile.dialects.tiles import Dialect as Dialect
from dml_tile.dialects.tiles import Integers as Integers
from dml_tile.dialects.tiles import Request as Request
from dml_tile.dialects.tiles import ShapeAndRepeats as ShapeAndRepeats
from dml_tile.dialects.tiles import Specification as Specification
