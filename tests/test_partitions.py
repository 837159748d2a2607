"""How ONNX Runtime's provider cuts a graph into DML_GRAPH_DESCs, and which edges surely lie in one."""

from __future__ import annotations

from random import Random
from typing import Final

import pytest

from dml_tile.back_ends.partitions import Joining, NodeStep, partitions, sure_edges

PARTS: Final = {"+": Joining.JOINS, "?": Joining.MAY_JOIN, "-": Joining.APART}


def steps(text: str) -> list[NodeStep]:
    """Nodes such as ``+c=ab``: c is made of a and b by a node that joins a graph."""
    return [NodeStep(PARTS[each[0]], [*each[3:]], [each[1]]) for each in text.split()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+a=x +b=a +c=b +d=c", ["abcd"]),
        ("+a=x -b=a +c=a +d=bc", ["ac", "d"]),  # the later of two is searched first
        ("+a=x +c=a -b=a +d=bc", ["a", "cd"]),
        ("+e=z -m=xz -g=me +h=e", ["eh"]),
        ("+e=z +h=e -m=xz -g=me", ["e", "h"]),
        ("+a=x +b=y +c=ab +d=c", ["bacd"]),
        ("-a=x ?b=a", []),
        ("+a=x +b=aa", ["ab"]),
    ],
)
def test_nodes_are_cut_in_the_order_of_a_search_from_the_leaves(text: str, expected: list[str]) -> None:
    made = steps(text)
    found = ["".join(str(made[i].outputs[0]) for i in each) for each in partitions(made)]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+a=x +b=a +c=b", "ab bc"),
        ("+a=x +b=a -c=b", "ab"),
        ("+a=x -b=a +c=a", ""),  # b may run before c
        ("+a=x +b=a -c=ab", "ab"),
        ("+a=x -b=x +c=ab", "ac"),
        ("+a=x ?b=a +c=b", ""),
        ("+a=x +b=a ?c=b +d=c", "ab"),
        ("+a=x +b=a ?c=x +d=cb", "ab bd"),
        ("+a=x +b=a ?c=e +d=cb -f=c", ""),  # c may bring f, which closes what d merges
    ],
)
def test_an_edge_is_sure_where_nothing_may_close_its_partition_before(text: str, expected: str) -> None:
    made = steps(text)
    found = {f"{made[i].outputs[0]}{made[j].outputs[0]}" for i, j, _ in sure_edges(made)}
    assert found == {*expected.split()}


def test_sure_edges_lie_in_one_partition_in_every_order_of_random_graphs() -> None:
    rng = Random(0)
    for _ in range(300):
        count = rng.randint(2, 9)
        made = []
        for i in range(count):
            sources = rng.sample(range(i), min(i, rng.randint(1, 3))) if i else []
            part = rng.choice([Joining.JOINS] * 4 + [Joining.MAY_JOIN, Joining.APART])
            made.append(NodeStep(part, sources, [i]))
        sure = {(i, j) for i, j, _ in sure_edges(made)}
        for _ in range(20):
            settled = [rng.choice([Joining.JOINS, Joining.APART]) for _ in made]
            pairs = zip(made, settled, strict=True)
            decided = [each._replace(part=part) if each.part is Joining.MAY_JOIN else each for each, part in pairs]
            numbers = _other_order(decided, rng)
            shuffled = [decided[i] for i in numbers]
            found = [{numbers[i] for i in each} for each in partitions(shuffled)]
            assert all(any({i, j} <= each for each in found) for i, j in sure), (made, numbers)


def _other_order(made: list[NodeStep], rng: Random) -> list[int]:
    """A random order in which each node follows what feeds it."""
    left, done = {*range(len(made))}, list[int]()
    while left:
        done.append(rng.choice(sorted(i for i in left if {*made[i].inputs} <= {*done})))
        left.discard(done[-1])
    return done
