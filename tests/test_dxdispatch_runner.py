"""Running DxDispatch's models, and what is refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dml_tile.dxdispatch import runner
from dml_tile.errors import InputError, RefusedModelError
from tests.helpers.costs import at_most
from tests.helpers.dxdispatch_models import (
    OWNED,
    Json,
    dispatch,
    model,
    show,
    source,
    tile_json,
    values,
    write_file,
    zeros,
)


def refused(run: Callable[..., str], data: Json) -> dict[str, list[tuple[str, str]]]:
    """The rules and paths of the findings that keep a model from running, by their pointers."""
    with pytest.raises(RefusedModelError) as caught:
        run(data)
    return {pointer: [(each.rule, each.path) for each in found] for pointer, found in caught.value.results.items()}


def at(offset: int, name: str = "In") -> Json:
    return {"name": name, "elementOffset": offset}


def test_commands_are_done_in_order_and_change_resources_for_good(run: Callable[..., str]) -> None:
    first, again = model()["commands"][0], dispatch(InputTensor={"name": "Out"}, OutputTensor=["In4"])
    data = model(
        resources={"In": values(1, 2), "Out": zeros(4), "In4": zeros(8)},
        commands=[show("Out"), first, show("Out"), again, show("In4")],
    )
    assert run(data) == (
        "Resource 'Out': 0, 0, 0, 0\nResource 'Out': 1, 2, 1, 2\nResource 'In4': 1, 2, 1, 2, 0, 0, 0, 0\n"
    )


def test_a_binding_may_begin_within_a_resource(run: Callable[..., str]) -> None:
    data = model(resources={"In": values(9, 9, 9, 9, 1, 2), "Out": zeros(9)})
    data["commands"][0] = dispatch(
        InputTensor={"name": "In", "elementOffset": 4},
        OutputTensor={"name": "Out", "elementOffset": 1, "elementSizeInBytes": 16},
    )
    assert run(data) == "Resource 'Out': 0, 0, 0, 0, 1, 2, 1, 2, 0\n"


ROWS: Final = [
    # the tile, the shown resource, its elements, and its rows
    (tile_json([2, 2], [1, 2]), "Out", 8, "\n   1,  2,  1,  2\n   9, 10,  9, 10\n"),
    (tile_json([2, 2], [1, 2]), "In", 8, "\n   1,  2\n   9, 10\n"),
    (tile_json([2, 2], [1, 1], output={"Strides": [3, 1]}), "Out", 5, "\n   1,  2,  0\n   9, 10\n"),
    (tile_json([2, 2], [1, 1], output={"Strides": [1, 2]}), "Out", 4, "\n   1,  9\n   2, 10\n"),
    (tile_json([4], [1]), "Out", 4, " 1, 2, 9, 10\n"),  # one row
]


@pytest.mark.parametrize(("tile", "resource", "count", "rows"), ROWS)
def test_resources_are_printed_in_rows_of_their_tensor_where_that_is_asked_for(
    run: Callable[..., str], tile: Json, resource: str, count: int, rows: str
) -> None:
    data = model(
        resources={"In": values(1, 2, 9, 10), "Out": zeros(count)},
        dispatchables={"tile": {"type": "DML_OPERATOR_TILE", "desc": tile}},
        commands=[dispatch(InputTensor="In", OutputTensor="Out"), show(resource)],
    )
    assert run(data, in_rows=True) == f"Resource '{resource}':{rows}"
    assert run(data, in_rows=True, as_dxdispatch=True) == run(data) != f"Resource '{resource}':\n{rows}"


@pytest.mark.parametrize(
    "commands",
    [
        [show("Out", verbose=True)],
        [dispatch(InputTensor="In", OutputTensor={"name": "Out", "elementOffset": 4}), show("Out")],
        [dispatch("wide", InputTensor="In", OutputTensor="Out"), show("Out")],
    ],
    ids=["verbose", "offset", "other rows"],
)
def test_a_resource_without_rows_of_one_length_is_printed_as_ever(run: Callable[..., str], commands: Json) -> None:
    tiles = {"tile": tile_json([1, 2], [2, 1]), "wide": tile_json([1, 2], [1, 2])}
    data = model(
        resources={"In": values(1, 2), "Out": zeros(8)},
        dispatchables={name: {"type": "DML_OPERATOR_TILE", "desc": tile} for name, tile in tiles.items()},
        commands=[dispatch(InputTensor="In", OutputTensor="Out"), *commands],
    )
    assert run(data, in_rows=True) == run(data)


def test_an_owned_input_is_bound_at_initialisation_and_kept(run: Callable[..., str]) -> None:
    data = model(
        resources={"In": values(1, 2), "Out": zeros(4), "Nines": values(9)},
        dispatchables={"tile": OWNED, "overwrite": {"type": "TILE", "desc": tile_json([1], [2])}},
        commands=[
            dispatch("overwrite", InputTensor="Nines", OutputTensor="In"),
            show("In"),
            dispatch(OutputTensor="Out"),
            show("Out"),
        ],
    )
    assert run(data) == "Resource 'In': 9, 9\nResource 'Out': 1, 2, 1, 2\n"


@pytest.mark.parametrize(
    ("command", "rule", "path"),
    [
        (dispatch(OutputTensor="Out"), "DML-BINDING-missing", "InputTensor"),
        (dispatch(InputTensor="In"), "DML-BINDING-missing", "OutputTensor"),
        (dispatch(InputTensor="In", OutputTensor="Small"), "DML-BINDING-SizeInBytes", "OutputTensor"),
        (dispatch(InputTensor="Out", OutputTensor="Out"), "DML-BINDING-overlap", "OutputTensor"),
        (dispatch(InputTensor=at(1, "Long"), OutputTensor="Out"), "DML-BINDING-Offset", "InputTensor"),
        (dispatch(InputTensor=at(2**60), OutputTensor="Out"), "DML-DXDISPATCH-elementOffset", "InputTensor"),
        (dispatch(InputTensor="In", OutputTensor=at(4, "Small")), "DML-DXDISPATCH-elementOffset", "OutputTensor"),
        (dispatch("owned", InputTensor="In", OutputTensor="Out"), "DML-BINDING-owned", "InputTensor"),
    ],
)
def test_a_wrong_binding_is_a_finding_of_its_command(
    run: Callable[..., str], tmp_path: Path, command: Json, rule: str, path: str
) -> None:
    data = model(resources={"In": values(1, 2), "Out": zeros(4), "Small": zeros(3), "Long": zeros(3)})
    data["dispatchables"]["owned"] = OWNED
    data["commands"] = [write_file("In", "early.bin"), command]
    assert refused(run, data) == {"/commands/1": [(rule, path)]}
    assert not list(tmp_path.iterdir()), "nothing is written before all bindings are known to be good"


@pytest.mark.parametrize(
    ("dispatchable", "rule"),
    [
        (OWNED | {"bindings": {}}, "DML-BINDING-missing"),
        (OWNED | {"bindings": None}, "DML-BINDING-missing"),
        (OWNED | {"bindings": {"InputTensor": at(1)}}, "DML-BINDING-Offset"),
        (OWNED | {"bindings": {"InputTensor": at(4)}}, "DML-BINDING-SizeInBytes"),
        (OWNED | {"bindings": {"InputTensor": at(8)}}, "DML-DXDISPATCH-elementOffset"),
        ({"type": "TILE", "desc": tile_json([2], [2]), "bindings": {"InputTensor": "In"}}, "DML-BINDING-owned"),
    ],
)
def test_a_wrong_binding_at_initialisation_is_a_finding_of_its_dispatchable(
    run: Callable[..., str], dispatchable: Json, rule: str
) -> None:
    for commands in ([], [dispatch(OutputTensor="Out")]):
        resources = {"In": values(1, 2, 3, 4, 5), "Out": zeros(4)}
        found = refused(run, model(resources=resources, dispatchables={"tile": dispatchable}, commands=commands))
        assert found == {"/dispatchables/tile": [(rule, "InputTensor")]}


LARGE = values(1, 2, sizeInBytes=2**28)


def test_only_the_tensor_of_an_owned_input_is_kept(run: Callable[..., str]) -> None:
    """Many tiles that own the start of one large resource do not each copy all of it."""
    data = model(
        resources={"In": LARGE, "Out": zeros(4)}, dispatchables={str(i): OWNED for i in range(20)}, commands=[]
    )
    with at_most(2 * 2**28):
        run(data)


def test_the_copies_of_owned_inputs_count(run: Callable[..., str]) -> None:
    """16 tiles that own an input of 256 MiB would copy 4 GiB of it."""
    owned = OWNED | {"desc": tile_json([2**26], [1], input={"Flags": "OWNED_BY_DML"})}
    data = model(resources={"In": LARGE}, dispatchables={str(i): owned for i in range(16)}, commands=[])
    with at_most(2 * 2**28), pytest.raises(InputError, match="/dispatchables: 4563402752 bytes would be needed"):
        run(data)


def test_many_dispatches_take_no_more_memory_than_one(run: Callable[..., str]) -> None:
    count = 64 * 56 * 56
    data = model(
        resources={"In": zeros(count), "Out": zeros(4 * count)},
        dispatchables={"tile": {"type": "TILE", "desc": tile_json([1, 64, 56, 56], [1, 1, 2, 2])}},
        commands=[dispatch(InputTensor="In", OutputTensor="Out")] * 300,
    )
    with at_most(4 * 5 * count + 300 * 20_000):
        run(data)


def test_all_refused_tiles_are_reported_at_once(run: Callable[..., str]) -> None:
    data = model()
    data["dispatchables"] |= {
        "a/b": {"type": "TILE", "desc": tile_json([2], [3], RepeatsCount=2)},
        "shader": {"type": "hlsl"},
    }
    assert refused(run, data) == {
        "/dispatchables/a~1b": [("DML-TILE-RepeatsCount", "RepeatsCount"), ("DML-TILE-Repeats-length", "Repeats")],
        "/dispatchables/shader": [("DML-OPERATOR-not-a-tile", "Type")],
    }


def operator_model(type_: str, resources: Json, bindings: Json, initial: Json | None = None, **desc: Any) -> Json:
    """A model that dispatches an operator once and prints OutputTensor's resource, Out."""
    one = {"type": type_, "desc": desc, "bindings": initial or {}}
    return model(resources=resources, dispatchables={"one": one}, commands=[dispatch("one", **bindings), show("Out")])


