"""Lowerings as text: before and after side by side, and the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from rich.padding import Padding
from rich.table import Table

from dml_tile.back_ends.dialects import Request
from dml_tile.checks.result import Result
from dml_tile.checks.verdict import Verdict
from dml_tile.descriptors.tile import TileOperatorDesc, described, type_name
from dml_tile.directml.enums import TensorFlags
from dml_tile.lowering.steps import Lowering
from dml_tile.reports.lines import AnyConsole, Line, print_lines
from dml_tile.reports.text import detail_lines, located, verdict
from dml_tile.reports.wording import buffer_name, cost_of
from dml_tile.text import braced

_USUAL: Final = {"Flags": TensorFlags.NONE.name, "Strides": "packed", "GuaranteedBaseOffsetAlignment": "0"}
"""Values that get no row where all tiles have them."""

_WORDS: Final = ("accepted", Verdict.ACCEPTED_SO_FAR, "lowered", "not lowered")
"""In the order in which they are counted."""


def print_lowered(console: AnyConsole, tiles: Iterable[Result]) -> bool:
    """Print each tile's lowering as it comes, then the counts; return True if one has none."""
    counts = Counter[str]()
    for tile in tiles:
        counts[_print_verdict(console, tile)] += 1
        if tile.lowering and not tile.lowering.is_original:
            console.print(Padding(lowering_table(tile.lowering), (0, 0, 0, 2), expand=False))
            notes = (Line(2, (f"note: {note}", "yellow")) for note in tile.lowering.notes)
            print_lines(console, [Line(2, cost_of(tile.lowering)), *notes])
    if counts.total() != 1:
        shown = [f"{counts[word]} {word}" for word in _WORDS if word in (*counts, "accepted", "lowered")]
        print_lines(console, [Line(0, (", ".join(shown), "bold"))])
    return bool(counts["not lowered"])


def print_not_lowered(console: AnyConsole, tiles: Iterable[Result]) -> None:
    """Print why tiles have no lowering."""
    for tile in tiles:
        _print_verdict(console, tile)
    console.file.flush()


def lowering_table(lowering: Lowering) -> Table:
    """Return the original and the steps, side by side."""
    table = Table()
    table.add_column(no_wrap=True)
    columns = [_fields(lowering.original), *(_fields(step.desc) for step in lowering.steps)]
    for heading in ("before", *(f"step {i}" for i, _ in enumerate(lowering.steps, start=1))):
        table.add_column(heading, overflow="fold")
    for path in columns[-1]:
        _, _, field = path.partition(".")
        values = [column.get(path, "") for column in columns]
        if not field or set(values) - {"", _USUAL.get(field)}:
            table.add_row(f"  {field}" if field else path, *values)
    table.add_section()
    steps = lowering.steps
    table.add_row("reads", "input", *(buffer_name(step.reads) for step in steps))
    table.add_row("writes", "output", *(buffer_name(step.writes) for step in steps))
    table.add_row("bytes read", str(lowering.original_bytes_read), *(str(step.bytes_read) for step in steps))
    table.add_row("bytes written", str(lowering.original_bytes_written), *(str(step.bytes_written) for step in steps))
    return table


def _print_verdict(console: AnyConsole, tile: Result) -> str:
    """Print a tile's verdict and the notes on it; return the verdict's word."""
    word = "not lowered" if tile.findings else Verdict.ACCEPTED_SO_FAR
    if tile.lowering:
        word = "accepted" if tile.lowering.is_original else "lowered"
    shown = verdict(located(tile.item), word, tile.target.label)
    remark = "; there is nothing to lower" if word == "accepted" else ""
    print_lines(console, [Line(0, *shown, remark), *detail_lines(tile.target, tile.findings, tile.item.unknown)])
    return word


def _fields(tile: TileOperatorDesc | Request) -> Mapping[str, str]:
    if isinstance(tile, Request):
        sizes = {"InputTensor.Sizes": braced(tile.shape), "OutputTensor.Sizes": braced(tile.output_shape)}
        return {"DataType": tile.data_type, "Repeats": braced(tile.repeats), **sizes}
    buffers = described(tile)
    fields = {"DataType": type_name(buffers[0].data_type), "Repeats": braced(tile.repeats or ())}
    for name, buffer in zip(("InputTensor", "OutputTensor"), buffers, strict=True):
        fields |= {
            name: "",
            f"{name}.Flags": str(TensorFlags(buffer.flags).name),
            f"{name}.Sizes": braced(buffer.sizes or ()),
            f"{name}.Strides": "packed" if buffer.strides is None else braced(buffer.strides),
            f"{name}.TotalTensorSizeInBytes": str(buffer.total_tensor_size_in_bytes),
            f"{name}.GuaranteedBaseOffsetAlignment": str(buffer.guaranteed_base_offset_alignment),
        }
    return fields
