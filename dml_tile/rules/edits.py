"""Edits of a descriptor that its findings suggest, which are offered only if the descriptor with all of them passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from dml_tile.descriptors.structs import Struct
from dml_tile.findings import Edit, Finding
from dml_tile.rules.tile_findings import blocks_creation

Described = TypeVar("Described", bound=Struct)

MAX_EDITS: Final = 32
"""The most edits that the findings of a descriptor offer."""

_STEP: Final = re.compile(r"\w+")
_TOTAL: Final = "TotalTensorSizeInBytes"
_FIELDS_OF_THE_TOTAL: Final = frozenset({"DataType", "Sizes", "Strides"})


def edited(desc: Described, edits: Iterable[Edit]) -> Described:
    """Return a descriptor with other values, made in this order. Raises ValueError where no C field holds a value."""
    data = desc.model_dump(by_alias=True)
    for path, value in edits:
        data = _with(data, [int(step) if step.isdigit() else step for step in _STEP.findall(path)], value)
    return type(desc).model_validate(data)


def _with(data: Any, steps: Sequence[str | int], value: Any) -> Any:
    """Return data with another value, without the counts and totals that the constructor works out of it."""
    step, *rest = steps
    if data is None:  # another edit has made it null
        return None
    if isinstance(step, int):
        return (*data[:step], _with(data[step], rest, value) if rest else value, *data[step + 1 :])
    if step not in data and "Desc" in data:
        return data | {"Desc": _with(data["Desc"], steps, value)}
    changed = data | {step: _with(data[step], rest, value) if rest else value}
    if "GuaranteedBaseOffsetAlignment" in data and step in _FIELDS_OF_THE_TOTAL:
        changed.pop(_TOTAL, None)
        if step == "Sizes" and not rest:
            changed.pop("DimensionCount", None)
    return changed


def offered(
    desc: Described, findings: Sequence[Finding], check: Callable[[Described], Iterable[Finding]]
) -> tuple[Finding, ...]:
    """Return the findings of a descriptor, without their edits unless ``check`` passes the descriptor with all of them.

    Of several edits of one field, the last is made, and only that is offered; of a tensor's total, none beside others.
    """
    values = {edit.path: edit.value for finding in findings for edit in finding.edits}
    kept = list[Finding]()
    if len(values) <= MAX_EDITS:
        kept = [each if _is_made(each, values) else _without_edits(each) for each in findings]
    if kept and _passes(desc, [edit for each in kept for edit in each.edits], check):
        return tuple(kept)
    return tuple(map(_without_edits, findings))


def _is_made(finding: Finding, values: Mapping[str, Any]) -> bool:
    """Return True if no edit of other findings replaces one of a finding's."""
    tensor, _, field = finding.path.rpartition(".")
    if field == _TOTAL and any(path.startswith(f"{tensor}.") and path != finding.path for path in values):
        return False  # it follows
    return all(values[path] == value for path, value in finding.edits)


def _passes(desc: Described, edits: Iterable[Edit], check: Callable[[Described], Iterable[Finding]]) -> bool:
    try:
        return not any(map(blocks_creation, check(edited(desc, edits))))
    except ValueError:  # no C field holds a value
        return False


def _without_edits(finding: Finding) -> Finding:
    return replace(finding, tries=tuple(each for each in finding.tries if not each.edits))