def f32(*sizes: int, **fields: Any) -> Json:
    return {"DataType": "FLOAT32", "Sizes": sizes, **fields}


def test_any_operator_runs(run: Callable[..., str]) -> None:
    tensors = {"InputTensor": f32(1, 1, 3, 3), "OutputTensor": f32(1, 1, 3, 1)}
    reduce: Json = {"Function": "DML_REDUCE_FUNCTION_SUM", "AxisCount": 1, "Axes": [3], **tensors}
    given = {"In": values(*range(1, 10)), "Out": zeros(3)}
    of_reduce = operator_model("REDUCE", given, {"InputTensor": "In", "OutputTensor": "Out"}, **reduce)
    assert run(of_reduce) == "Resource 'Out': 6, 15, 24\n"
    join: Json = {"InputCount": 2, "InputTensors": [f32(1), f32(2)], "OutputTensor": f32(3), "Axis": 0}
    parts = {"A": values(1), "B": values(2, 3), "Out": zeros(3)}
    assert run(operator_model("JOIN", parts, {"InputTensors": ["A", "B"], "OutputTensor": "Out"}, **join)) == (
        "Resource 'Out': 1, 2, 3\n"
    )
    add = {"ATensor": f32(2), "BTensor": f32(2, Flags=["DML_TENSOR_FLAG_OWNED_BY_DML"]), "OutputTensor": f32(2)}
    owned = operator_model(
        "ELEMENT_WISE_ADD",
        {"A": values(1, 2), "B": values(3, 4), "Out": zeros(2)},
        {"ATensor": "A", "OutputTensor": "Out"},
        {"BTensor": "B"},
        **add,
    )
    assert run(owned) == "Resource 'Out': 4, 6\n"


