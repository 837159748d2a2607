"""The bounds on what one run of a DxDispatch model writes, prints and takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dml_tile.dxdispatch import runner
from dml_tile.dxdispatch.runner import MAX_PRINTED_BYTES
from dml_tile.errors import InputError
from tests.helpers.costs import Cost, cost_of
from tests.helpers.dxdispatch_models import Json, dispatch, model, show, tile_json, write_file, zeros


def only(resource: Json, *commands: Json) -> Json:
    return model(resources={"R": resource}, dispatchables={}, commands=list(commands))


@pytest.mark.parametrize(
    ("size", "paths", "is_allowed"),
    [
        (2**14, ["a.bin"], True),
        (2**14 + 4, ["a.bin"], False),
        (2**13, ["a.bin", "b.bin"], True),
        (2**13 + 4, ["a.bin", "a.bin"], False),
        (1, ["a", "b", "c", "d"], True),
        (1, ["a", "b", "c", "d", "e"], False),
        (1, ["a/b/c/d"], True),
        (1, ["a/b/c/d/e"], False),
    ],
)
def test_files_and_folders_that_would_take_too_many_bytes_are_refused_before_the_run(
    run: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    paths: list[str],
    is_allowed: bool,
) -> None:
    monkeypatch.setattr(runner, "MAX_WRITTEN_BYTES", 2**14)
    data = only(zeros(size, "UINT8"), show("R"), *(write_file("R", path) for path in paths))
    if is_allowed:
        assert run(data).count(" written to ") == len(paths)
    else:
        with pytest.raises(
            InputError, match=rf"^/commands/{len(paths)}/resource: the model would write more than 16384"
        ):
            run(data)
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("options", [{}, {"verbose": True}], ids=["one line", "verbose"])
@pytest.mark.parametrize("as_dxdispatch", [False, True])
def test_what_is_printed_has_a_bound_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., str], options: Json, as_dxdispatch: bool
) -> None:
    count, printed = 3 * 4096, show("R", **options)
    text = run(only(zeros(count), printed), as_dxdispatch=as_dxdispatch)
    room = len(text) + len(text) // 2
    monkeypatch.setattr(runner, "MAX_PRINTED_BYTES", room)
    assert run(only(zeros(count), printed), as_dxdispatch=as_dxdispatch) == text
    data = only(zeros(count), printed, printed, write_file("R", "after.bin"), show("R"))
    message = rf"^/commands/1: the model prints more than {room} bytes; {2 * 4096 + count} values were left out$"
    with pytest.raises(InputError, match=message):
        run(data, as_dxdispatch=as_dxdispatch)
    assert (tmp_path / "after.bin").stat().st_size == 4 * count, "the commands after it are run"


def cost(folder: Path, data: Json, *options: str) -> Cost:
    """What a run costs whose model is refused, or cut off, in the end; it leaves no file."""
    (folder / "m.json").write_text(json.dumps(data))
    spent = cost_of("run", "m.json", *options, folder=folder)
    assert spent.status == 2
    assert sorted(path.name for path in folder.iterdir()) == ["cost", "m.json"]
    return spent


@pytest.mark.long
def test_a_small_model_prints_64_mebibytes_and_writes_a_gibibyte_at_most(tmp_path: Path) -> None:
    printing = cost(tmp_path, only(zeros(2**26), *[show("R")] * 3))
    assert len(printing.printed) <= MAX_PRINTED_BYTES + 200
    assert b"values were left out" in printing.printed[-200:]
    assert printing.is_within(30)
    assert printing.peak_bytes < 2**28 + 2**29
    writing = cost(tmp_path, only(zeros(2**29, "UINT8"), *[write_file("R", f"{i}.bin") for i in range(3)]))
    assert b"m.json#/commands/2/resource: the model would write more than 1073741824 bytes" in writing.printed


@pytest.mark.long
@pytest.mark.parametrize("command", [write_file("Out", "out.bin"), dispatch(InputTensor="In", OutputTensor="Out")])
def test_a_run_ends_in_time_and_leaves_no_part_of_a_file(tmp_path: Path, command: Any) -> None:
    data = model(
        resources={"In": zeros(2**24), "Out": zeros(2**26)},
        dispatchables={"tile": {"type": "TILE", "desc": tile_json([2**24], [4])}},
        commands=[*[dispatch(InputTensor="In", OutputTensor="Out")] * 3000, command],
    )
    spent = cost(tmp_path, data, "--max-time", "2")
    assert spent.printed == b"dml-tile: m.json: the run took longer than 2 s; --max-time allows more\n"
    assert spent.is_within(20)
