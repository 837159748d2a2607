"""Running DxDispatch's models, and what is refused before anything is written."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dml_tile.errors import InputError, RefusedModelError
from tests.helpers.dxdispatch_models import OWNED, Json, model, tile_json, values, zeros


def test_a_model_runs_and_prints_as_dxdispatch_does(run: Callable[..., str]) -> None:
    assert run(model()) == "Resource 'Out': 1, 2, 1, 2\n"


def test_a_name_cannot_move_the_cursor(run: Callable[..., str]) -> None:
    data = model(
        resources={"\x1b[2J": values(1)}, dispatchables={}, commands=[{"type": "print", "resource": "\x1b[2J"}]
    )
    assert run(data) == "Resource '\\x1b[2J': 1\n"


def test_commands_are_done_in_order_and_change_resources_for_good(run: Callable[..., str]) -> None:
    dispatch = model()["commands"][0]
    show = {"type": "print", "resource": "Out"}
    again = dispatch | {"bindings": {"InputTensor": {"name": "Out"}, "OutputTensor": ["In4"]}}
    data = model(
        resources={"In": values(1, 2), "Out": zeros(4), "In4": zeros(8)},
        commands=[show, dispatch, show, again, {"type": "print", "resource": "In4"}],
    )
    assert run(data) == (
        "Resource 'Out': 0, 0, 0, 0\nResource 'Out': 1, 2, 1, 2\nResource 'In4': 1, 2, 1, 2, 0, 0, 0, 0\n"
    )


def test_a_binding_may_begin_within_a_resource(run: Callable[..., str]) -> None:
    bindings = {
        "InputTensor": {"name": "In", "elementOffset": 4},
        "OutputTensor": {"name": "Out", "elementOffset": 1, "elementSizeInBytes": 16},
    }
    data = model(resources={"In": values(9, 9, 9, 9, 1, 2), "Out": zeros(9)})
    data["commands"][0]["bindings"] = bindings
    assert run(data) == "Resource 'Out': 0, 0, 0, 0, 1, 2, 1, 2, 0\n"


def test_an_owned_input_is_bound_at_initialisation_and_kept(run: Callable[..., str]) -> None:
    overwrite = {"type": "TILE", "desc": tile_json([1], [2])}
    data = model(
        resources={"In": values(1, 2), "Out": zeros(4), "Nines": values(9)},
        dispatchables={"tile": OWNED, "overwrite": overwrite},
        commands=[
            {
                "type": "dispatch",
                "dispatchable": "overwrite",
                "bindings": {"InputTensor": "Nines", "OutputTensor": "In"},
            },
            {"type": "print", "resource": "In"},
            {"type": "dispatch", "dispatchable": "tile", "bindings": {"OutputTensor": "Out"}},
            {"type": "print", "resource": "Out"},
        ],
    )
    assert run(data) == "Resource 'In': 9, 9\nResource 'Out': 1, 2, 1, 2\n"


@pytest.mark.parametrize(
    ("changes", "rule", "path"),
    [
        ({"bindings": {"OutputTensor": "Out"}}, "DML-BINDING-missing", "InputTensor"),
        ({"bindings": {"InputTensor": "In"}}, "DML-BINDING-missing", "OutputTensor"),
        ({"bindings": {"InputTensor": "In", "OutputTensor": "Small"}}, "DML-BINDING-SizeInBytes", "OutputTensor"),
        ({"bindings": {"InputTensor": "Out", "OutputTensor": "Out"}}, "DML-BINDING-overlap", "OutputTensor"),
        (
            {"bindings": {"InputTensor": {"name": "Long", "elementOffset": 1}, "OutputTensor": "Out"}},
            "DML-BINDING-Offset",
            "InputTensor",
        ),
        (
            {"bindings": {"InputTensor": {"name": "In", "elementOffset": 2**60}, "OutputTensor": "Out"}},
            "DML-BINDING-SizeInBytes",
            "InputTensor",
        ),
        (
            {"dispatchable": "owned", "bindings": {"InputTensor": "In", "OutputTensor": "Out"}},
            "DML-BINDING-owned",
            "InputTensor",
        ),
    ],
)
def test_a_wrong_binding_is_a_finding_of_its_command(
    run: Callable[..., str], tmp_path: Path, changes: Json, rule: str, path: str
) -> None:
    data = model(resources={"In": values(1, 2), "Out": zeros(4), "Small": zeros(3), "Long": zeros(3)})
    data["dispatchables"]["owned"] = OWNED
    write = {"type": "writeFile", "resource": "In", "targetPath": "early.bin"}
    data["commands"] = [write, data["commands"][0] | changes]
    with pytest.raises(RefusedModelError) as caught:
        run(data)
    ((pointer, findings),) = caught.value.results.items()
    assert pointer == "/commands/1"
    assert [(finding.rule, finding.path) for finding in findings] == [(rule, path)]
    assert not list(tmp_path.iterdir()), "nothing is written before all bindings are known to be good"


@pytest.mark.parametrize(
    ("dispatchable", "rule"),
    [
        (OWNED | {"bindings": {}}, "DML-BINDING-missing"),
        (OWNED | {"bindings": None}, "DML-BINDING-missing"),
        (OWNED | {"bindings": {"InputTensor": {"name": "In", "elementOffset": 1}}}, "DML-BINDING-Offset"),
        (OWNED | {"bindings": {"InputTensor": {"name": "In", "elementOffset": 4}}}, "DML-BINDING-SizeInBytes"),
        ({"type": "TILE", "desc": tile_json([2], [2]), "bindings": {"InputTensor": "In"}}, "DML-BINDING-owned"),
    ],
)
def test_a_wrong_binding_at_initialisation_is_a_finding_of_its_dispatchable(
    run: Callable[..., str], dispatchable: Json, rule: str
) -> None:
    for commands in ([], [{"type": "dispatch", "dispatchable": "tile", "bindings": {"OutputTensor": "Out"}}]):
        padded = values(1, 2, 3, 4, 5)
        data = model(resources={"In": padded, "Out": zeros(4)}, dispatchables={"tile": dispatchable}, commands=commands)
        with pytest.raises(RefusedModelError) as caught:
            run(data)
        assert {pointer: [finding.rule for finding in found] for pointer, found in caught.value.results.items()} == {
            "/dispatchables/tile": [rule]
        }


def test_only_the_tensor_of_an_owned_input_is_kept(run: Callable[..., str]) -> None:
    """Many tiles that own the start of one large resource do not each copy all of it."""
    large = {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2], "sizeInBytes": 2**28}
    data = model(resources={"In": large, "Out": zeros(4)}, commands=[])
    data["dispatchables"] = {str(i): OWNED for i in range(20)}
    tracemalloc.start()
    try:
        run(data)
        assert tracemalloc.get_traced_memory()[1] < 2 * 2**28
    finally:
        tracemalloc.stop()


def test_the_copies_of_owned_inputs_count(run: Callable[..., str]) -> None:
    """30 tiles that own an input of 110 MB would copy 3.3 GB of it."""
    large = {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2], "sizeInBytes": 2**28}
    owned = OWNED | {"desc": tile_json([2**26], [1], input={"Flags": "OWNED_BY_DML"})}
    data = model(resources={"In": large}, dispatchables={str(i): owned for i in range(16)}, commands=[])
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"/dispatchables: 4563402752 bytes would be needed"):
            run(data)
        assert tracemalloc.get_traced_memory()[1] < 2 * 2**28
    finally:
        tracemalloc.stop()


def test_many_dispatches_take_no_more_memory_than_one(run: Callable[..., str]) -> None:
    def peak(count: int) -> int:
        tile = {"type": "TILE", "desc": tile_json([1, 64, 56, 56], [1, 1, 2, 2])}
        resources = {"In": zeros(64 * 56 * 56), "Out": zeros(4 * 64 * 56 * 56)}
        dispatch = {"type": "dispatch", "dispatchable": "t", "bindings": {"InputTensor": "In", "OutputTensor": "Out"}}
        data = model(resources=resources, dispatchables={"t": tile}, commands=[dispatch] * count)
        tracemalloc.start()
        try:
            run(data)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(300) < peak(1) + 300 * 20_000


def test_all_refused_tiles_are_told_at_once(run: Callable[..., str]) -> None:
    data = model()
    data["dispatchables"] |= {
        "a/b": {"type": "TILE", "desc": tile_json([2], [3], RepeatsCount=2)},
        "gemm": {"type": "GEMM"},
    }
    with pytest.raises(RefusedModelError) as caught:
        run(data)
    assert {pointer: [finding.rule for finding in found] for pointer, found in caught.value.results.items()} == {
        "/dispatchables/a~1b": ["DML-TILE-RepeatsCount", "DML-TILE-Repeats-length"],
        "/dispatchables/gemm": ["DML-OPERATOR-not-a-tile"],
    }


def test_the_target_and_the_contract_decide(run: Callable[..., str]) -> None:
    with pytest.raises(RefusedModelError, match="a dimension count of 1 needs DML_FEATURE_LEVEL_3_1"):
        run(model(), target="2_0")
    doubles = model(
        resources={"In": values(1.5, data_type="FLOAT64"), "Out": zeros(2, "FLOAT64")},
        dispatchables={"tile": {"type": "TILE", "desc": tile_json([1], [2], "FLOAT64")}},
    )
    with pytest.raises(RefusedModelError, match="FLOAT64"):
        run(doubles)
    assert run(doubles, against="runtime") == "Resource 'Out': 1.5, 1.5\n"


def test_files_are_read_and_written(run: Callable[..., str], tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.array([[1, 2]], ">f4"))
    (tmp_path / "raw.dat").write_bytes(np.array([7, 8], np.float32).tobytes())
    data = model(
        resources={
            "In": {"initialValues": {"sourcePath": "in.npy"}},
            "Raw": {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "raw.dat"}},
            "Out": zeros(4),
        },
        commands=[
            model()["commands"][0],
            {"type": "print", "resource": "Raw"},
            {"type": "writeFile", "resource": "Out", "targetPath": "sub/out.npy", "dimensions": [2, 2]},
            {"type": "writefile", "resource": "Out", "targetPath": "flat.NPY"},
            {"type": "writeFile", "resource": "Out", "targetPath": "out.bin"},
        ],
    )
    assert run(data) == (
        "Resource 'Raw': 7, 8\nResource 'Out' written to 'sub/out.npy'\n"
        "Resource 'Out' written to 'flat.NPY'\nResource 'Out' written to 'out.bin'\n"
    )
    assert np.load(tmp_path / "sub" / "out.npy").tolist() == [[1, 2], [1, 2]]
    assert np.load(tmp_path / "flat.NPY").tolist() == [1, 2, 1, 2]
    assert np.fromfile(tmp_path / "out.bin", np.float32).tolist() == [1, 2, 1, 2]


def test_only_a_file_of_this_run_is_written_again(run: Callable[..., str], tmp_path: Path) -> None:
    write = {"type": "writeFile", "resource": "In", "targetPath": "x.bin"}
    twice = model(commands=[write, write | {"resource": "Out"}])
    run(twice)
    assert (tmp_path / "x.bin").stat().st_size == 16
    with pytest.raises(InputError, match=r"/commands/0/targetPath: 'x.bin' exists; --overwrite replaces it"):
        run(twice)
    run(model(commands=[write]), overwrite=True)
    assert (tmp_path / "x.bin").stat().st_size == 8


def test_a_hook_is_never_planted(run: Callable[..., str], tmp_path: Path) -> None:
    hook = tmp_path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text("true")
    hook.chmod(0o755)
    data = model(commands=[{"type": "writeFile", "resource": "In", "targetPath": ".git/hooks/post-checkout"}])
    with pytest.raises(InputError, match="is hidden"):
        run(data)
    with pytest.raises(InputError, match="is executable"):
        run(data, allow_hidden=True, overwrite=True)
    assert hook.read_text() == "true"


def test_a_hidden_source_is_not_printed(run: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("token")
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": ".git/config"}}
    data = model(resources={"R": resource}, dispatchables={}, commands=[{"type": "print", "resource": "R"}])
    with pytest.raises(InputError, match=r"/resources/R/initialValues/sourcePath: '\.git/config' is hidden"):
        run(data)
    assert run(data, allow_hidden=True) == "Resource 'R': 116, 111, 107, 101, 110\n"


@pytest.mark.parametrize("path", ["../out.bin", "/out.bin", "link/out.bin", "link.bin"])
def test_a_file_outside_is_never_written(run: Callable[..., str], tmp_path: Path, path: str) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "link.bin").symlink_to(outside / "out.bin")
    with pytest.raises(InputError, match=r"/commands/0/targetPath: .* leads outside"):
        run(model(commands=[{"type": "writeFile", "resource": "In", "targetPath": path}]))
    assert not os.listdir(outside)  # noqa: PTH208


@pytest.mark.parametrize(
    ("command", "pointer", "message"),
    [
        ({"type": "print", "resource": "X"}, "/commands/0/resource", "no resource is called 'X'"),
        ({"type": "writeFile", "resource": "X", "targetPath": "a"}, "/commands/0/resource", "no resource is called"),
        ({"type": "dispatch", "dispatchable": "X", "bindings": {}}, "/commands/0/dispatchable", "no dispatchable"),
        (
            {"type": "dispatch", "dispatchable": "tile", "bindings": {"InputTensor": "X"}},
            "/commands/0/bindings/InputTensor",
            "no resource is called 'X'",
        ),
        ({"type": "explode"}, "/commands/0", "type is 'explode'; dispatch, print or writeFile was expected"),
        ({"type": "print"}, "/commands/0", "resource is missing"),
        (7, "/commands/0", "an object was expected"),
        ({"type": "print", "resource": "Mixed"}, "/commands/0/resource", "mixes types"),
        ({"type": "writeFile", "resource": "In", "targetPath": "a.png"}, "/commands/0/targetPath", "is an image"),
        (
            {"type": "writeFile", "resource": "In", "targetPath": "a.npy", "dimensions": [3]},
            "/commands/0/dimensions",
            "3 elements are promised, but the resource has 2",
        ),
        (
            {"type": "writeFile", "resource": "In", "targetPath": "a.npy", "dimensions": [1] * 65},
            "/commands/0/dimensions",
            "at most 32 were expected",
        ),
        (
            {"type": "writeFile", "resource": "In", "targetPath": "a.npy", "dimensions": [0, 2**32 - 1]},
            "/commands/0/dimensions/0",
            "at least 1 was expected",
        ),
    ],
)
def test_an_unusable_command_is_told_by_its_place(
    run: Callable[..., str], command: Any, pointer: str, message: str
) -> None:
    mixed = values({"name": "n", "type": "FLOAT32", "value": 1}, {"type": "UINT8", "value": 2}, data_type="UNKNOWN")
    with pytest.raises(InputError, match=message) as caught:
        run(model(resources={"In": values(1, 2), "Mixed": mixed}, commands=[command]))
    assert caught.value.problems[0].pointer == pointer