def test_a_wrong_field_of_any_operator_is_named_with_its_place(run: Callable[..., str]) -> None:
    large = {"DataType": "FLOAT32", "Sizes": [2**40]}
    wrong = operator_model("ACTIVATION_RELU", {"Out": values(1)}, {}, InputTensor=large, OutputTensor=f32(1))
    with pytest.raises(InputError, match=r": InputTensor\.Sizes\[0\] is 1099511627776; an integer") as caught:
        run(wrong)
    assert caught.value.problems[0].path == "/dispatchables/one/desc/InputTensor/Sizes/0"


def test_an_operator_may_run_in_place_where_its_page_says_so(run: Callable[..., str]) -> None:
    tensors = {"InputTensor": f32(2), "OutputTensor": f32(2)}
    bindings = {"InputTensor": "Out", "OutputTensor": "Out"}
    assert run(operator_model("ACTIVATION_RELU", {"Out": values(-1, 2)}, bindings, **tensors)) == (
        "Resource 'Out': 0, 2\n"
    )
    power = {**tensors, "ExponentTensor": f32(2)}

    def powers(base: str, exponent: str) -> dict[str, Any]:
        resources = {"Out": values(1, 2), "Other": values(2, 3)}
        bound = {"InputTensor": base, "ExponentTensor": exponent, "OutputTensor": "Out"}
        return operator_model("ELEMENT_WISE_POW", resources, bound, **power)

    assert run(powers("Out", "Other")) == "Resource 'Out': 1, 8\n"
    assert refused(run, powers("Other", "Out")) == {"/commands/0": [("DML-BINDING-overlap", "OutputTensor")]}
    softmax = operator_model("ACTIVATION_SOFTMAX", {"Out": values(-1, 2)}, bindings, **tensors)
    assert refused(run, softmax) == {"/commands/0": [("DML-BINDING-overlap", "OutputTensor")]}


