"""The C structs: operator, tensor and tile descriptors."""
