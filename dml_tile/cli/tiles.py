"""``dml-tile show``, ``lower`` and ``emit``: draw tiles, print their lowerings, and source text that builds them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, Literal

import typer

from dml_tile.cli import options
from dml_tile.cli.console import CLEAN, FINDINGS, UNREADABLE, ExitStatus, complain, count_passed_over, print_stderr
from dml_tile.cli.formats import console_of, print_text, replaced, require_writable
from dml_tile.errors import DmlError
from dml_tile.findings import Finding, unreadable

if TYPE_CHECKING:
    from dml_tile.back_ends.deployment import Deployment
    from dml_tile.back_ends.described_node import DescribedNode
    from dml_tile.checks.files import ChosenTiles
    from dml_tile.checks.result import Result
    from dml_tile.descriptors.graph import GraphDesc
    from dml_tile.descriptors.operator import OperatorDesc
    from dml_tile.directml.targets import Target
    from dml_tile.pictures.labels import TilePicture
    from dml_tile.readers.item import Item
    from dml_tile.readers.model_names import KnownShapes
    from dml_tile.reports.lines import Line

MAX_TILES: Final = 10
"""The number of tiles drawn on standard output; only the pointers of further ones are printed."""

NO_TILE: Final = unreadable("", "there is no tile to draw")


def show(
    file: options.FileArgument,
    pointer: str | None = typer.Option(
        None, metavar="POINTER", help="The tile to draw: the text after # in the output of check."
    ),
    targets: options.TargetsOption = None,
    output: str | None = typer.Option(
        None, "--output", "-o", metavar="FILE.svg", help="Draw the only tile into a file instead."
    ),
    dim: options.DimsOption = None,
    input_shape: options.InputShapesOption = None,
    root: options.RootOption = None,
) -> None:
    """Draw a tile's tensors as they lie in memory; exits with 1 if there are findings, or one cannot be drawn."""
    from dml_tile.checks.files import chosen_tiles
    from dml_tile.cli.config import Config, one_target

    if output is not None and PurePath(output).suffix.lower() != ".svg":
        raise typer.BadParameter(f"{output!r} does not end in .svg", param_hint="--output")
    require_writable(output)
    target = one_target(targets, "tiles are drawn with the findings of one target")
    status = ExitStatus()
    shapes = Config().with_options({"dim": dim, "input_shape": input_shape}).known_shapes()
    chosen = chosen_tiles(file, shapes, pointer, status.complain, count_passed_over, root=options.folder_of_links(root))
    if output is None:
        _print_drawings(file, chosen, target, status)
    else:
        _write_drawing(file, chosen, target, output, status)
    raise typer.Exit(status.code)


def _print_drawings(name: str, chosen: ChosenTiles, target: Target, status: ExitStatus) -> None:
    """Draw the tiles of a file or folder, with their findings at a target, on standard output."""
    from dml_tile.pictures.table import picture_lines
    from dml_tile.reports.lines import Line, print_lines
    from dml_tile.text import printable

    console = console_of()
    not_drawn: list[Result] = []
    i = -1
    for i, (result, picture, lines) in enumerate(_drawings(chosen, target, status)):
        if i < MAX_TILES:
            verdict, *details = lines
            print_lines(console, [verdict, *picture_lines(picture, console.width), *details])
        else:
            not_drawn.append(result)
    if i < 0 and status.code != UNREADABLE:
        complain(name, [NO_TILE])
    if not_drawn:
        more = f"{len(not_drawn)} more {'tile is' if len(not_drawn) == 1 else 'tiles are'} not drawn"
        print_lines(console, [Line(0, f"{more}; {printable(_how_to_choose(not_drawn))}")])


def _write_drawing(name: str, chosen: ChosenTiles, target: Target, image: str, status: ExitStatus) -> None:
    """Draw the only tile of a file into the file ``image``; whole, or not at all."""
    from dml_tile.pictures.picture import picture_svg
    from dml_tile.pictures.table import undrawn_lines
    from dml_tile.reports.lines import print_lines

    drawings = list(_drawings(chosen, target, status))
    if len(drawings) > 1:
        how = _how_to_choose([result for result, _, _ in drawings])
        status.complain(name, unreadable("", f"an image is of one tile; {how}"))
    elif not drawings and status.code != UNREADABLE:
        status.complain(name, NO_TILE)
    if status.code == UNREADABLE:
        return
    ((_, picture, (*lines,)),) = drawings
    if status.code:
        print_lines(console_of(sys.stderr), [lines[0], *undrawn_lines(picture), *lines[1:]])
    if picture.tensors:
        with replaced(image) as file:
            file.write(picture_svg(picture, lines))


