"""``dml-tile explain``"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dml_tile.terminal import console_of


def rules_named(incomplete: str) -> list[str]:
    """The ids of rules that begin so, for a shell."""
    from dml_tile.rulebook import RULES

    return [rule for rule in RULES if rule.startswith(incomplete)]


def explain(
    rule: Annotated[
        str | None,
        typer.Argument(metavar="RULE", help="A rule's id; without it, all rules.", autocompletion=rules_named),
    ] = None,
) -> None:
    """Tell what a rule says, what it rests on, what DirectML returns, and the page."""
    from dml_tile.reports.text import print_lines, rule_lines
    from dml_tile.rulebook import RULES, rule_named

    try:
        rules = RULES.values() if rule is None else [rule_named(rule)]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="RULE") from None
    console = console_of()
    for known in rules:
        print_lines(console, rule_lines(known))
    sys.stdout.flush()
