"""Bounds on what a report says of one item: long texts are cut, and findings and fields beyond a number are counted.

A report has an item at each target, and its name and text beside each finding. Names and messages are cut so that a
hostile input cannot inflate a report.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from dml_tile.checks.result import Result
from dml_tile.findings import Finding, Try, suggestion_of
from dml_tile.text import MAX_NAME, abridged, plural, printable, short_name, shortened

if TYPE_CHECKING:
    from dml_tile.back_ends.described_node import NodePlace
    from dml_tile.back_ends.placement import Reason
    from dml_tile.checks.placements import ModelNodes
    from dml_tile.readers.model_tile import UnknownField

MAX_CLIPPED: Final = 500
"""The most characters of a text on the page and in Markdown."""

MAX_MESSAGE: Final = 1_000
"""The most characters of a message, and of a suggestion."""

MAX_FINDINGS: Final = 1_000
"""The most findings of an operator at a target."""

MAX_FIELDS: Final = 100
"""The most fields that are known at run time only, or that no rule looks at."""


def clipped(text: str) -> str:
    """Return a text with escapes for invisible characters, cut short."""
    return shortened(printable(text[: MAX_CLIPPED + 1]), MAX_CLIPPED)


def clipped_tries(tries: tuple[Try, ...]) -> tuple[Try, ...]:
    """Return what to try as one text, cut short."""
    suggestion = suggestion_of(tries)
    return (Try(clipped(suggestion)),) if suggestion else ()


def bounded(results: Sequence[Result]) -> Sequence[Result]:
    """Return an operator's results, one for each target, as reports have them."""
    return results if all(map(_is_short, results)) else [*map(_bounded, results)]


def bounded_nodes(nodes: ModelNodes) -> ModelNodes:
    """Return a model's nodes as reports have them."""
    placed = nodes.placed
    texts = chain(chain.from_iterable(node[:4] for node in placed.nodes), (reason.text for reason in placed.reasons))
    if max(map(len, texts), default=0) <= MAX_NAME:
        return nodes
    shown = copy(nodes)
    reasons = tuple(map(_bounded_reason, placed.reasons))
    shown.placed = replace(placed, nodes=tuple(map(_bounded_node, placed.nodes)), reasons=reasons)
    shown.counted = [*map(_bounded_departure, nodes.counted)]
    return shown


def _bounded_node(node: NodePlace) -> NodePlace:
    pointer, name, domain, operator = map(short_name, node[:4])
    return node._replace(pointer=pointer, name=name, domain=domain, operator=operator)


def _bounded_departure(departure: Finding) -> Finding:
    operator, about = short_name(departure.operator), departure.about.removeprefix(departure.operator)
    about = f"{operator}{abridged(about, MAX_MESSAGE)}"
    return replace(bounded_finding(departure), operator=operator, name=short_name(departure.name), about=about)


def _bounded_reason(reason: Reason) -> Reason:
    return reason._replace(why=abridged(reason.why, MAX_MESSAGE), operator=short_name(reason.operator))


def bounded_finding(finding: Finding) -> Finding:
    """Return a finding as reports have it."""
    tries, suggestion = finding.tries, finding.suggestion or ""
    if len(suggestion) > MAX_MESSAGE:
        tries = (Try(abridged(suggestion, MAX_MESSAGE), edits=finding.edits),)
    return replace(finding, path=short_name(finding.path), message=abridged(finding.message, MAX_MESSAGE), tries=tries)


def _is_short(result: Result) -> bool:
    """Return True for most results: none of their texts is longer than a name may be."""
    item, findings = result.item, result.findings
    texts = [item.pointer, *map(str, item.unknown[:MAX_FIELDS])]
    tries = (part for each in findings[:MAX_FINDINGS] for way in each.tries for part in (way.text, way.command))
    texts += chain(tries, (text for each in findings[:MAX_FINDINGS] for text in (each.path, each.message)))
    most_fields = max(len(item.unknown), len(result.not_looked_at))
    return len(findings) <= MAX_FINDINGS and most_fields <= MAX_FIELDS and max(map(len, texts)) <= MAX_NAME


def _bounded(result: Result) -> Result:
    findings = result.findings
    if left_out := findings[MAX_FINDINGS:]:
        last = max(findings[MAX_FINDINGS - 1 :], key=attrgetter("severity"))
        message = f"{abridged(last.message, MAX_NAME)}; and {plural(len(left_out), 'more finding')}"
        findings = (*findings[: MAX_FINDINGS - 1], replace(last, message=message))
    item = result.item
    item = replace(item, pointer=short_name(item.pointer), unknown=_unknown(item.unknown))
    return replace(
        result, item=item, not_looked_at=_listed(result.not_looked_at), findings=tuple(map(bounded_finding, findings))
    )


def _listed(fields: tuple[str, ...]) -> tuple[str, ...]:
    more = (f"{len(fields) - MAX_FIELDS} more",) if len(fields) > MAX_FIELDS else ()
    return (*(short_name(field) for field in fields[:MAX_FIELDS]), *more)


def _unknown(fields: tuple[UnknownField, ...]) -> tuple[UnknownField, ...]:
    """Return the fields, of which those with short texts stay."""
    from dml_tile.readers.model_tile import UnknownField

    kept = dict(zip(map(str, fields), fields, strict=True))
    return tuple(kept.get(text, UnknownField(text)) for text in _listed(tuple(map(str, fields))))