def _how_to_choose(tiles: Sequence[Result]) -> str:
    from dml_tile.text import listed

    files = [*dict.fromkeys(tile.item.source for tile in tiles)]
    if len(files) > 1:
        return f"name one of the files: {listed(files)}"
    return f"choose one with --pointer: {listed([tile.item.pointer for tile in tiles])}"


def _drawings(
    chosen: ChosenTiles, target: Target, status: ExitStatus
) -> Iterator[tuple[Result, TilePicture, Iterator[Line]]]:
    """Yield each tile's result, its picture, and what ``check`` prints of it."""
    from dml_tile.checks.judging import judged
    from dml_tile.reports.text import result_lines

    for file, part in chosen:
        (result,) = judged(file, part, [target], "both")
        picture = _picture(part)
        if result.findings or picture.undrawn:
            status.count_findings()
        yield result, picture, result_lines(result, with_operator=False)


def _picture(item: Item) -> TilePicture:
    from dml_tile.back_ends import directml
    from dml_tile.descriptors.graph import GraphDesc
    from dml_tile.pictures.labels import no_picture, picture_of
    from dml_tile.reports.wording import how_to_fix

    if item.node is None:
        if item.other is not None or isinstance(item.desc, GraphDesc):
            return no_picture("it is no Tile operator")
        return picture_of(item.desc)
    if item.unknown:
        fixed_by = how_to_fix(item.unknown)
        return no_picture(f"not all of it is known before the model runs{fixed_by and f'; try {fixed_by}'}")
    if item.node.error:
        return no_picture("its own specification rules it out")
    try:
        return picture_of(directml.tile_desc(item.node.request))
    except DmlError:
        return no_picture("no descriptor does the same")


def lower(
    file: options.FileArgument,
    targets: options.TargetsOption = None,
    output_format: Literal["text", "json", "cpp", "python"] = typer.Option(
        "text",
        "--format",
        metavar="FORMAT",
        help="text: tables; json: a DxDispatch model of one tile; cpp, python: code that builds the steps.",
    ),
    pointer: str | None = typer.Option(
        None, metavar="POINTER", help="The tile to lower: the text after # in the output of check."
    ),
    no_float_carriers: bool = typer.Option(
        False, "--no-float-carriers", help="Never reinterpret other data types as floats."
    ),
    name: options.NameOption = None,
    namespace: options.NamespaceOption = None,
    dim: options.DimsOption = None,
    input_shape: options.InputShapesOption = None,
    via: options.ViaOption = None,
    root: options.RootOption = None,
) -> None:
    """Find tiles that do the same at an older target; exits with 1 if a tile has none."""
    from dml_tile.checks.files import chosen_tiles
    from dml_tile.checks.lowerings import lower_item
    from dml_tile.cli.config import Config, one_target, require_models
    from dml_tile.emit.source import lowering_source
    from dml_tile.reports.lowering import print_lowered

    target = one_target(targets, "tiles are lowered for one target")
    _require_names(output_format, name, namespace)
    status = ExitStatus()
    config = Config().with_options({"via": via, "dim": dim, "input_shape": input_shape})
    back_end = config.back_end([target])
    if back_end and not Path(file).is_dir():
        require_models(back_end.name, [file])
    chosen = chosen_tiles(
        file,
        config.known_shapes(),
        pointer,
        status.complain,
        count_passed_over,
        back_end,
        target,
        options.folder_of_links(root),
    )
    tiles = (
        lower_item(file, part, target, back_end, allow_float_reinterpretation=not no_float_carriers)
        for file, part in chosen
    )
    if output_format == "text":
        status.count_findings(are_failing=print_lowered(console_of(), tiles))
    elif output_format == "json":
        _print_model(file, list(tiles), status)
    elif lowerings := _lowered_tiles(list(tiles), status):
        for text in lowering_source(output_format, lowerings, name or "", namespace or ""):
            print_text(text)
    raise typer.Exit(status.code)


