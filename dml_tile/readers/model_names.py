"""Sizes that a caller gives for a model's dynamic parts, and the names in a model by which they may be given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

MAX_NAMES: Final = 1000
"""The most names of dimensions, and of inputs, that a model is said to have besides those asked for."""


class KnownShapes(NamedTuple):
    """The caller's sizes for a model's dynamic parts: named dimensions, and inputs by name.

    A size of None in an input's shape stays as the model has it.
    """

    dims: Mapping[str, int] = {}
    input_shapes: Mapping[str, tuple[int | None, ...]] = {}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Names by which the sizes of models may be given, of dimensions and of inputs, and the number of their nodes.

    The ``contradictions`` are about declared sizes that values do not have, and functions that are not used.
    """

    dimensions: frozenset[str] = frozenset()
    inputs: frozenset[str] = frozenset()
    nodes: int = 0
    contradictions: tuple[str, ...] = ()

    def __or__(self, other: ModelFacts) -> ModelFacts:
        return ModelFacts(
            self.dimensions | other.dimensions,
            self.inputs | other.inputs,
            self.nodes + other.nodes,
            self.contradictions + other.contradictions,
        )


def limited_names(names: Collection[str], asked: Collection[str]) -> frozenset[str]:
    """Return the names that were ``asked`` for, and some others."""
    there = set(names)
    return frozenset(there.intersection(asked)) | frozenset(sorted(there.difference(asked))[:MAX_NAMES])
