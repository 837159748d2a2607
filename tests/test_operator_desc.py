"""Descriptors of operators other than Tile: in Python, in JSON and in C's memory."""

from __future__ import annotations

import copy
import ctypes
import math
import pickle
from ctypes import addressof
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import dml_tile
from dml_tile import OperatorDesc, TensorDesc, read_operator_desc, write_operator_desc
from dml_tile.descriptors.operator import OperatorFields, spelling
from dml_tile.directml.operators import Field, operator_named, operators
from dml_tile.readers.c_structs import DML_OPERATOR_DESC, structure_of


def tensor(data_type: str, *sizes: int) -> dict[str, Any]:
    return {"DataType": data_type, "Sizes": sizes}


GATHER: Final[dict[str, Any]] = {
    "InputTensor": tensor("INT64", 2, 3),
    "IndicesTensor": tensor("UINT32", 1, 2),
    "OutputTensor": tensor("INT64", 2, 2),
    "Axis": 1,
    "IndexDimensions": 1,
}
ADD1: Final[dict[str, Any]] = dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), tensor("FLOAT32", 2)) | {
    "FusedActivation": {"Type": "ACTIVATION_LEAKY_RELU", "Alpha": 0.5}
}
CLIP1: Final[dict[str, Any]] = {
    "InputTensor": tensor("INT8", 4),
    "OutputTensor": tensor("INT8", 4),
    "ScaleBias": {"Scale": 1.5, "Bias": 0},
    "MinMaxDataType": "INT8",
    "Min": -3,
    "Max": 5,
}
JOIN: Final[dict[str, Any]] = {
    "InputTensors": [tensor("INT8", 2), tensor("INT8", 3)],
    "OutputTensor": tensor("INT8", 5),
    "Axis": 0,
}
UPSAMPLE: Final[dict[str, Any]] = {
    "InputTensor": tensor("FLOAT32", 1, 1, 2, 2),
    "OutputTensor": tensor("FLOAT32", 1, 1, 4, 4),
    "ScaleSize": {"Width": 2, "Height": 2},
    "InterpolationMode": "LINEAR",
}
EXAMPLES: Final = {
    "GATHER": GATHER, "ELEMENT_WISE_ADD1": ADD1, "ELEMENT_WISE_CLIP1": CLIP1, "JOIN": JOIN, "UPSAMPLE_2D": UPSAMPLE,
}  # fmt: skip


NO_TENSORS: Final = {"InputTensor": None, "OutputTensor": None}


def example(name: str) -> OperatorDesc:
    return OperatorDesc(type=name, desc=EXAMPLES[name])


def test_fields_are_given_and_read_by_their_names_in_c_or_in_python() -> None:
    named = {"input_tensor": GATHER["InputTensor"], "indices_tensor": GATHER["IndicesTensor"], "axis": 1}
    desc = OperatorDesc(type="gather", desc=named | {"output_tensor": GATHER["OutputTensor"], "index_dimensions": 1})
    assert desc == example("GATHER")
    assert isinstance(desc.desc, OperatorFields)
    assert desc.desc["Axis"] == desc.desc["axis"] == 1
    assert isinstance(desc.desc["InputTensor"], TensorDesc)
    assert [*desc.desc.attributes] == [*GATHER]
    assert desc.desc.axis == 1


def test_fields_do_not_change_and_a_copy_with_others_is_read_as_they_are() -> None:
    join = example("JOIN").desc
    assert isinstance(join, OperatorFields)
    with pytest.raises(AttributeError, match="axis cannot be set"):
        join.axis = 1
    assert not hasattr(join, "axs")
    assert join.get("Axs") is None
    longer = join.replace(axis=1, InputTensors=[*join["InputTensors"], join["OutputTensor"]])
    assert (longer["Axis"], longer["InputCount"], join["InputCount"]) == (1, 3, 2)
    assert longer != join == join.replace()
    with pytest.raises(ValidationError, match="did you mean axis"):
        join.replace(axs=1)