def _print_model(name: str, tiles: list[Result], status: ExitStatus) -> None:
    """Print a DxDispatch model of the only tile."""
    from dml_tile.emit.source import lowering_model
    from dml_tile.rules.tile import operator_is_checked

    others = [tile for tile in tiles if any(finding.rule == operator_is_checked.id for finding in tile.findings)]
    lowered = [tile for tile in tiles if tile not in others]
    if len(tiles) > 1 and lowered:
        status.complain(name, unreadable("", f"a model is of one tile; {_how_to_choose(lowered)}"))
        return
    for tile in _lowered_tiles(tiles, status):
        assert tile.lowering
        print_text(f"{json.dumps(lowering_model(tile.lowering), indent=2)}\n")
        if not tile.target.level.has_graphs:
            print_stderr(
                f"dml-tile: DxDispatch runs no model at {tile.target.name}: it needs IDMLDevice1, of 2_1 and later"
            )


def _lowered_tiles(tiles: list[Result], status: ExitStatus) -> list[Result]:
    """Return the tiles to print, none if a file could not be read; print on standard error why others have none."""
    from dml_tile.reports.lowering import print_not_lowered

    without = [tile for tile in tiles if not tile.lowering]
    if without:
        print_not_lowered(console_of(sys.stderr), without)
        status.count_findings()
    return [] if status.code == UNREADABLE else [tile for tile in tiles if tile.lowering]


def emit(
    file: str = typer.Argument(
        ...,
        metavar="FILE",
        help="A DxDispatch model, a descriptor, a list of them or JSON lines; - is standard input. With --via ort, an "
        "ONNX model.",
    ),
    language: Literal["cpp", "json", "python"] = typer.Option(
        ..., "--lang", "--format", help="C++ for DirectML.h, DirectML's names in JSON, Python."
    ),
    name: options.NameOption = None,
    namespace: options.NamespaceOption = None,
    via: str | None = typer.Option(
        None,
        metavar="BACKEND",
        help="ort, or a release such as ort-1.20: print what ONNX Runtime's DirectML provider creates of a model, as "
        "C++ or JSON lines.",
    ),
    graph: bool = typer.Option(
        False,
        "--graph",
        help="With --via ort --lang json: print the graphs that the provider compiles of nodes of known sizes.",
    ),
    targets: options.TargetsOption = None,
    dim: options.DimsOption = None,
    input_shape: options.InputShapesOption = None,
    root: options.RootOption = None,
) -> None:
    """Print source text that builds each tile and graph of tiles; exits with 1 if it leaves out others."""
    from dml_tile.cli.config import Config, one_target
    from dml_tile.emit.source import nodes_source, source_text, why_left_out
    from dml_tile.files.paths import why_refused
    from dml_tile.readers.descriptors import read_source
    from dml_tile.readers.item import Item
    from dml_tile.readers.sources import is_model_file

    _require_names(language, name, namespace)
    if refused := why_refused(file, options.folder_of_links(root), may_be_special=True):
        complain(file, [unreadable("", refused)])
        raise typer.Exit(UNREADABLE)
    if via is not None:
        config = Config().with_options({"via": via, "dim": dim, "input_shape": input_shape})
        target = one_target(targets, "a model is described for one target")
        back_end = config.back_end([target])
        if language == "python" or not back_end or not back_end.places_nodes:
            others = "`--via ort --lang json` or `cpp` describes a model; there is no other"
            raise typer.BadParameter(others, param_hint="--via")
        if graph and language == "cpp":
            raise typer.BadParameter("it is for json, not cpp", param_hint="--graph")
        nodes, without = _described_nodes(file, back_end.deployed(target), config.known_shapes(), as_graphs=graph)
        if language == "cpp":
            operators = ((node, descs) for node, descs, _ in nodes)
            for text in nodes_source(file, operators, name or "", namespace or ""):
                print_text(text)
        else:
            _print_nodes(nodes)
        complain(file, without)
        raise typer.Exit(FINDINGS if without else CLEAN)
    if targets or dim or input_shape or graph:
        raise typer.BadParameter("targets, sizes and --graph are for --via ort", param_hint="--via")
    if is_model_file(file):
        ways = "`dml-tile lower --format cpp` builds the tiles of models, `--via ort --lang json` describes their nodes"
        complain(file, [unreadable("", f"emit reads JSON; {ways}")])
        raise typer.Exit(UNREADABLE)
    described: list[Item] = []
    problems: list[Finding] = []
    left_out: list[Finding] = []
    for part in read_source(file):
        if not isinstance(part, Item):
            problems.append(part)
        elif not part.is_operator:
            continue
        elif reason := why_left_out(part):
            left_out.append(unreadable(part.pointer, reason))
        else:
            described.append(part)
    complain(file, problems + left_out)
    if problems:
        raise typer.Exit(UNREADABLE)
    for text in source_text(language, file, described, name or "", namespace or ""):
        print_text(text)
    raise typer.Exit(FINDINGS if left_out else CLEAN)


