"""Reading DxDispatch's models: each spelling, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.dxdispatch.fields import MODEL_KEYS, is_dxdispatch_model
from dml_tile.dxdispatch.model import Model, OtherDispatchable, TileDispatchable, read_model
from dml_tile.errors import InputError
from tests.helpers.dxdispatch_models import Json, dispatch, model, show, tile_json

DESC = tile_json([2], [2])


@pytest.mark.parametrize(
    "dispatchable",
    [
        {"type": "TILE", "desc": DESC},
        {"type": "DML_OPERATOR_TILE", "Desc": DESC},
        {"Type": "TILE", "Desc": DESC},
        {"type": "TILE"} | DESC,
        {"type": "TILE", "desc": DESC, "dmlCompileType": "DmlCompileGraph", "bindings": {}},
        {"type": "TILE", "desc": DESC, "executionFlags": ["DESCRIPTORS_VOLATILE", "DISABLE_META_COMMANDS"]},
        {"type": "TILE", "desc": tile_json([2], [2], input={"TotalTensorSizeInBytes": 0, "Strides": []})},
        {"type": "TILE", "comment": 1, "desc": tile_json([2], [2], comment=2, input={"comment": 3})},
        {
            "type": "TILE",
            "desc": DESC | {"InputTensor": {"Type": "BUFFER", "Desc": {"DataType": 1, "Sizes": [2], "Foo": 1}}},
        },
    ],
)
def test_a_tile_is_read_in_each_spelling(run: Callable[..., str], dispatchable: Json) -> None:
    assert run(model(dispatchables={"tile": dispatchable})) == "Resource 'Out': 1, 2, 1, 2\n"


@pytest.mark.parametrize("changes", [{}, {"Repeats": []}], ids=["as it is", "an empty Repeats is a null pointer"])
def test_a_model_s_tile_is_the_bare_descriptor(changes: Json) -> None:
    read = read_model(model(dispatchables={"tile": {"type": "TILE", "desc": DESC | changes}})).dispatchables["tile"]
    assert isinstance(read, TileDispatchable)
    tile = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2], repeats=[2])
    assert read.desc == (tile.replace(repeats=None, repeats_count=1) if changes else tile)


def test_other_dispatchables_are_kept_by_name() -> None:
    read = read_model(model(dispatchables={"net": {"type": "onnx", "sourcePath": "x.onnx"}}, commands=[]))
    assert read == Model(resources=read.resources, dispatchables={"net": OtherDispatchable(type="onnx")}, commands=())


def test_a_bind_point_of_a_tile_takes_one_resource_those_of_other_operators_several() -> None:
    data = model()
    data["dispatchables"]["join"] = {"type": "JOIN", "desc": {}, "bindings": {"InputTensors": ["In", "In"]}}
    data["commands"].append(dispatch("join", InputTensors=["In", "Out"]))
    assert len(read_model(data).commands) == 3
    data["commands"].append(dispatch(InputTensor=["In", "In"]))
    with pytest.raises(InputError, match="/commands/3/bindings/InputTensor: 2 resources are bound; a tensor takes one"):
        read_model(data)


@pytest.mark.parametrize("name", [*MODEL_KEYS, *DESC])
def test_all_parts_of_a_model_and_all_fields_of_a_tile_are_required(name: str) -> None:
    data = model()
    del (data if name in data else data["dispatchables"]["tile"]["desc"])[name]
    with pytest.raises(InputError, match=f"{name} is missing"):
        read_model(data)


def test_problems_name_the_field_the_value_and_what_was_expected() -> None:
    data = model()
    data["dispatchables"]["tile"]["desc"]["InputTensor"]["Sizes"] = [2, -1]
    data["dispatchables"]["other"] = {"type": 5}
    with pytest.raises(InputError) as caught:
        read_model(data)
    message = "InputTensor.Sizes[1] is -1; an integer from 0 to 4294967295 was expected"
    assert [str(problem) for problem in caught.value.problems] == [
        f"/dispatchables/tile/desc/InputTensor/Sizes/1: {message}",
        "/dispatchables/other/type: type is 5; a string was expected",
    ]


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({"commands": [{}] * 25}, "and 15 more problems"),
        ({"commands": [show("X")] * 25}, "and 15 more problems"),
        ({"resources": dict.fromkeys(map(str, range(12)), 1)}, "and 2 more problems"),
        ({"commands": [dispatch(I=[1] * 50)]}, "an object"),
    ],
)
def test_ten_problems_are_reported_and_the_others_counted(changes: Json, last: str) -> None:
    with pytest.raises(InputError) as caught:
        read_model(model(**changes))
    assert last in caught.value.problems[-1].message
    assert len(caught.value.problems) == (11 if "more" in last else 1)


def test_a_model_is_known_by_its_keys() -> None:
    assert set(MODEL_KEYS) == set(Model.model_fields)
    assert is_dxdispatch_model({"commands": []})
    assert not is_dxdispatch_model({"Repeats": []})
    assert not is_dxdispatch_model(["commands"])
