"""ONNX files as strangers give them: no models, broken ones, large ones, and data outside of them."""

from __future__ import annotations

import os
import random
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from onnx import ModelProto, TensorProto

from dml_tile.errors import InputError, Problem
from dml_tile.readers.model_tile import DIALECTS, KnownShapes, TileNode
from dml_tile.readers.onnx.file import LARGE, MAX_MODEL_BYTES, load
from dml_tile.readers.onnx.tiles import read_nodes
from tests.helpers.onnx_graphs import (
    FLOAT,
    INT64,
    constant,
    graph,
    model,
    node,
    nodes_of,
    tensor,
    tile_in,
    tile_node,
    typed,
)

CONSTANT: Final = "its inputs are constants; onnxruntime folds it"
WHOLE: Final = model(constant("r", [2, 2]), tile_node(), initializer=[tensor("w", range(100))]).SerializeToString()


def varint(value: int) -> bytes:
    return bytes([*(value >> shift & 0x7F | 0x80 for shift in range(0, 28, 7)), value >> 28])


def holed(made: ModelProto, weights: TensorProto, size: int, path: Path) -> Path:
    """Return the model with an initialiser of as many zero bytes, which take no room on the disk."""
    tensor_ = weights.SerializeToString() + b"\x4a" + varint(size)  # TensorProto.raw_data
    graph_ = b"\x2a" + varint(len(tensor_) + size) + tensor_  # GraphProto.initializer
    path.write_bytes(made.SerializeToString() + b"\x3a" + varint(len(graph_) + size) + graph_)  # ModelProto.graph
    os.truncate(path, path.stat().st_size + size)
    return path


# What is no model


def test_a_file_of_zeros_is_refused_at_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "unfinished.onnx"
    path.touch()
    os.truncate(path, 2**30)  # which takes no room on the disk, and minutes to go through
    with pytest.raises(InputError, match="truncated, or another format"):
        load(path)


def without(field: str) -> bytes:
    made = ModelProto.FromString(WHOLE)
    made.ClearField(field)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        *((content, "")
          for content in (b"", b"\0", b"a text, and no model\n", b"{}", b"\x08", b"\x0b\x0c", b"\xff" * 100)),
        *((WHOLE[:size], "") for size in (1, 10, len(WHOLE) // 2, len(WHOLE) - 1)),
        *((random.Random(seed).randbytes(10 ** (seed + 1)), "") for seed in (0, 4)),
        *((b"\x3a" + varint(LARGE + 1) + byte * (LARGE + 1), "") for byte in (b"\xff", b"\x0b", b"\x09")),
        (b"\x3a" + varint(2**31), ""),
        (without("ir_version"), "no ir_version"),
        (without("graph"), "no graph"),
        (without("opset_import"), "imports no operator set"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=f"^is not an ONNX model: .*{reason}"):
        nodes_of(content)


@pytest.mark.parametrize(("layer", "depth"), [(bytes(LARGE), 1000), (b"", 60)], ids=["large", "small"])
def test_messages_nested_deeper_than_protobuf_reads_are_refused(layer: bytes, depth: int) -> None:
    for _ in range(depth):
        for field in (b"\x32", b"\x2a", b"\x0a"):  # AttributeProto.g, NodeProto.attribute, GraphProto.node
            layer = field + varint(len(layer)) + layer
    with pytest.raises(InputError, match="is not an ONNX model"):
        nodes_of(WHOLE + b"\x3a" + varint(len(layer)) + layer)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.mkdir, "is not a regular file"),
        (lambda path: os.mkfifo(path), "is not a regular file"),
        (Path.exists, "cannot be read: No such file"),
    ],
)
def test_what_is_no_file_is_refused(make: Callable[[Path], object], reason: str, tmp_path: Path) -> None:
    make(tmp_path / "model.onnx")
    with pytest.raises(InputError, match=reason):
        list(read_nodes(tmp_path / "model.onnx", KnownShapes()))


