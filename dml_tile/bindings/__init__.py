"""Memory that tiles are bound to: buffers, the ranges of them, and the slots of a binding table."""