def test_an_index_out_of_range_ends_the_run_at_its_command(run: Callable[..., str]) -> None:
    indices = {"DataType": "UINT32", "Sizes": [2]}
    tensors = {"InputTensor": f32(2), "IndicesTensor": indices, "OutputTensor": f32(2)}
    resources = {"In": values(1, 2), "At": values(0, 2, data_type="UINT32"), "Out": zeros(2)}
    bindings = {"InputTensor": "In", "IndicesTensor": "At", "OutputTensor": "Out"}
    data = operator_model("GATHER", resources, bindings, **tensors, Axis=0, IndexDimensions=1)
    assert refused(run, data) == {"/commands/0": [("DML-EXECUTE-index", "IndicesTensor")]}


def test_the_target_and_the_contract_decide(run: Callable[..., str]) -> None:
    with pytest.raises(RefusedModelError, match="a dimension count of 1 needs DML_FEATURE_LEVEL_3_1"):
        run(model(), target="2_1")
    doubles = model(
        resources={"In": values(1.5, data_type="FLOAT64"), "Out": zeros(2, "FLOAT64")},
        dispatchables={"tile": {"type": "TILE", "desc": tile_json([1], [2], "FLOAT64")}},
    )
    with pytest.raises(RefusedModelError, match="FLOAT64"):
        run(doubles)
    assert run(doubles, against="runtime") == "Resource 'Out': 1.5, 1.5\n"


@pytest.mark.parametrize("compiles", ["DmlCompileOp", "DmlCompileGraph"])
def test_before_2_1_no_model_runs_and_its_tiles_are_judged_all_the_same(run: Callable[..., str], compiles: str) -> None:
    of_four = {"type": "TILE", "desc": tile_json([1, 1, 1, 2], [1, 1, 1, 2]), "dmlCompileType": compiles}
    data = model(dispatchables={"tile": of_four})
    is_graph = compiles == "DmlCompileGraph"
    of_tile = {"/dispatchables/tile": [("DML-DXDISPATCH-dmlCompileType", "dmlCompileType")]} if is_graph else {}
    of_model = {"": [("DML-DXDISPATCH-IDMLDevice1", "")]}
    assert refused(lambda data: run(data, target="2_0"), data) == of_model | of_tile
    assert run(data, target="2_1") == "Resource 'Out': 1, 2, 1, 2\n"


