"""Tile as other specifications define it, and its DirectML descriptor.

onnx      Tile-1, Tile-6 and Tile-13
openvino  Tile-1
webnn     MLGraphBuilder.tile()
numpy     numpy.tile
directml  the descriptor of a request

A function of the first four takes a data type, a shape and repeats, and returns a ``Request`` or raises
``dml_tile.errors.DialectError``. Only NumPy is needed.

    request = onnx.tile_13("float32", [2, 3], [1, 2])
    directml.tile_desc(request)
"""

from dml_tile.dialects.request import Dialect as Dialect
from dml_tile.dialects.request import Integers as Integers
from dml_tile.dialects.request import Request as Request
from dml_tile.dialects.request import Specification as Specification