@pytest.mark.parametrize("name", [b"Tile_1", b"repeats", b"x"])
def test_names_that_are_not_utf_8_are_refused(name: bytes) -> None:
    made = model(constant("repeats", [2, 2]), tile_node(repeats="repeats", name="Tile_1")).SerializeToString()
    assert name in made
    with pytest.raises(InputError, match="has a text that is not UTF-8"):
        nodes_of(made.replace(name, b"\xff" * len(name)))


def test_a_damaged_model_gives_tiles_or_problems() -> None:
    for seed in range(100):
        chance = random.Random(seed)
        damaged = bytearray(WHOLE)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with suppress(InputError):
            assert all(isinstance(each, TileNode | Problem) for each in nodes_of(bytes(damaged))), seed


# Large files


def test_a_file_larger_than_protobuf_reads_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(WHOLE)
    os.truncate(path, MAX_MODEL_BYTES + 1)
    with pytest.raises(InputError, match=f"has {MAX_MODEL_BYTES + 1} bytes; protobuf reads at most {MAX_MODEL_BYTES}"):
        list(read_nodes(path, KnownShapes()))


def test_weights_take_no_memory(tmp_path: Path) -> None:
    made = model(constant("r", [1, 2]), tile_node("w"))
    weights = TensorProto(name="w", data_type=FLOAT, dims=[2**18, 500])
    path = holed(made, weights, 2**20 * 500, tmp_path / "model.onnx")
    assert path.stat().st_size > 2**20 * 500
    tracemalloc.start()
    (found,) = read_nodes(path, KnownShapes())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == TileNode("Tile->y", DIALECTS["ONNX Tile-13"], "float32", (2**18, 500), (1, 2), folded=CONSTANT)
    assert peak < 2**20 * 10
    assert load(path).ByteSize() < 1000


