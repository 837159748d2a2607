"""Ways out of a dimension count that an operator's row lacks: sizes of 1 where they change nothing."""

from __future__ import annotations

from typing import Any, Final

from dml_tile.findings import Edit, Try
from dml_tile.rules.operator_view import OperatorView
from dml_tile.rules.tensor import TensorView, counted
from dml_tile.text import braced

_COUNTS: Final = ("DimensionCount", "ScaleCount")
"""The counts of arrays with an entry for each dimension, or for each behind the channels."""
_ZERO: Final = ("Padding", "Offset")
"""Parts of the names of such arrays whose entry for a size of 1 is 0; of others it is 1."""


def recounted(op: OperatorView, view: TensorView, count: int) -> Try | None:
    """Return the way out to give a tensor so many dimensions; None if other sizes of 1 do not suffice.

    Where all tensors have as many, what counts dimensions follows: axes, and arrays with an entry for each.
    """
    added = count - view.desc.dimension_count
    follows = op.has_one_count
    found = _behind_channels(view, added) if op.table.channels and follows else counted(view, count)
    following = _following(op, added) if found and follows else {}
    if not found or not following:
        return found
    edits = (*found.edits, *(Edit(name, value) for name, value in following.items()))
    return Try(f"{found.text}, and adapt {', '.join(following)}", edits=edits)


def _behind_channels(view: TensorView, added: int) -> Try | None:
    sizes, strides = view.sizes, view.strides
    if added < 0 or not sizes or len(sizes) < 2:
        return None
    after = (*sizes[:2], *(1,) * added, *sizes[2:])
    edits = [Edit(view.path("Sizes"), after)]
    if strides is not None:
        edits.append(Edit(view.path("Strides"), (*strides[:2], *(0,) * added, *strides[2:])))
    return Try(f"put sizes of 1 behind the channels: {braced(after)}", edits=(*edits,))


def _following(op: OperatorView, added: int) -> dict[str, Any]:
    """Return the axes, and the arrays with an entry for each dimension, of an operator whose tensors get more."""
    found = dict[str, Any]()
    if "Axis" in op.fields:
        found["Axis"] = op.fields["Axis"] + added
    if axes := op.fields.get("Axes"):
        found["Axes"] = tuple(axis + added for axis in axes)
    arrays = [field for field in op.operator.array_fields if field.counted_by in _COUNTS and op.fields[field.name]]
    for field in arrays if added > 0 else ():
        entry = 0 if any(word in field.name for word in _ZERO) else 1
        found[field.counted_by] = op.fields[field.counted_by] + added
        found[field.name] = (*(entry,) * added, *op.fields[field.name])
    return found