def test_what_is_left_out_is_worked_out_or_null() -> None:
    for named, count in (({}, 2), ({"InputCount": 7}, 7)):
        assert OperatorDesc(type="JOIN", desc=JOIN | named).model_dump(by_alias=True)["Desc"]["InputCount"] == count
    assert (
        example("ELEMENT_WISE_ADD1").model_dump(by_alias=True)["Desc"]["FusedActivation"]["Desc"]["InputTensor"] is None
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_descriptor_survives_its_own_spellings(name: str) -> None:
    desc = example(name)
    assert OperatorDesc.model_validate_json(desc.model_dump_json(by_alias=True)) == desc
    assert OperatorDesc.model_validate_json(desc.model_dump_json()) == desc
    assert OperatorDesc.model_validate(desc.model_dump()) == desc
    assert pickle.loads(pickle.dumps(desc)) == copy.deepcopy(desc) == desc
    assert hash(copy.deepcopy(desc)) == hash(desc)
    assert eval(repr(desc), {key: getattr(dml_tile, key) for key in dml_tile.__all__}) == desc
    assert desc.replace(desc=None).desc is None


def test_a_line_names_the_operator_and_its_fields() -> None:
    assert str(example("GATHER")) == (
        "GATHER InputTensor INT64 {2,3}, IndicesTensor UINT32 {1,2}, OutputTensor INT64 {2,2}, Axis 1, "
        "IndexDimensions 1"
    )
    assert str(example("JOIN")) == "JOIN InputTensors {INT8 {2}, INT8 {3}}, OutputTensor INT8 {5}, Axis 0"
    assert "ScaleBias {Scale 1.5, Bias 0.0}" in str(example("ELEMENT_WISE_CLIP1"))
    assert str(example("ELEMENT_WISE_ADD1")).endswith("FusedActivation ACTIVATION_LEAKY_RELU Alpha 0.5")
    assert str(OperatorDesc.model_validate({"Type": "ACTIVATION_RELU", "Desc": NO_TENSORS})) == "ACTIVATION_RELU"
    infinity = {"Type": "ELEMENT_WISE_IS_INFINITY", "Desc": {**NO_TENSORS, "InfinityMode": 99}}
    assert str(OperatorDesc.model_validate(infinity)) == "ELEMENT_WISE_IS_INFINITY InfinityMode 99"
    assert str(OperatorDesc.model_validate({"Type": 300, "Desc": {**NO_TENSORS, "Repeats": None}})) == "operator 300"


def test_numbers_that_json_lacks_are_written_as_words() -> None:
    desc = OperatorDesc(
        type="ELEMENT_WISE_CLIP1", desc={**CLIP1, "MinMaxDataType": "FLOAT32", "Min": -math.inf, "Max": math.nan}
    )
    assert '"Min":"-Infinity","Max":"NaN"' in desc.model_dump_json(by_alias=True)


@pytest.mark.parametrize(
    ("name", "change", "path", "message"),
    [
        ("GATHER", {"Axi": 1}, "desc.Axi", "Extra inputs"),
        ("GATHER", {"Axis": -1}, "desc.Axis", "from 0 to 4294967295"),
        ("GATHER", {"InputTensor": {"DataType": "INT66", "Sizes": []}}, "desc.InputTensor.Desc.DataType", "INT64"),
        ("UPSAMPLE_2D", {"InterpolationMode": "CUBIC"}, "desc.InterpolationMode", "LINEAR"),
        ("UPSAMPLE_2D", {"ScaleSize": {"Width": 2}}, "desc.ScaleSize.Height", "required"),
        ("ELEMENT_WISE_ADD1", {"FusedActivation": {"Type": "RELUU", "Desc": None}}, "desc.FusedActivation.Type",
         "An operator of DirectML.h was expected (did you mean ACTIVATION_RELU?)"),
        ("JOIN", {"InputTensors": {1, 2}}, "desc.InputTensors", "a list or a tuple"),
        ("JOIN", {"InputTensors": [None]}, "desc.InputTensors.0", "dictionary or instance"),
    ],
)  # fmt: skip
def test_what_no_struct_holds_is_an_error_at_its_field(
    name: str, change: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        OperatorDesc(type=name, desc=EXAMPLES[name] | change)
    (error,) = caught.value.errors()
    assert ".".join(map(str, error["loc"])) == path
    assert message in error["msg"]


def test_an_unknown_field_is_an_error_with_the_nearest_name() -> None:
    def messages(desc: dict[str, Any]) -> list[str]:
        with pytest.raises(ValidationError) as caught:
            OperatorDesc(type="GATHER", desc=desc)
        return [f"{error['loc'][-1]}: {error['msg']}" for error in caught.value.errors()]

    misspelt = {name.replace("Axis", "Axs"): value for name, value in EXAMPLES["GATHER"].items()}
    assert messages(misspelt) == ["Axis: Field required", "Axs: Extra inputs are not permitted; did you mean Axis?"]
    assert messages(EXAMPLES["GATHER"] | {"index_dimension": 1})[0].endswith("did you mean index_dimensions?")
    assert messages(EXAMPLES["GATHER"] | {"q": 1})[0].endswith("docs/operators.md has all")
    assert len(messages(dict.fromkeys(map(str, range(10_000))))) > 10_000, "too many to look for the nearest"


def test_the_description_is_the_operators_own() -> None:
    tile = dml_tile.TileOperatorDesc.from_input(data_type="INT8", sizes=[1], repeats=[1])
    with pytest.raises(ValidationError, match="the fields of DML_GATHER_OPERATOR_DESC"):
        OperatorDesc(type="GATHER", desc=tile)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("GEMMM", "GEMM"),
        ("gathr", "GATHER"),
        ("DML_OPERATOR_GATHR", "DML_OPERATOR_GATHER"),
        ("TILL", "TILE"),
        ("RELU6", "ACTIVATION_RELU"),
        ("ACTIVATION_IDENTIY", "ACTIVATION_IDENTITY"),
        ("QUANTIZE_LINEAR", "ELEMENT_WISE_QUANTIZE_LINEAR"),
    ],
)
def test_the_operator_of_the_nearest_name_is_suggested(name: str, meant: str) -> None:
    with pytest.raises(ValidationError, match=rf"\(did you mean {meant}\?\)"):
        OperatorDesc(type=name, desc=None)