@pytest.mark.parametrize("count", [10, LARGE // 8, LARGE // 8 + 1, LARGE])
def test_of_large_tensors_the_data_alone_are_dropped(count: int, tmp_path: Path) -> None:
    own = model(
        node("If", ["c"], ["y"], then_branch=graph([constant("t", range(count))], (), [typed("t")])),
        constant("r", range(count)),
        initializer=[tensor("w", range(count))],
        doc_string="d" * 2 * LARGE,
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(own.SerializeToString())
    light = load(path)
    tensors = [light.graph.initializer[0], light.graph.node[1].attribute[0].t]
    tensors.append(light.graph.node[0].attribute[0].g.node[0].attribute[0].t)
    if count <= LARGE // 8:
        assert light == own
    assert [list(each.dims) for each in tensors] == [[count]] * 3
    assert [bool(each.raw_data) for each in tensors] == [count <= LARGE // 8] * 3
    assert light.graph.doc_string == own.graph.doc_string


# External data


def external(tensor_: TensorProto, **entries: str) -> TensorProto:
    outside = TensorProto(name=tensor_.name, dims=tensor_.dims, data_type=tensor_.data_type)
    outside.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        outside.external_data.add(key=key, value=value)
    return outside


def with_external(**entries: str) -> ModelProto:
    return model(tile_node(), initializer=[external(tensor("r", [2, 5]), **entries)])


DATA: Final = bytes(8) + tensor("r", [2, 5]).raw_data + bytes(8)
PART: Final = {"offset": "8", "length": "16"}


@pytest.mark.parametrize("place", ["initialiser", "constant"])
@pytest.mark.parametrize("location", ["w.bin", "below/w.bin", "./w.bin", "link.bin"])
@pytest.mark.parametrize("part", [PART, {"offset": "8"}])
def test_repeats_are_read_from_a_file_in_the_model_s_folder(
    place: str, location: str, part: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "link.bin").symlink_to("real.bin")
    (tmp_path / location).parent.mkdir(exist_ok=True)
    (tmp_path / location).write_bytes(DATA)
    made = with_external(location=location, **part)
    if place == "constant":
        made.graph.node.insert(0, node("Constant", [], ["r"], value=made.graph.initializer.pop()))
    assert tile_in(made, folder=tmp_path).repeats == (2, 5)


def test_external_repeats_are_seen_by_what_computes_with_them(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(DATA)
    outside = external(tensor("s", [2, 5]), location="w.bin", **PART)
    text = "w = Reshape(x, s); r = [1, 2]; y = Tile(w, r)"
    assert tile_in(model(text, inputs=[typed("x", ["N"])], initializer=[outside]), folder=tmp_path).shape == (2, 5)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        *(({"location": name}, f"{name!r} is no path below the model's folder")
          for name in ("../w.bin", "below/../w.bin", "/etc/passwd")),
        *(({"location": name}, f"{name!r} leads outside the model's folder") for name in ("link.bin", "link/w.bin")),
        *(({"location": name}, f"{name!r} is not a regular file") for name in ("pipe.bin", ".", "")),
        ({}, "'' is not a regular file"),
        ({"location": "missing.bin"}, "'missing.bin' does not exist"),
        ({"location": "loop.bin"}, "'loop.bin'"),
        ({"location": "a\0b"}, "is no usable path"),
        ({"location": "w.bin", "offset": "24"}, "'w.bin' ends before byte 40"),
        ({"location": "w.bin", "offset": str(2**70)}, "'w.bin' cannot be read"),
        *(({"location": "w.bin", "offset": number}, f"offset {number!r}")
          for number in ("-8", "eight", "٨", "８", "+8", " 8", "0_8")),
        *(({"location": "w.bin", "length": number}, f"length {number!r} in 'w.bin'; the tensor has 16 bytes")
          for number in ("8", "１６")),
        ({"location": "w.bin", "length": "9" * 5000}, "in 'w.bin'; the tensor has 16 bytes"),
    ],
)  # fmt: skip
def test_repeats_outside_the_folder_or_unreadable_are_a_problem(
    entries: dict[str, str], reason: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "w.bin", folder / "w.bin"):
        path.write_bytes(DATA)
    (folder / "link.bin").symlink_to("../w.bin")
    (folder / "link").symlink_to("..")
    (folder / "loop.bin").symlink_to("loop.bin")
    os.mkfifo(folder / "pipe.bin")
    found, problem = nodes_of(with_external(**entries), folder=folder)
    assert found == TileNode("Tile->y", DIALECTS["ONNX Tile-13"], "float32", (2, 3), None)
    assert isinstance(problem, Problem)
    assert problem.pointer == "Tile->y"
    assert problem.message.startswith("the data of 'r': ")
    assert reason in problem.message


@pytest.mark.parametrize(
    "text",
    ["r = Identity(s); y = Tile(x, r)", "r = [1, 2]; w = Expand(x, s); y = Tile(w, r)"],
    ids=["repeats", "shape"],
)
def test_what_is_computed_from_unread_data_is_a_problem_too(text: str) -> None:
    outside = external(tensor("s", [2, 5]), location="../w.bin")
    found, problem = nodes_of(model(text, inputs=[typed("x", [1, 1])], initializer=[outside]))
    assert isinstance(found, TileNode)
    assert None in (found.shape, found.repeats) or None in (found.shape or ())
    assert problem == Problem("Tile->y", "the data of 's': '../w.bin' is no path below the model's folder")


def test_weights_in_files_that_are_missing_are_no_problem() -> None:
    weights = [
        external(tensor("w", [[1.5] * 3] * 100, "float32"), location="/w.bin"),
        external(TensorProto(name="v", dims=[2**20, 2**20], data_type=INT64), location="../v.bin"),
        external(tensor("u", [0]), location="missing.bin"),
    ]
    text = "a = Add(x, w); g = Gather(a, u); r = [1, 2]; b = Tile(g, r); y = Tile(v, r)"
    found = nodes_of(model(text, inputs=[typed("x", [100, 3])], initializer=weights))
    assert found == [
        TileNode("Tile->b", DIALECTS["ONNX Tile-13"], "float32", (1, 3), (1, 2)),
        TileNode("Tile->y", DIALECTS["ONNX Tile-13"], "int64", (2**20, 2**20), (1, 2), folded=CONSTANT),
    ]
