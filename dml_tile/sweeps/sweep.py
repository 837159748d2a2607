"""Checks many files in Python, here or on a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dml_tile.checks.files import Checking
from dml_tile.checks.one_file import Engine, FileCheck, FileEnd, in_this_process
from dml_tile.checks.result import Result
from dml_tile.directml.targets import TargetLike
from dml_tile.errors import Problem
from dml_tile.findings import Against, bases_of
from dml_tile.readers.model_tile import KnownShapes
from dml_tile.simulation.target import resolve

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """The results of a file, tile by tile, one for each target; its ``problems`` are the parts that cannot be read."""

    source: str
    results: tuple[Result, ...] = ()
    problems: tuple[Problem, ...] = ()


def sweep(
    names: Iterable[str | os.PathLike[str]],
    targets: Sequence[TargetLike] | None = None,
    *,
    client: Client | None = None,
    via: str | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    against: Against = "both",
) -> Iterator[CheckedFile]:
    """Yield the results of files in their order, as they come.

    ``names`` are files, folders, patterns, and URLs that fsspec opens (extra ``remote``). ``targets`` None means the
    current target. With a ``client`` of dask.distributed (extra ``dask``) its cluster checks them: its workers must
    have dml_tile, and reach the files by the same names. A file whose workers die is retried, and has a problem if they
    die each time. The other parameters are those of ``check_model``.

    Raises ValueError for an unknown target, back end or ``against``.
    """
    bases_of(against)
    chosen = [resolve(target) for target in targets] if targets is not None else [resolve(None)]
    back_end = None
    if via is not None:
        from dml_tile.back_ends import back_end_named

        back_end = back_end_named(via)
    shapes = KnownShapes(dims or {}, {name: tuple(shape) for name, shape in (input_shapes or {}).items()})
    return _checked([os.fspath(name) for name in names], FileCheck(tuple(chosen), against, shapes, back_end), client)


def _checked(names: Sequence[str], check: FileCheck, client: Client | None) -> Iterator[CheckedFile]:
    engine: Engine = in_this_process
    if client is not None:
        from dml_tile.sweeps.cluster import on_cluster

        engine = on_cluster(client)
    unread: list[CheckedFile] = []
    checking = Checking(
        check.targets,
        check.against,
        check.known_shapes,
        lambda name, problem: unread.append(CheckedFile(name, problems=(problem,))),
    )
    files = checking.files(names)
    yield from unread
    results: list[Result] = []
    problems: list[Problem] = []
    for file, event in engine(check, files):
        match event:
            case Problem():
                problems.append(event)
            case FileEnd():
                yield CheckedFile(file, tuple(results), tuple(problems))
                results, problems = [], []
            case _:
                results += event