def _described_nodes(
    file: str, deployment: Deployment, known_shapes: KnownShapes, *, as_graphs: bool
) -> tuple[list[tuple[DescribedNode, list[OperatorDesc], list[GraphDesc]]], list[Finding]]:
    """Return the operators and graphs that ONNX Runtime's DirectML provider creates of nodes, and why others have none.

    Exits where the model cannot be read.
    """
    from pydantic import ValidationError

    from dml_tile.back_ends.described_node import DescribedNode, DescriptionOutcome
    from dml_tile.checks.files import unknown_names
    from dml_tile.descriptors.graph import GraphDesc
    from dml_tile.descriptors.operator import OperatorDesc
    from dml_tile.readers.file_kinds import kind_of
    from dml_tile.readers.sandbox.parent import ModelReader

    kind = kind_of(file)
    if kind is None or kind.reader != "ONNX":
        complain(file, [unreadable("", "--via ort takes ONNX models (*.onnx)")])
        raise typer.Exit(UNREADABLE)
    with closing(ModelReader(known_shapes, [deployment], describes=True, as_graphs=as_graphs)) as reader:
        parts, facts = reader.parts(Path(file)), reader.new_facts()
    problems = [part for part in parts if isinstance(part, Finding)]
    complain(file, problems)
    for option, unknown in unknown_names(known_shapes, facts, [file]):
        complain(option, [unreadable("", unknown)])
        raise typer.Exit(UNREADABLE)
    if problems:
        raise typer.Exit(UNREADABLE)
    described, left_out = list[tuple["DescribedNode", list[OperatorDesc], list[GraphDesc]]](), list[Finding]()
    for node in parts:
        assert isinstance(node, DescribedNode)
        try:
            descs = [OperatorDesc.model_validate(desc) for desc in node.descs]
            graphs = [GraphDesc.model_validate(node.graph)] if node.graph else []
        except ValidationError as error:
            why = f"{node.place.operator} is {DescriptionOutcome.NOT_DESCRIBED}: {error.errors()[0]['msg']}"
            left_out.append(unreadable(node.place.pointer, why))
            continue
        described.append((node, descs, graphs))
        if node.outcome is not DescriptionOutcome.DESCRIBED:
            left_out.append(unreadable(node.place.pointer, node.why_left_out))
    return described, left_out


def _print_nodes(nodes: Iterable[tuple[DescribedNode, list[OperatorDesc], list[GraphDesc]]]) -> None:
    """Print the operators and graphs of nodes as JSON, a line each.

    A label, and the name of an operator in a graph, is a node's place in the model, its operator and its name.
    """
    for node, descs, graphs in nodes:
        for desc in descs:
            described = desc.model_dump(mode="json", by_alias=True)
            line = {"dml_tile_capture": 1, "hresult": None, "label": node.label, "operator": described}
            print_text(f"{json.dumps(line)}\n")
        for made in graphs:
            print_text(f"{made.model_dump_json(by_alias=True)}\n")


def _require_names(language: str, name: str | None, namespace: str | None) -> None:
    """Raise typer.BadParameter for names that the language has no place for, or that are no identifiers."""
    from dml_tile.emit.cpp import require_identifier

    for option, value, languages in ("--name", name, ("cpp", "python")), ("--namespace", namespace, ("cpp",)):
        if value is None:
            continue
        if language not in languages:
            raise typer.BadParameter(f"it is for {' and '.join(languages)}, not {language}", param_hint=option)
        try:
            for identifier in value.split("::") if option == "--namespace" else [value]:
                require_identifier(identifier)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint=option) from None
