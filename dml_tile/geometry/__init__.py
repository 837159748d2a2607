"""Positions of a tensor's elements: strides and sizes, coalesced axes, and chains of copies. Exact integers only."""
