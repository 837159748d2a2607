"""The executor against the bytes that Microsoft's DirectML wrote on a software driver: of tiles and of graphs."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import islice, pairwise
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from dml_tile import Buffer, BufferBinding, Device, compile_tile, execute
from dml_tile.descriptors.graph import GraphDesc, InputGraphEdge, IntermediateGraphEdge, OutputGraphEdge
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.targets import Target
from tests.helpers.descriptors import changed
from tests.helpers.devices import initialise, table
from tests.helpers.recorded_answers import rows_of

Bytes = NDArray[np.uint8]

QUIETED: Final = (21, 136)
"""The graphs, by line from 0, in which DirectML made signalling NaNs of FLOAT16 quiet, at 5_2 and 6_2."""


def tile_of(
    data_type: str, sizes: list[int], repeats: list[int], strides: list[Any], totals: list[int]
) -> TileOperatorDesc:
    """A tile of recorded fields; strides and totals are of the input and the output."""
    tile = TileOperatorDesc.from_input(data_type=data_type, sizes=sizes, repeats=repeats)
    return changed(
        tile,
        InputTensor__Strides=strides[0],
        OutputTensor__Strides=strides[1],
        InputTensor__TotalTensorSizeInBytes=totals[0],
        OutputTensor__TotalTensorSizeInBytes=totals[1],
    )


def recorded_tile(row: dict[str, Any]) -> tuple[TileOperatorDesc, Target]:
    strides = [row["input_strides"], row["output_strides"]]
    desc = tile_of(row["data_type"], row["sizes"], row["repeats"], strides, [row["input_bytes"], row["output_bytes"]])
    return desc, replace(Target.parse(row["level"]), native_16_bit_ops=row["native_16_bit_ops"])


def bytes_of(text: str) -> Bytes:
    return np.frombuffer(b64decode(text), np.uint8).copy()


def drawn(seed: int, count: int) -> Bytes:
    return np.frombuffer(np.random.Generator(np.random.PCG64(seed)).bytes(count), np.uint8).copy()


def results(desc: TileOperatorDesc, target: Target, given: Bytes, before: Bytes) -> Iterator[tuple[str, Bytes]]:
    """The output after each way to execute a tile, by name."""
    compiled = compile_tile(desc, target, "runtime")
    device = Device(target, against="runtime")
    ways: dict[str, Callable[[Bytes], object]] = {
        "execute": lambda output: execute(desc, given, output, target, "runtime"),
        "CompiledTile.execute": lambda output: compiled.execute(given, output),
        "BoundTile.run": lambda output: compiled.bind(given, output).run(),
        "Device.execute": lambda output: device.execute(desc, given, output),
    }
    for name, way in ways.items():
        output = before.copy()
        way(output)
        yield name, output


@pytest.mark.parametrize(("level", "count"), [("5_0", 405), ("5_2", 388), ("6_2", 407)])
def test_small_tiles_give_the_bytes_that_directml_wrote(level: str, count: int) -> None:
    rows = [row for row in rows_of("executed.jsonl.xz") if row["level"] == level]
    assert len(rows) == count
    assert len({row["data_type"] for row in rows}) == 11
    for i, row in enumerate(rows):
        desc, target = recorded_tile(row)
        after = bytes_of(row["after"])
        ways = results(desc, target, bytes_of(row["input"]), bytes_of(row["before"]))
        for name, output in ways if i % 4 == 0 else islice(ways, 1):
            assert np.array_equal(output, after), (name, row)


@pytest.mark.parametrize("level", ["5_0", "5_2", "6_2"])
def test_large_tiles_give_the_bytes_that_directml_wrote(level: str) -> None:
    rows = [row for row in rows_of("executed_large.jsonl") if row["level"] == level]
    assert len(rows) == 60
    for row in rows:
        desc, target = recorded_tile(row)
        given, before = drawn(row["seed"], row["input_bytes"]), drawn(row["seed"] + 1, row["output_bytes"])
        (_, first), *others = results(desc, target, given, before)
        assert sha256(first.data).hexdigest() == row["output_sha256"], row
        for name, output in others:
            assert np.array_equal(output, first), (name, row)


def graph_of(row: dict[str, Any]) -> GraphDesc:
    """A recorded chain of tiles, of which the last, or each, feeds an output of the graph."""
    tiles = [
        tile_of(row["data_type"], sizes, repeats, [*strides], [*totals])
        for sizes, repeats, strides, totals in zip(
            row["sizes"], row["repeats"], pairwise(row["strides"]), pairwise(row["bytes"]), strict=False
        )
    ]
    last = len(tiles) - 1
    outputs = range(len(tiles)) if row["every_node_is_an_output"] else [last]
    return GraphDesc(
        input_count=1,
        output_count=len(outputs),
        nodes=tiles,
        input_edges=[InputGraphEdge(graph_input_index=0, to_node_index=0)],
        output_edges=[OutputGraphEdge(from_node_index=node, graph_output_index=i) for i, node in enumerate(outputs)],
        intermediate_edges=[IntermediateGraphEdge(from_node_index=i, to_node_index=i + 1) for i in range(last)],
    )


def with_quiet_nans(memory: Bytes) -> NDArray[np.uint16]:
    """FLOAT16 elements whose NaNs are quiet."""
    values = memory.view(np.uint16).copy()
    values[(values & 0x7FFF) > 0x7C00] |= 0x0200
    return values


def test_graphs_give_the_bytes_that_directml_wrote_and_never_ask_for_less() -> None:
    rows = rows_of("executed_graphs.jsonl.xz")
    assert Counter(len(row["repeats"]) for row in rows).keys() == {1, 2, 3, 4}
    assert (len(rows), sum(row["every_node_is_an_output"] for row in rows)) == (300, 82)
    quieted = []
    for number, row in enumerate(rows):
        target = replace(Target.parse(row["level"]), native_16_bit_ops=False)
        device = Device(target, against="runtime", raise_on_removal=True)
        compiled = device.compile_graph(graph_of(row))
        properties = compiled.get_binding_properties()
        assert properties.required_descriptor_count >= row["required_descriptors"], row
        assert properties.temporary_resource_size >= row["temporary"], row
        initialise(device, [compiled])
        bindings, outputs = table(device, compiled), [bytes_of(before) for before in row["before"]]
        bindings.bind_inputs([BufferBinding(Buffer.wrap(bytes_of(row["input"])))])
        bindings.bind_outputs([BufferBinding(Buffer.wrap(output)) for output in outputs])
        if properties.temporary_resource_size:
            bindings.bind_temporary_resource(BufferBinding(Buffer(properties.temporary_resource_size)))
        device.create_command_recorder().record_dispatch(compiled, bindings)
        for output, text in zip(outputs, row["after"], strict=True):
            after = bytes_of(text)
            if not np.array_equal(output, after):
                quieted.append(number)
                assert (row["data_type"], row["level"]) in [("FLOAT16", "5_2"), ("FLOAT16", "6_2")], row
                assert np.array_equal(with_quiet_nans(output), with_quiet_nans(after)), row
    assert tuple(quieted) == QUIETED
