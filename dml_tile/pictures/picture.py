"""A descriptor's picture, for Python and for notebooks."""

from __future__ import annotations

from dataclasses import dataclass

from dml_tile.checks.result import results
from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from dml_tile.directml.targets import TargetLike
from dml_tile.pictures.html import picture_html
from dml_tile.pictures.marks import picture_of
from dml_tile.pictures.svg import picture_svg
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.reports.text import result_lines
from dml_tile.simulation.target import resolve

_NAME = "descriptor"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a tile's tensors in memory, below its verdict and above its findings; a notebook draws it.

    ``svg`` is an image and ``html`` a page; each is whole, and needs nothing else.
    """

    svg: str
    html: str

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg}</div>'


def show(desc: OperatorDesc | TileOperatorDesc | None, target: TargetLike | None = None) -> Picture:
    """Draw a descriptor and its findings. ``target`` None means the current target.

    ``read_operator_desc`` reads a C struct first. Raises ValueError for an unknown target, TypeError for what is no
    descriptor.
    """
    (result,) = results(_NAME, JsonDescriptor("", desc), [resolve(target)], "both")
    said = list(result_lines(result, with_lowest_level=True, with_tile=False))
    picture = picture_of(desc)
    return Picture(picture_svg(picture, said), picture_html(picture, said))