def test_names_of_operators_have_any_case_in_python_and_that_of_c_in_json() -> None:
    assert OperatorDesc(type="gather", desc=None) == OperatorDesc(type="GATHER", desc=None)
    for text in ('{"Type": "gather", "Desc": null}', '{"Type": "67", "Desc": null}'):
        with pytest.raises(ValidationError, match="An operator of DirectML"):
            OperatorDesc.model_validate_json(text)


# C's memory


def test_arrays_of_more_entries_than_directml_takes_are_not_read() -> None:
    read = read_operator_desc(write_operator_desc(OperatorDesc(type="JOIN", desc={**JOIN, "InputCount": 2**32 - 1})))
    assert read
    assert isinstance(read.desc, OperatorFields)
    assert (read.desc["InputCount"], read.desc["InputTensors"]) == (2**32 - 1, ())


def test_an_operator_within_itself_is_read_to_a_depth() -> None:
    row = operator_named("ELEMENT_WISE_ADD1")
    assert row
    struct = structure_of(row)()
    outer = DML_OPERATOR_DESC(row.value, addressof(struct))
    struct.FusedActivation = ctypes.pointer(outer)
    assert str(read_operator_desc(outer)).count("ELEMENT_WISE_ADD1") == 4


TENSORS: Final = st.builds(
    tensor, st.sampled_from(["INT8", "FLOAT16"]), st.integers(1, 9), st.integers(1, 9)
) | st.none()  # fmt: skip
FLOATS: Final = st.floats(width=32, allow_nan=False)


UINTS: Final = st.integers(0, 2**32 - 1)
INTS: Final = st.integers(-(2**31), 2**31 - 1)
VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "t": TENSORS,
    "T": st.lists(TENSORS.filter(bool), max_size=3),
    "u": UINTS,
    "U": st.lists(UINTS, max_size=8),
    "i": INTS,
    "I": st.lists(INTS, max_size=8),
    "f": FLOATS,
    "F": st.lists(FLOATS, max_size=8),
    "b": st.booleans(),
    "s": st.none() | st.fixed_dictionaries({"Scale": FLOATS, "Bias": FLOATS}),
    "z": st.fixed_dictionaries(dict.fromkeys(("Width", "Height"), UINTS)),
    "x": st.integers(0, 1),
    "o": st.none(),
    "O": st.lists(st.just({"Type": "ACTIVATION_RELU"}), max_size=6),
}


def values_of(field: Field) -> st.SearchStrategy[Any]:
    """What a field may hold, with arrays of as many entries as C keeps."""
    return st.sampled_from(spelling(field.enumeration).names) if field.kind == "e" else VALUES[field.kind]


@st.composite
def descriptors(draw: st.DrawFn) -> OperatorDesc:
    operator = draw(st.sampled_from([each for each in operators().values() if each.name != "TILE"]))
    length = draw(st.integers(0, 8))
    values: dict[str, Any] = {}
    for field in operator.fields:
        if field.enumeration == "TENSOR_DATA_TYPE":
            values[field.name] = "INT8"
        elif field.name not in operator.arrays:
            values[field.name] = draw(values_of(field))
            if field.kind in "UIF":  # several may have one count
                values[field.name] = (values[field.name] * 8 or [1] * 8)[:length]
    return OperatorDesc(type=operator.value, desc=values)


@given(descriptors())
def test_any_operator_survives_json_and_c(desc: OperatorDesc) -> None:
    assert OperatorDesc.model_validate_json(desc.model_dump_json(by_alias=True)) == desc
    assert read_operator_desc(write_operator_desc(desc)) == desc
