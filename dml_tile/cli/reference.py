"""``dml-tile levels``, ``explain``, ``schema``, ``include-dir``, ``cmake-dir``: print what the package knows."""

from __future__ import annotations

import json
from typing import Literal

import typer

from dml_tile.cli import options
from dml_tile.cli.console import CLEAN, FINDINGS
from dml_tile.cli.formats import console_of, print_text
from dml_tile.text import did_you_mean


def levels(
    operator: str | None = typer.Argument(
        None, help="Show the rows of this operator, such as GATHER.", autocompletion=options.complete_operator
    ),
    output_format: Literal["text", "json", "markdown", "html"] = typer.Option(
        "text",
        "--format",
        metavar="FORMAT",
        help="text: tables; json: an operator's rows; markdown: the matrix of Windows releases and data types; "
        "html: a page of that and of every operator.",
    ),
) -> None:
    """Show which tiles each Windows release and DirectML version accepts, and which packages contain which DirectML.

    With an operator, show the ONNX operators of which ONNX Runtime creates it, how true its values are when it is
    executed, its known departures, and what its reference page documents of it, level by level.
    """
    if operator is not None:
        _show_operator(operator, output_format)
        return
    if output_format == "json":
        raise typer.BadParameter("json is for one operator: name it, as in `dml-tile levels GATHER`")
    from dml_tile.reports.levels import levels_html, matrix_markdown, tables

    if output_format == "markdown":
        print_text(matrix_markdown())
    elif output_format == "html":
        print_text(levels_html())
    else:
        console_of().print(*tables(), sep="\n")


def _show_operator(name: str, output_format: str) -> None:
    from dml_tile.directml.operators import OPERATOR_PREFIX, operator_named, operator_names
    from dml_tile.reports.operator_levels import operator_json, operator_lines

    short = name.upper().removeprefix(OPERATOR_PREFIX)
    found = operator_named(short)
    if found is None:
        known = operator_names()
        alike = [each for each in known if each.endswith(f"_{short}")]  # GELU is ACTIVATION_GELU
        hint = did_you_mean(short, alike or known, "docs/operators.md lists all", cutoff=0.2 if alike else 0.6)
        raise typer.BadParameter(f"{name!r} is no operator; {hint}", param_hint="OPERATOR")
    if output_format not in ("text", "json"):
        raise typer.BadParameter("an operator's formats are text and json", param_hint="--format")
    print_text(operator_json(found) if output_format == "json" else operator_lines(found))


def device(
    targets: options.TargetsOption = None,
    via: options.ViaOption = None,
    output_format: Literal["text", "json"] = typer.Option(
        "text", "--format", metavar="FORMAT", help="text, or json: an object a line, one for each target."
    ),
) -> None:
    """Say whether a DirectML device is created at each target; exits with 1 if one is not.

    Without --via, for an application that asks for no minimum feature level.
    """
    from dml_tile.checks.devices import device_at
    from dml_tile.cli.config import Config, chosen_targets
    from dml_tile.reports.lines import print_lines
    from dml_tile.reports.text import device_lines

    chosen = chosen_targets(targets)
    back_end = Config().with_options({"via": via}).back_end(chosen)
    answers = [device_at(target, back_end) for target in chosen]
    for answer in answers:
        if output_format == "json":
            print_text(f"{json.dumps(answer, ensure_ascii=False, separators=(',', ':'))}\n")
        else:
            print_lines(console_of(), device_lines(answer))
    raise typer.Exit(CLEAN if all(answer["created"] for answer in answers) else FINDINGS)


def explain(
    rule: str | None = typer.Argument(
        None,
        metavar="RULE",
        help="A rule's id, or a prefix of several such as DML-BUFFER; or a result such as 80070057, -2147024809 or "
        "E_INVALIDARG, or a line that has one, quoted. Without it, all rules.",
        autocompletion=options.complete_rule_or_result,
    ),
) -> None:
    """Print a rule's requirement, its basis, DirectML's HRESULT, and the page it follows.

    Of a result: what returns it, and what to do next.
    """
    from dml_tile.checks.catalogue import NAMED, RULES, result_code, rule_named
    from dml_tile.reports.lines import print_lines
    from dml_tile.reports.text import result_code_lines, rule_lines

    console = console_of()
    explained = [*RULES.values()]
    if rule is not None:
        try:
            if code := result_code(rule):
                print_lines(console, result_code_lines(code))
                return
            family = [] if rule in NAMED else [NAMED[each] for each in NAMED if each.startswith(f"{rule}-")]
            explained = family or [rule_named(rule)]
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="RULE") from None
    for each in explained:
        print_lines(console, rule_lines(each))


def schema(
    name: str | None = typer.Argument(None, metavar="NAME", help="A schema; without it, the names of all are printed."),
) -> None:
    """Print the JSON Schema of a format that is read or written, or the names of all schemas."""
    from dml_tile.emit.schemas import schemas

    known = schemas()
    if name is None:
        print_text("".join(f"{each}\n" for each in known))
    elif name in known:
        print_text(f"{json.dumps(known[name], indent=2)}\n")
    else:
        raise typer.BadParameter(f"there is no schema {name!r}; expected one of {', '.join(known)}", param_hint="NAME")


def include_dir() -> None:
    """Print the folder of dml_tile/capture.h and dml_tile/capturing_device.h, for a compiler's -I."""
    from dml_tile.emit.cpp import get_include

    print_text(f"{get_include()}\n")


def cmake_dir() -> None:
    """Print the folder of dml_tileConfig.cmake, for CMake's -Ddml_tile_DIR; it defines the target dml_tile::capture."""
    from dml_tile.emit.cpp import get_cmake_dir

    print_text(f"{get_cmake_dir()}\n")
