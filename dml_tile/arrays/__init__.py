"""Tiles NumPy arrays, as each specification defines it.

numpy     tile(): numpy.tile, for what DirectML accepts at a target
onnx      Tile-1, Tile-6 and Tile-13
openvino  Tile-1
webnn     MLGraphBuilder.tile()

The functions of onnx, openvino and webnn take whatever the specification accepts, also what DirectML does not; they
raise ``DialectError`` where the specification rejects the tile.
"""
