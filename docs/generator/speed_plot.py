"""The plot of docs/speed.md: the geometric means of its table's first seed as bars, on a logarithmic scale."""

from __future__ import annotations

import math
import re
from typing import Final

_ROW: Final = re.compile(r"^\| (bound|tile|execute) \| ([\w.]+) \| ([\d.]+),", re.MULTILINE)
_LEFT, _WIDTH, _BAR, _MARGIN = 190, 480, 18, 16
_LOWEST, _HIGHEST = 0.25, 32.0
_STYLE: Final = (
    ".page { fill: #ffffff } .text { fill: #1b1f24 } .faint { fill: #57606a } .line { stroke: #57606a } "
    ".faster { fill: #2f7fb8 } .slower { fill: #c4632b } "
    "@media (prefers-color-scheme: dark) { .page { fill: #0f1419 } .text { fill: #e6edf3 } .faint { fill: #9aa6b2 } "
    ".line { stroke: #9aa6b2 } .faster { fill: #5a9fd4 } .slower { fill: #e8763a } }"
)


def speed_plot(page: str) -> str:
    """The plot of the table in a page. Raises ValueError where it has no rows."""
    rows = [(called, peer, float(mean)) for called, peer, mean in _ROW.findall(page)]
    if not rows:
        raise ValueError("docs/speed.md has no table of ratios")
    height = 2 * _MARGIN + _BAR * (len(rows) + 2)
    width = _LEFT + _WIDTH + 70
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-size="13" font-family="system-ui, sans-serif" role="img"',
        'aria-labelledby="title">',
        '<title id="title">How many times as long each peer takes as dml_tile, geometric means</title>',
        f'<style>{_STYLE}</style><rect class="page" width="{width}" height="{height}"/>',
    ]
    bottom = _MARGIN + _BAR * len(rows)
    for tick in (0.25, 0.5, 1, 2, 4, 8, 16, 32):
        weight = 2 if tick == 1 else 0.4
        line = f'x1="{_x(tick):.1f}" x2="{_x(tick):.1f}" y1="{_MARGIN}" y2="{bottom}" stroke-width="{weight}"'
        parts.append(f'<line class="line" {line}/>{_text(_x(tick), bottom + 16, f"{tick:g}", "middle", "faint")}')
    parts.append(_text(_x(1), bottom + 34, "← the peer is faster | dml_tile is faster →", "middle", "faint"))
    for i, (called, peer, mean) in enumerate(rows):
        y = _MARGIN + _BAR * i
        left, right = sorted((_x(1), _x(mean)))
        kind = "faster" if mean >= 1 else "slower"
        bar = f'x="{left:.1f}" y="{y + 3}" width="{right - left:.1f}" height="{_BAR - 5}"'
        parts.append(f'<rect class="{kind}" {bar}/>{_text(_LEFT - 8, y + 13, f"{called}: {peer}", "end", "text")}')
        parts.append(_text(max(right, _x(1)) + 4, y + 13, f"{mean:g}", "start", "text"))
    return "\n".join([*parts, "</svg>\n"])


def _x(ratio: float) -> float:
    share = math.log(max(min(ratio, _HIGHEST), _LOWEST) / _LOWEST) / math.log(_HIGHEST / _LOWEST)
    return _LEFT + _WIDTH * share


def _text(x: float, y: float, text: str, anchor: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{text}</text>'
