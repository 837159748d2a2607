"""The Tile nodes of ONNX models."""
