"""A picture as an HTML page that needs nothing else, no scripts and no network; the memory is in tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from dml_tile.pictures.legend import COPIES, Entry, copies, facts, heading, legend, part, undrawn
from dml_tile.pictures.marks import COLOURS, PADDING, Mark
from dml_tile.pictures.table import BYTE, MemoryTable, table_of
from dml_tile.pictures.tile import TilePicture
from dml_tile.reports.lines import Line

_COLUMNS: Final = 76
_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; color: #000; background: #fff; margin: 1.5rem; max-width: 70rem }
h1 { font-size: 1.2rem; overflow-wrap: anywhere } h2 { font-size: 1.05rem; margin: 1.5rem 0 .3rem }
h1, h2, table, dt, .symbol, .finding { font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .5rem 0 } dd { margin: 0 }
dd, p { overflow-wrap: anywhere } p { margin: .3rem 0 } a { color: #0b4f8a }
.memory { overflow-x: auto } table { border-spacing: 2px }
th { font-weight: normal; color: #555; padding: 0 .4rem } th[scope=row] { text-align: right }
td { border: 1px solid #767676; padding: .1rem .5rem; text-align: center } td.gap, td.none { border-color: transparent }
td.gap { color: #555; text-align: left } td.padding { background: #f2f2f2 }
td.wrong { color: #8b0000; border: 2px dashed #8b0000 }
ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; margin: .5rem 0 }
.symbol { border: 1px solid #767676; padding: .1rem .5rem; margin-right: .3rem }
"""


def picture_html(picture: TilePicture, said: Sequence[Line]) -> str:
    """The picture, below the first line of what is ``said`` of the tile, and above the others."""
    verdict, *details = said
    return "\n".join(_page(picture, verdict.text.plain, details))


def _page(picture: TilePicture, verdict: str, details: Sequence[Line]) -> Iterator[str]:
    tables = [table_of(picture, memory, _COLUMNS, spaces=2) for memory in picture.tensors]
    colours = "\n".join(f".copy{i} {{ background: {colour} }}" for i, colour in enumerate(COLOURS))
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<title>{escape(verdict)}</title>\n<style>{_STYLE}{colours}\n</style>\n</head>\n<body>\n<main>"
    yield f"<h1>{escape(verdict)}</h1>"
    for table in tables:
        yield from _section(table)
    for why in undrawn(picture):
        yield f"<p>{escape(why)}</p>"
    yield "<h2>Legend</h2>"
    yield from _list(legend(tables))
    if named := copies(picture):
        yield f"<p>{COPIES}</p>\n<ul>"
        yield from map(_copy, named)
        yield "</ul>"
    if details:
        yield "<h2>Findings</h2>"
    for indent, text, _ in details:
        yield f'<p class="finding" style="margin-left: {indent}ch">{_linked(text.plain)}</p>'
    yield "</main>\n</body>\n</html>\n"


def _section(table: MemoryTable) -> Iterator[str]:
    name = table.memory.name
    yield f'<section aria-labelledby="{name}">\n<h2 id="{name}">{escape(heading(table.memory))}</h2>'
    yield from _list(Entry(*fact) for fact in facts(table.memory))
    yield f'<div class="memory" tabindex="0" role="region" aria-label="{name} in memory">\n<table>\n<thead>'
    yield f'<tr><th scope="col">{BYTE}</th>{"".join(f"<th scope=col>{distance}</th>" for distance in table.distances)}'
    yield "</tr>\n</thead>\n<tbody>"
    for address, marks, gap in table.rows:
        said = f'<td class="gap" colspan="{len(table.distances)}">{gap}</td>' if gap else "".join(map(_cell, marks))
        yield f'<tr><th scope="row">{address}</th>{said}</tr>'
    yield "</tbody>\n</table>\n</div>"
    if said := part(table.memory):
        yield f"<p>{said}</p>"
    yield "</section>"


def _cell(mark: Mark) -> str:
    if not mark.text:
        return '<td class="none"></td>'
    if mark.is_wrong:
        kind = "wrong"
    elif mark.colour is not None:
        kind = f"copy{mark.colour}"
    else:
        kind = "padding" if mark.text == PADDING else "element"
    return f'<td class="{kind}" title="{escape(mark.says)}">{escape(mark.text)}</td>'


def _list(entries: Iterable[Entry]) -> Iterator[str]:
    yield "<dl>"
    for symbol, means, _ in entries:
        yield f"<dt>{escape(symbol)}</dt><dd>{escape(means)}</dd>"
    yield "</dl>"


def _copy(entry: Entry) -> str:
    if entry.colour is None:
        return f"<li>{entry.symbol} {entry.means}</li>"
    return f'<li><span class="symbol copy{entry.colour}">{entry.symbol}</span>{entry.means}</li>'


def _linked(text: str) -> str:
    """A line of a report; one that is a link can be clicked."""
    return f'<a href="{escape(text)}">{escape(text)}</a>' if text.startswith("https://") else escape(text)
