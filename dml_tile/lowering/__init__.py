"""Lowering: the tiles that an older DirectML takes, and that write the same bytes as one that it refuses.

A lowering is a chain of tiles of one data type. The first reads the input, each other one what the one before it wrote,
and the last writes the output; what lies between is scratch memory, packed in the order of the output. That is the kind
of lowering that is looked for, and of which the findings of the ``DML-LOWER-…`` rules say that there is none.
"""
