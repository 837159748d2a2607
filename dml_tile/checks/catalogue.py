"""All rules by their ids, and the result codes of DirectML. Most checks do without: importing it imports all rules."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from dml_tile.back_ends.back_end import BACK_END_RULES
from dml_tile.back_ends.directml import DIALECT_RULES, SPECIFICATION_RULES
from dml_tile.directml import pages
from dml_tile.directml.enums import FIRST_FAILURE, HRESULT
from dml_tile.dxdispatch.rules import DXDISPATCH_RULES
from dml_tile.findings import KNOWN, OWN, Rule
from dml_tile.lowering.steps import LOWERING_RULES
from dml_tile.rules import binding, device, dispatch, execution, graph
from dml_tile.rules.capture import CAPTURE_RULES
from dml_tile.rules.descriptor import DESCRIPTOR_RULES
from dml_tile.rules.operator import OPERATOR_LEVEL_RULES
from dml_tile.rules.operator_fields import OPERATOR_FIELD_RULES
from dml_tile.text import did_you_mean

_RULES: Final[tuple[tuple[Rule[Any], ...], ...]] = (
    DESCRIPTOR_RULES,
    (*OPERATOR_LEVEL_RULES, *OPERATOR_FIELD_RULES),
    (*SPECIFICATION_RULES.values(), *DIALECT_RULES, *BACK_END_RULES),
    (*DXDISPATCH_RULES, *CAPTURE_RULES, *LOWERING_RULES),
    (*binding.BINDING_COUNT_RULES, *binding.BINDING_DESC_RULES, *binding.RANGE_RULES),
    (*binding.OVERLAP_RULES, *binding.REBINDING_RULES),
    (*device.EXPORT_RULES, *device.CREATION_RULES, *device.FEATURE_RULES, *device.REQUESTED_LEVEL_RULES),
    (*device.FAULT_RULES, *device.REMOVAL_RULES),
    (*device.COMPILATION_RULES, *device.COMPILATION_FLAG_RULES, *device.INITIALIZER_RULES),
    (*graph.GRAPH_CALL_RULES, *graph.GRAPH_RULES, *graph.CONNECTION_RULES),
    (*dispatch.TABLE_RULES, *dispatch.TABLE_USE_RULES, *dispatch.DISPATCH_RULES),
    (*dispatch.EXECUTION_RULES, *dispatch.INITIALIZATION_RULES, *dispatch.PERSISTENCE_RULES),
    (*execution.OPERATOR_RULES, *execution.WORK_RULES, *execution.CONSTANT_RULES, *execution.ELEMENT_RULES),
)

RULES: Final[dict[str, Rule[Any]]] = {rule.id: rule for rules in _RULES for rule in rules}
"""Every rule, by its id."""


NAMED: Final[dict[str, Rule[Any]]] = RULES | {each.id: each for each in OWN.values() if each.is_selectable} | KNOWN
"""The rules that ``--select`` and ``--ignore`` name: of descriptors, the package's own, and known departures."""


def rule_named(rule_id: str) -> Rule[Any]:
    """Return the rule with this id. Raises ValueError, with the nearest ids, for others."""
    if rule_id not in NAMED:
        hint = did_you_mean(rule_id, NAMED, "`dml-tile explain` lists all rules", count=3, cutoff=0.4)
        raise ValueError(f"there is no rule {rule_id!r}; {hint}")
    return NAMED[rule_id]


class ResultCode(NamedTuple):
    """A result code, the calls that return it and why, the next step, and the page about it."""

    hresult: HRESULT
    returned_by: str
    next_step: str
    url: str

    @property
    def rules(self) -> list[Rule[Any]]:
        """The rules that DirectML answers with this code."""
        return [rule for rule in RULES.values() if rule.hresult is self.hresult]


_NEW_DEVICE: Final = "make a new Direct3D 12 device and a new DirectML device; no call on the old ones succeeds again"


@cache
def result_codes() -> dict[str, ResultCode]:
    """Return the result codes by name, as result_codes.toml has them."""
    import tomllib  # explain alone needs it

    rows = tomllib.loads(Path(__file__).with_name("result_codes.toml").read_text("utf-8"))
    return {
        name: ResultCode(
            HRESULT[name],
            row["returned_by"],
            row["next_step"].format(new_device=_NEW_DEVICE),
            getattr(pages, row.get("page", "ERRORS")),
        )
        for name, row in rows.items()
    }


def result_code(text: str) -> ResultCode | None:
    """Return the first code that a text spells; None if it spells none.

    A code is its name, its digits, as ``80070057``, ``0x80070057``, ``-2147024809`` or ``2147942487``, or stands in a
    line, as ``80070057 The parameter is incorrect``.

    Raises ValueError for a number that is no code of DirectML's.
    """
    words = _WORD.findall(text)
    codes = result_codes()
    named = (codes.get(word.upper()) for word in words)
    numbers = [number for number in map(_failure, words) if number is not None]
    numbered = (row for number in numbers for row in codes.values() if row.hresult == number)
    found = next(filter(None, (*named, *numbered)), None)
    if found is None and numbers:
        known = ", ".join(str(row.hresult) for row in codes.values())
        raise ValueError(f"0x{numbers[0]:08X} is no result of DirectML's; these are: {known}")
    return found


_WORD: Final = re.compile(r"(?<!\w)-?\w+")


def _failure(word: str) -> int | None:
    """Return the HRESULT of a failure that a word spells; None for another word."""
    if digits := re.fullmatch("(?:0x)?([0-9a-f]{8})", word, re.IGNORECASE | re.ASCII):
        number = int(digits[1], 16)
    elif re.fullmatch("-?[0-9]{9,10}", word, re.ASCII):
        number = int(word) + (2**32 if word.startswith("-") else 0)
    else:
        return None
    return number if FIRST_FAILURE <= number < 2**32 else None