def test_files_are_read_and_written(run: Callable[..., str], tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.array([[1, 2]], "<f4"))
    (tmp_path / "raw.dat").write_bytes(np.array([7, 8], np.float32).tobytes())
    data = model(
        resources={"In": source("in.npy"), "Raw": source("raw.dat", "FLOAT32"), "Out": zeros(4)},
        commands=[
            model()["commands"][0],
            show("Raw"),
            write_file("Out", "sub/out.npy", dimensions=[2, 2]),
            write_file("Out", "flat.NPY", type="writefile"),
            write_file("Out", "out.bin"),
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
    write = write_file("In", "x.bin")
    twice = model(commands=[write, write_file("Out", "x.bin")])
    run(twice)
    assert (tmp_path / "x.bin").stat().st_size == 16
    with pytest.raises(InputError, match=r"/commands/0/targetPath: 'x.bin' exists; --overwrite replaces it"):
        run(twice)
    run(model(commands=[write]), overwrite=True)
    assert (tmp_path / "x.bin").stat().st_size == 8


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("a", "a/b", "a folder of it is another file that is written"),
        ("a/b/c", "a", "it is a folder of another file that is written"),
        ("a/b", "a/x/../b/c.npy", "a folder of it is another file that is written"),
    ],
)
def test_targets_of_which_one_is_a_folder_of_another_are_refused_beforehand(
    run: Callable[..., str], tmp_path: Path, first: str, second: str, message: str
) -> None:
    run(model(commands=[write_file("In", f"good/{name}") for name in ("a/b", "a/b2", "c")]))
    with pytest.raises(InputError, match=f"^/commands/1/targetPath: '{second}' cannot be written: {message}$"):
        run(model(commands=[write_file("In", first), write_file("In", second)]))
    assert [path.name for path in tmp_path.iterdir()] == ["good"]


def test_dispatches_write_so_many_bytes_together(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    data = model(commands=[*model()["commands"][:1] * 3, show("Out")])
    assert runner.MAX_MOVED_BYTES == 2**36
    monkeypatch.setattr(runner, "MAX_MOVED_BYTES", 48)
    assert run(data) == "Resource 'Out': 1, 2, 1, 2\n"
    monkeypatch.setattr(runner, "MAX_MOVED_BYTES", 47)
    with pytest.raises(InputError, match=r"^/commands: the dispatches would write 48 bytes .* at most 47 are written$"):
        run(data)


@pytest.mark.parametrize(
    ("command", "pointer", "message"),
    [
        (show("X"), "/resource", "no resource is called 'X'"),
        (write_file("X", "a"), "/resource", "no resource is called"),
        (dispatch("X"), "/dispatchable", "no dispatchable"),
        (dispatch(InputTensor="X"), "/bindings/InputTensor", "no resource is called 'X'"),
        ({"type": "explode"}, "", "type is 'explode'; dispatch, print or writeFile was expected"),
        ({"type": "print"}, "", "resource is missing"),
        (7, "", "an object was expected"),
        (show("Mixed"), "/resource", "mixes types"),
        (write_file("In", "a.png"), "/targetPath", "is an image"),
        (write_file("In", "a.npy", dimensions=[3]), "/dimensions", "3 elements are promised, but the resource has 2"),
        (write_file("In", "a.npy", dimensions=[1] * 65), "/dimensions", "at most 32 were expected"),
        (write_file("In", "a.npy", dimensions=[0, 2**32 - 1]), "/dimensions/0", "at least 1 was expected"),
    ],
)
def test_an_unusable_command_names_its_place(run: Callable[..., str], command: Any, pointer: str, message: str) -> None:
    mixed = values({"name": "n", "type": "FLOAT32", "value": 1}, {"type": "UINT8", "value": 2}, data_type="UNKNOWN")
    with pytest.raises(InputError, match=message) as caught:
        run(model(resources={"In": values(1, 2), "Mixed": mixed}, commands=[command]))
    assert caught.value.problems[0].path == f"/commands/0{pointer}"
