"""``dml-tile explain``"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dml_tile.cli.commands.options import rules_named
from dml_tile.cli.console import console_of

if TYPE_CHECKING:
    from dml_tile.findings import Rule


def _rules_named(words: str) -> list[Rule[Any]]:
    """The rule of an id, else the rules whose ids begin with these words."""
    from dml_tile.checks.catalogue import RULES

    named = [rule for rule_id, rule in RULES.items() if rule_id.startswith(f"{words}-")]
    return [RULES[words]] if words in RULES else named


def explain(
    rule: Annotated[
        str | None,
        typer.Argument(
            metavar="RULE",
            help="A rule's id, or a prefix of several such as DML-BUFFER; without it, all rules.",
            autocompletion=rules_named,
        ),
    ] = None,
) -> None:
    """Print what a rule requires, what it rests on, what DirectML returns, and the page it follows."""
    from dml_tile.checks.catalogue import RULES, rule_named
    from dml_tile.reports.text import print_lines, rule_lines

    try:
        rules = RULES.values() if rule is None else _rules_named(rule) or [rule_named(rule)]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="RULE") from None
    console = console_of()
    for known in rules:
        print_lines(console, rule_lines(known))
