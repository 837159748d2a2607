"""docs/rules.md: every rule, with an example that breaks it and one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dml_tile.checks.catalogue import RULES
from dml_tile.checks.result import alike
from dml_tile.findings import Finding, Rule
from dml_tile.reports.wording import kind_of, outcome_of
from docs.generator.call_examples import PREPARED
from docs.generator.examples import Example, example_pairs

_ABOUT: Final = """\
# Rules

This page is for a finding that you have: it lists every rule. `dml-tile explain RULE` prints the same without examples.

Each rule says what is required, what that rests on ([documented, runtime or inferred](concepts.md#basis)), and the page
it follows. Below stand an example that breaks the rule, unless DirectML may end there, what is found (of this rule;
what else the example breaks is named), and an example that passes. JSON can be given to `dml-tile check -`;
Python continues the lines at the head of its section. All examples are tried whenever the tests run.
"""
_NEXT: Final = (
    "\nNext: [check descriptors](check.md), for the answers that name rules; [lowering](lowering.md), to mend them.\n"
)


class Family(NamedTuple):
    """The rules that have the second word of their ids in common."""

    title: str
    about: str


FAMILIES: Final = {
    "OPERATOR": Family("The operator", "DML_OPERATOR_DESC, which names the operator and points to its description."),
    "TENSOR": Family("Tensors", "DML_TENSOR_DESC, which points to the description of a buffer."),
    "BUFFER": Family("Buffer tensors", "DML_BUFFER_TENSOR_DESC, for the input and the output alike."),
    "TILE": Family("Tile", "DML_TILE_OPERATOR_DESC: the support table, and how the fields belong together."),
    "LOWER": Family("Lowering", "Why a tile has no [lowering](lowering.md)."),
    "DIALECT": Family(
        "Other specifications",
        "What keeps another specification's tile from being a descriptor; DirectML is not asked. The first two are what"
        " the specifications rule out themselves: their functions raise `DialectError`, and `check` reports a model's "
        "tile by these ids.",
    ),
    "VIA": Family("Back ends", "What keeps a tile from DirectML on its way through a back end (`check --via`)."),
    "DXDISPATCH": Family(
        "DxDispatch models",
        "What DxDispatch's own parser makes of [a model](dxdispatch.md); bare descriptors are not held to it.",
    ),
    "CAPTURE": Family("Captures", "What an application [captured](cpp.md#capture-every-operator)."),
    "DEVICE": Family("Making and asking a device", "DMLCreateDevice1, and the calls of IDMLDevice."),
    "COMPILE": Family("Compiling", "IDMLDevice::CompileOperator."),
    "GRAPH": Family("Graphs", "DML_GRAPH_DESC, which IDMLDevice1::CompileGraph compiles."),
    "INITIALIZER": Family("Initializers", "IDMLDevice::CreateOperatorInitializer."),
    "TABLE": Family("Binding tables", "IDMLDevice::CreateBindingTable, and IDMLBindingTable::Reset."),
    "BINDING": Family("Bindings", "What is bound: ranges of buffers, at initialisation and at execution."),
    "DISPATCH": Family("Dispatch", "IDMLCommandRecorder::RecordDispatch."),
    "EXECUTE": Family(
        "Execution", "What an operator reads, and how much of it is executed; DirectML checks none of it."
    ),
}


def rules_page() -> str:
    """The page. Raises ValueError for a rule without a family, or without a true example."""
    pairs = example_pairs()
    if missing := RULES.keys() - pairs.keys():
        raise ValueError(f"no example for {', '.join(sorted(missing))}: see tests/helpers/rule_cases.py and {_CALLS}")
    if homeless := {_family(rule) for rule in RULES} - FAMILIES.keys():
        raise ValueError(f"no family for {', '.join(sorted(homeless))}: see {__file__}")
    return "\n".join([_ABOUT, *_contents(), *(line for family in FAMILIES for line in _section(family, pairs)), _NEXT])


_CALLS: Final = "docs/generator/call_examples.py"


def _contents() -> Iterator[str]:
    for family, (title, _) in FAMILIES.items():
        ids = ", ".join(f"[{rule.removeprefix(f'DML-{family}-')}]({_anchor(rule)})" for rule in _rules_of(family))
        yield f"- [{title}]({_anchor(title)}) (`DML-{family}-…`): {ids}"
    yield ""


def _section(family: str, pairs: dict[str, tuple[Example, Example]]) -> Iterator[str]:
    title, about = FAMILIES[family]
    yield from (f"## {title}", "", about, "")
    if family in PREPARED:
        first = next(other for other in FAMILIES if PREPARED.get(other) == PREPARED[family])
        if first == family:
            yield from ("The examples go on from here:", "", *_fenced("python", PREPARED[family]))
        else:
            yield from (f"The examples go on from [the same lines]({_anchor(FAMILIES[first].title)}).", "")
    for rule in _rules_of(family):
        yield from _entry(RULES[rule], *pairs[rule])


def _entry(rule: Rule[Any], bad: Example, good: Example) -> Iterator[str]:
    broken = [finding for finding in bad.findings if finding.rule == rule.id]
    if not broken or good.findings:
        raise ValueError(f"the examples of {rule.id} are not true: the first is to break it, the second to break none")
    also = sorted({finding.rule for finding in bad.findings} - {rule.id})
    page = rule.url.partition("#")[0].rstrip("/").rpartition("/")[2]
    yield from (f"### {rule.id}", "", rule.says, "", f"{', '.join(rule.basis.names)}; [{page}]({rule.url})", "")
    if may_end(rule):
        fields = ", ".join(f"`{finding.path}`" for finding in broken if finding.path)
        where = f" The field is {fields}." if fields else ""
        yield from (f"Where this is broken, DirectML may end the process, so no example breaks it.{where}", "")
    else:
        yield from (bad.lead, "", *_fenced(bad.language, bad.text), *_fenced("text", "\n".join(_told(broken))))
        if also:
            yield from (f"(It breaks {', '.join(f'[{other}]({_anchor(other)})' for other in also)} too.)", "")
    yield from (good.lead, "", *_fenced(good.language, good.text))


def may_end(rule: Rule[Any]) -> bool:
    """Whether DirectML may end the process where a rule is broken: it crashes, or reads past the end of an array."""
    return rule.crash or rule.id.endswith("-length")


def _told(broken: list[Finding]) -> Iterator[str]:
    """The findings as `check` prints them, without what stands in the page already."""
    for findings in alike(broken):
        first = findings[0]
        yield f"{kind_of(first)}[{first.rule}] {outcome_of(first)}"
        paths = ", ".join(finding.path for finding in findings if finding.path)
        yield f"  {paths}: {first.message}" if paths else f"  {first.message}"
        if first.suggestion:
            yield f"  try: {first.suggestion}"


def _fenced(language: str, text: str) -> list[str]:
    return [f"```{language}", text.rstrip("\n"), "```", ""]


def _anchor(heading: str) -> str:
    return f"#{heading.lower().replace(' ', '-')}"


def _family(rule: str) -> str:
    return rule.split("-")[1]


def _rules_of(family: str) -> list[str]:
    return [rule for rule in RULES if _family(rule) == family]
