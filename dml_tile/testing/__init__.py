"""Help for tests of code that makes operator descriptors.

assert_accepts()    the descriptor has no findings but notes
assert_rejects()    it has others, or those of the rules that are named
simulate()          a target for where none is named
record_calls()      a list of the calls that the code makes, each a Call

The marker ``dml`` and the fixtures ``dml_target``, ``dml_device``, ``dml_calls`` and
``dml_simulate`` come with the pytest plugin.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress

from dml_tile.checking import check
from dml_tile.checks.catalogue import RULES, rule_named
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.errors import DmlError
from dml_tile.findings import Against, Finding, finding_lines
from dml_tile.lowering.lower import lower
from dml_tile.rules.tile_findings import blocks_creation
from dml_tile.simulation.calls import Call, Calls, record_calls
from dml_tile.simulation.target import resolve, simulate
from dml_tile.text import plural

__all__ = ["Call", "Calls", "assert_accepts", "assert_rejects", "record_calls", "simulate"]


def assert_accepts(
    desc: OperatorDesc | TileOperatorDesc | None, target: TargetLike | None = None, against: Against = "both"
) -> None:
    """Raise AssertionError, which shows all findings, if ``check`` has any but notes. Raises what ``check`` raises."""
    __tracebackhide__ = True
    target = resolve(target)
    findings = check(desc, target, against)
    if any(map(blocks_creation, findings)):
        raise AssertionError(_message("it should be accepted", desc, target, against, findings))


def assert_rejects(
    desc: OperatorDesc | TileOperatorDesc | None,
    target: TargetLike | None = None,
    rule: str | Collection[str] | None = None,
    against: Against = "both",
) -> tuple[Finding, ...]:
    """Raise AssertionError unless ``check`` has a finding of each ``rule``, or any but notes if none is named.

    Gives all findings. Raises ValueError, with the nearest ids, for an unknown rule, and what ``check`` raises.
    """
    __tracebackhide__ = True
    if target in RULES:
        raise ValueError(f"the target is {target!r}, which is a rule; pass it as rule={target!r}")
    rules = [rule_named(one).id for one in ([rule] if isinstance(rule, str) else rule or ())]
    target = resolve(target)
    findings = check(desc, target, against)
    broken = {finding.rule for finding in findings}
    missing = [rule for rule in rules if rule not in broken]
    if missing or not (rules or any(map(blocks_creation, findings))):
        expected = f"it should break {', '.join(missing)}" if missing else "it should be refused"
        raise AssertionError(_message(expected, desc, target, against, findings))
    return findings


def _message(
    expected: str,
    desc: OperatorDesc | TileOperatorDesc | None,
    target: Target,
    against: Against,
    findings: Sequence[Finding],
) -> str:
    lines = finding_lines(findings)
    contract = "" if against == "both" else f" against the {against}"
    is_refused = any(map(blocks_creation, findings))
    verdict = f"{desc or 'null'}: {'refused' if is_refused else 'accepted'} at {target.label}{contract}; {expected}"
    with suppress(DmlError):
        if is_refused:
            steps = len(lower(desc, target).steps)
            where = f"{plural(steps, 'tile')} that write{'s' * (steps == 1)} the same bytes there"
            lines.append(f"  try: dml_tile.lower, which finds {where}")
    return "\n".join([verdict, *lines])
