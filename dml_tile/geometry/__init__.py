"""Where the elements of a tensor lie: strides and sizes, coalesced axes, and chains of copies. Exact integers only."""
