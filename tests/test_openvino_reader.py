"""The Tiles of the models that OpenVINO reads, and the files that it cannot read, or must not."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dml_tile.back_ends.dialects import OPENVINO_TILE_1 as DIALECT
from dml_tile.errors import InputError
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.model_tile import TileNode, ValueOrigin, ValueSource
from dml_tile.text import MAX_NAME
from tests.helpers.command_line import Call
from tests.helpers.ir_models import MODELS, burn_tile, many_repeats, op, ov, parameter, save, tile_ir, tile_operation

# Below what skips this file where OpenVINO is not installed:
# isort: split
from dml_tile.readers.openvino import read_nodes


def read(path: Path, **input_shapes: tuple[int, ...]) -> list[TileNode]:
    return list(read_nodes(path, KnownShapes(input_shapes=input_shapes)))


def by_name(path: Path, **input_shapes: tuple[int, ...]) -> dict[str, TileNode]:
    return {node.pointer: node for node in read(path, **input_shapes)}


LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"

# What is read


def test_a_model_of_each_format_is_read() -> None:
    of_x, of_x_0 = ((ValueOrigin(source=ValueSource("input", name)),) for name in ("x", "x:0"))
    for name, node in (
        ("burn_tile.ir.xml", TileNode("output_tensor", DIALECT, "f32", (2, 2), (2, 2))),
        ("tile.tflite", TileNode("Tile->y", DIALECT, "f32", (None, 2), (2, 3), input_origins=of_x)),
        ("tile.pb", TileNode("tile", DIALECT, "f32", (None, 3), (2, 5), input_origins=of_x_0)),
    ):
        assert read(MODELS / name) == [node]
    assert read(MODELS / "tile.tflite", x=(4, 2))[0].shape == (4, 2)


def test_a_negative_repeat_is_shown_as_it_is_and_computed_as_0(tmp_path: Path, check: Call) -> None:
    printed = check(str(tile_ir(tmp_path / "m.xml", (2, -1))), "-t", "6_2").stdout
    assert "  FLOAT32 {2,3} x {2,-1} -> {4,0}\n" in printed
    assert "Repeats[1]: is -1, which OpenVINO Tile-1 computes as 0; DirectML cannot express it" in printed
    assert "--via" not in printed, "no back end reads IR"
    (node,) = read(tmp_path / "m.xml")
    assert (node.repeats, node.output_sizes) == ((2, 0), (4, 0))
    assert "is 0, which OpenVINO" in check(str(tile_ir(tmp_path / "z.xml", (2, 0))), "-t", "6_2").stdout


def test_a_result_of_unknown_rank_is_a_question_mark(tmp_path: Path) -> None:
    x, repeats = parameter("x", []), parameter("r", [-1], "i64")
    (node,) = read(save(tmp_path / "m.xml", tile_operation(x, repeats), inputs=[x, repeats]))
    assert str(node) == "FLOAT32 {} x ? -> ?"


@pytest.mark.parametrize("data_type", [*sorted(DIALECT.data_types), "dynamic"])
def test_each_type_has_openvino_s_name(tmp_path: Path, data_type: str) -> None:
    known = None if data_type == "dynamic" else data_type
    assert read(tile_ir(tmp_path / "m.xml", data_type=data_type))[0].data_type == known


@pytest.mark.parametrize(
    ("repeats", "repeats_type", "shape", "expected"),
    [
        ([4, 1, 2], None, (1, 2, 3), (4, 1, 2)),
        ([2], None, (2, 3), (1, 2)),
        ([-3, 2], None, (2, 3), (0, 2)),
        *((given, kind, (2, 3), tuple(given))
          for given, kind in (([3, 2], "i4"), ([15, 1], "u4"), ([3, 2], "u8"), ([3, 2], "i32"), ([2**40, 2], "u64"))),
    ],
)  # fmt: skip
def test_repeats_of_each_integer_type_are_read_and_promoted(
    tmp_path: Path, repeats: list[int], repeats_type: str | None, shape: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    options = {"repeats_type": getattr(ov.Type, repeats_type)} if repeats_type else {}
    (node,) = read(tile_ir(tmp_path / "m.xml", repeats, **options))
    assert (node.shape, node.repeats) == (shape, expected)


def test_what_the_specification_rules_out_is_told(tmp_path: Path) -> None:
    weights = struct.pack("<2q", 2**63 - 1, 2)
    (node,) = read(burn_tile(tmp_path / "m.xml", weights=weights))
    assert node.error.startswith(f"repeats[0]: 2 * {2**63 - 1} = ")
    assert node.repeats is None


def dynamic_model(path: Path) -> Path:
    x, r, any_rank = parameter("x", [-1, 3]), parameter("r", [2], "i64"), parameter("any_rank", "...")
    bounded, four = parameter("bounded", [ov.Dimension(1, 5), 3]), op.constant(np.array([4]))
    sizes = [op.gather(op.shape_of(x), op.constant(np.array([i])), op.constant(0)) for i in range(2)]
    return save(
        path,
        tile_operation(x, r, "given"),
        tile_operation(x, op.concat([sizes[0], four], 0), "size"),
        tile_operation(x, op.concat([sizes[1], four], 0), "known size"),
        tile_operation(x, op.add(op.constant(np.array([1, 2])), op.constant(np.array([1, 0]))), "added"),
        tile_operation(x, op.convert(op.constant(np.array([3, 2])), "i4"), "converted"),
        tile_operation(any_rank, [2, 2], "any rank"),
        tile_operation(bounded, [2, 2], "bounded"),
        inputs=[x, r, any_rank, bounded],
    )


def test_what_constants_give_is_known_and_the_rest_left_open(tmp_path: Path) -> None:
    nodes = by_name(dynamic_model(tmp_path / "m.xml"))
    assert {name: (node.shape, node.repeats) for name, node in nodes.items()} == {
        "given": ((None, 3), None),
        "size": ((None, 3), (None, 4)),
        "known size": ((None, 3), (3, 4)),
        "added": ((None, 3), (2, 2)),
        "converted": ((None, 3), (3, 2)),
        "any rank": (None, None),
        "bounded": ((None, 3), (2, 2)),
    }
    assert all(not node.error for node in nodes.values())
    assert tuple(map(str, nodes["given"].unknown)) == (
        "InputTensor.Sizes[0]: the input 'x'",
        "Repeats: the elements of the input 'r'",
    )
    assert str(nodes["size"].unknown[1]).startswith("Repeats[0]: computed by Gather 'Gather_")
    assert str(nodes["size"].unknown[1]).endswith("' from the input 'x'")


def test_each_unknown_size_and_repeat_is_blamed_on_the_input_that_it_depends_on(tmp_path: Path) -> None:
    a, b, still = parameter("a", [-1]), parameter("b", [-1, 3]), parameter("still", [1, 1, 3])
    repeats = op.concat([op.shape_of(a, name="of a"), op.gather(op.shape_of(b), op.constant([0]), op.constant(0))], 0)
    made = save(tmp_path / "m.xml", tile_operation(op.add(still, b), repeats, "tile"), inputs=[a, b, still])
    size, first, second = map(str, by_name(made)["tile"].unknown)
    assert size.startswith("InputTensor.Sizes[1]: computed by Add ")
    assert size.endswith("from the input 'b'")
    assert first == "Repeats[1]: computed by ShapeOf 'of a' from the input 'a'"
    assert second.startswith("Repeats[2]: computed by Gather ")
    assert second.endswith("from the input 'b'")


def test_constant_repeats_of_an_input_of_unknown_rank_depend_on_the_input(tmp_path: Path) -> None:
    x = parameter("x", ov.PartialShape.dynamic())
    made = save(tmp_path / "a.xml", tile_operation(x, [2, 3]), inputs=[x])
    assert list(map(str, by_name(made)["tile"].unknown)) == [
        "InputTensor.DimensionCount: the input 'x'",
        "Repeats: the input 'x'",
    ]


@pytest.mark.parametrize("name", ["x", "x_tensor"])
def test_an_input_s_shape_is_fixed_by_any_of_its_names(tmp_path: Path, name: str) -> None:
    nodes = by_name(dynamic_model(tmp_path / "m.xml"), **{name: (5, 3)})
    assert nodes["given"].shape == (5, 3)
    assert nodes["size"].repeats == (5, 4)


def test_dimensions_have_no_names(tmp_path: Path) -> None:
    known_shapes = KnownShapes(dims={"batch": 4})
    assert list(read_nodes(dynamic_model(tmp_path / "m.xml"), known_shapes)) == read(tmp_path / "m.xml")


# Graphs in graphs


def body(name: str, repeats: list[int]) -> Any:
    data = parameter(f"{name}_x", [2, 3])
    return ov.Model([tile_operation(data, repeats, name)], [data])


def if_op(condition: Any, data: Any, then_body: Any, else_body: Any, name: str) -> Any:
    node = op.if_op(condition)
    node.set_then_body(then_body)
    node.set_else_body(else_body)
    node.set_input(data.output(0), then_body.get_parameters()[0], else_body.get_parameters()[0])
    node.set_output(then_body.get_results()[0], else_body.get_results()[0])
    node.set_friendly_name(name)
    return node


def test_tiles_are_found_in_every_body(tmp_path: Path) -> None:
    x, condition = parameter("x", [2, 3]), parameter("condition", [], "boolean")
    loop_data = parameter("loop_x", [2, 3])
    loop_body = ov.Model([tile_operation(loop_data, [1, 1], "in loop"), op.constant(True)], [loop_data])
    loop = op.loop(op.constant(np.array(3)), op.constant(True))
    loop.set_function(loop_body)
    loop.set_special_body_ports([-1, 1])
    loop.set_invariant_input(loop_data, x.output(0))
    loop.set_friendly_name("loop")

    slices = parameter("slice", [1, 3])
    iterated = ov.Model([tile_operation(slices, [4, 1], "in iterator")], [slices])
    iterator = op.tensor_iterator()
    iterator.set_body(iterated)
    iterator.set_sliced_input(slices, x.output(0), 0, 1, 1, -1, 0)
    iterator.set_friendly_name("iterator")

    inner_condition = op.constant(True)
    inner_data = parameter("inner_x", [2, 3])
    inner = if_op(inner_condition, inner_data, body("deep", [3, 1]), body("deep", [4, 1]), "inner")
    outer_then = ov.Model([inner.output(0)], [inner_data])
    path = save(
        tmp_path / "m.xml",
        tile_operation(x, [5, 1], "outside"),
        loop.get_iter_value(loop_body.get_results()[0].output(0), -1),
        iterator.get_concatenated_slices(iterated.get_results()[0].output(0), 0, 1, 1, -1, 0),
        if_op(condition, x, outer_then, body("shallow", [1, 2]), "outer").output(0),
        inputs=[x, condition],
    )
    nodes = read(path)
    assert nodes[0].pointer == "outside"
    assert {node.pointer: (node.shape, node.repeats) for node in nodes} == {
        "outside": ((2, 3), (5, 1)),
        "loop/body/in loop": ((2, 3), (1, 1)),
        "iterator/body/in iterator": ((1, 3), (4, 1)),
        "outer/then_body/inner/then_body/deep": ((2, 3), (3, 1)),
        "outer/then_body/inner/else_body/deep": ((2, 3), (4, 1)),
        "outer/else_body/shallow": ((2, 3), (1, 2)),
    }


def test_a_long_name_loses_its_middle_and_a_path_may_have_any_bytes(tmp_path: Path) -> None:
    (node,) = read(tile_ir(tmp_path / "m.xml", name=f"begin{'n' * 1000}end"))
    assert len(node.pointer) == MAX_NAME
    assert node.pointer.startswith("begin")
    assert node.pointer.endswith("end")
    assert read(burn_tile(tmp_path / os.fsdecode(b"\xff\n.xml")))[0].repeats == (2, 2)


# Refusals


@pytest.mark.parametrize(
    ("known_shapes", "message"),
    [
        ({"x": (2, 4)}, r"x: has the shape \[\?,3\]; \[2, 4\] was given"),
        ({"x": (2,)}, r"x: has the shape \[\?,3\]; \[2\] was given"),
        ({"x": (-1, 3)}, r"x: \[-1, 3\] was given; sizes are from 0 to 9223372036854775807"),
        ({"x": (2**63, 3)}, "sizes are from 0 to 9223372036854775807"),
    ],
)
def test_a_shape_that_is_not_the_model_s_is_refused(tmp_path: Path, known_shapes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(dynamic_model(tmp_path / "m.xml"), **known_shapes)


def test_shapes_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    x, y = parameter("x", [-1]), parameter("y", [-1])
    path = save(tmp_path / "m.xml", tile_operation(op.add(x, y), [2]), inputs=[x, y])
    with pytest.raises(InputError, match=r"OpenVINO cannot read it: .*inconsistent"):
        read(path, x=(2,), y=(3,))


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("m.xml", b"", "finds no reader for it"),
        ("m.xml", b"not XML at all", "finds no reader for it"),
        ("m.xml", b'<?xml version="1.0"?><svg/>', "finds no reader for it"),
        ("m.xml", (MODELS / "burn_tile.ir.xml").read_bytes()[:700], "OpenVINO cannot read it: Error parsing"),
        ("m.xml", (MODELS / "burn_tile.ir.xml").read_bytes(), "Empty weights data in bin file or bin file cannot be"),
        ("m.tflite", (MODELS / "tile.tflite").read_bytes()[:200], "OpenVINO cannot read it: .*malformed"),
        ("m.pb", b"\xff" * 60, "finds no reader for it"),
        ("m.pdmodel", b"hello", "OpenVINO cannot read it: Model can't be parsed"),
        ("m.pb", (MODELS / "burn_tile.onnx").read_bytes(), "OpenVINO would read it as onnx; OpenVINO IR, Paddle,"),
    ],
    ids=[
        *("empty", "no XML", "another XML", "cut off", "without weights", "cut off, Lite", "no graph", "no Paddle"),
        "ONNX by another name",
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, name: str, contents: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(contents)
    with pytest.raises(InputError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(('offset="0"', f'offset="{offset}"') for offset in (99999999999999, -8, 2**64 + 8, 2**64 - 8)),
        *(('size="16"', f'size="{size}"') for size in (99999999999999, 8)),
        *(('shape="2" offset', f'shape="{size}" offset') for size in (2**62, 2**61 + 2, -2)),
        ('element_type="f32"', 'element_type="f33"'),
        ('type="Tile"', 'type="Tilde"'),
        ('to-layer="3"', 'to-layer="33"'),
        ('from-layer="1" from-port="0" to-layer="2"', 'from-layer="3" from-port="2" to-layer="2"'),
    ],
)
def test_an_ir_that_lies_is_refused(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(InputError, match=r"OpenVINO cannot read it: ."):
        read(burn_tile(tmp_path / "m.xml", (old, new)))


@pytest.mark.posix
@pytest.mark.parametrize(("model", "weights"), [("m.pdmodel", "m.pdiparams"), ("m.xml", "m.bin")])
@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda place, _: os.mkfifo(place), "its weights: '{}' is not a regular file$"),
        (lambda place, _: place.mkdir(), "its weights: '{}' is not a regular file$"),
        (Path.symlink_to, "its weights: '{}' leads outside the model's folder$"),
        (lambda place, _: place.symlink_to("nowhere"), "its weights: '{}' does not exist in the model's folder$"),
        (lambda place, file: place.symlink_to(file.rename(place.with_name("real"))), "OpenVINO cannot read it: "),
    ],
    ids=["pipe", "folder", "link out", "link to nowhere", "link in"],
)
def test_weights_are_files_in_the_model_s_folder(
    tmp_path: Path, model: str, weights: str, make: Callable[[Path, Path], object], problem: str
) -> None:
    folder, outside = tmp_path / "model", tmp_path / "outside"
    folder.mkdir()
    burn_tile(folder / "m.xml")
    (folder / "m.pdmodel").write_bytes(b"hello")
    (folder / "m.bin").replace(outside)
    place = folder / weights
    make(place, outside)
    if model == "m.xml" and (folder / "real").exists():
        assert read(folder / model)
        return
    with pytest.raises(InputError, match=problem.format(weights)):
        read(folder / model)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (None, "OpenVINO cannot read it: .* (m.bin is not there)"),
        (b"", "OpenVINO cannot read it: .* (m.bin has 0 bytes)"),
        (bytes(15), "Incorrect weights in bin file"),
        (b"\1" * 24, "its weights: m.bin has 24 bytes; the model's constants end at byte 16"),
        (LFS_POINTER, "its weights: m.bin is a pointer of Git LFS; run git lfs pull"),
    ],
)
def test_weights_that_are_not_the_model_s_are_named(tmp_path: Path, weights: bytes | None, message: str) -> None:
    path = burn_tile(tmp_path / "m.xml", weights=weights)
    if weights is None:
        path.with_suffix(".bin").unlink()
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
        read(path)


def test_an_ir_without_constants_needs_no_weights(tmp_path: Path) -> None:
    x = parameter("x", [2, 3])
    path = save(tmp_path / "m.xml", tile_operation(x, op.shape_of(x)), inputs=[x])
    path.with_suffix(".bin").unlink()
    assert read(path)[0].repeats == (2, 3)


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    "declared",
    [
        f'<!DOCTYPE net [<!ENTITY e0 "ha">{ENTITIES}]>',
        '<!DOCTYPE net [<!ENTITY e9 SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE net SYSTEM "http://127.0.0.1/net.dtd">',
        "<!-- a comment --><?a?><!DOCTYPE net>",
        "<!-- " * 20_000,
    ],
    ids=["a bomb", "an external entity", "an external type", "behind a comment", "nothing but comments"],
)
def test_a_document_type_is_refused(tmp_path: Path, declared: str) -> None:
    path = burn_tile(tmp_path / "m.xml", ("<net ", f"{declared}<net "), ('name="output_tensor"', 'name="&e9;"'))
    with pytest.raises(InputError, match=r"an IR begins with <net>|finds no reader"):
        read(path)


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ('name="output_tensor"', 'name="&e9;&amp;"', "&e9;&"),
        ("<net ", "<!-- made by hand -->\n<!-- twice --><net ", "output_tensor"),
    ],
    ids=["an entity is a name like any other", "comments before the model"],
)
def test_plain_xml_is_read(tmp_path: Path, old: str, new: str, name: str) -> None:
    assert [node.pointer for node in read(burn_tile(tmp_path / "m.xml", (old, new)))] == [name]


def test_a_name_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = burn_tile(tmp_path / "m.xml")
    path.write_bytes(path.read_bytes().replace(b'name="output_tensor"', b'name="\xff"'))
    with pytest.raises(InputError, match="has a name that is not UTF-8"):
        read(path)


def test_more_repeats_than_there_is_memory_for_are_a_memory_error(tmp_path: Path) -> None:
    with pytest.raises(MemoryError):
        read(many_repeats(tmp_path / "m.xml", 2**57))
