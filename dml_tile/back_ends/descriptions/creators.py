"""The nodes of which ONNX Runtime's DirectML provider creates an operator of DirectML's, by release."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from dml_tile.back_ends.descriptions.rows import FUSED_DOMAIN, fused_operator, possible_of
from dml_tile.back_ends.kernels import Version, directml_kernels, releases, version_text


class Creator(NamedTuple):
    """An ONNX operator behind its domain, some or all of its opsets, in words, and the releases that it holds for."""

    operator: str
    opsets: str
    releases: tuple[Version, ...]

    @property
    def label(self) -> str:
        """The operator with its opsets."""
        return f"{self.operator} {self.opsets}".rstrip()

    @property
    def span(self) -> str:
        """The releases as text: ``1.12 to 1.18``, ``1.19 and later``."""
        read = [*releases()]
        first, last = self.releases[0], self.releases[-1]
        assert self.releases == tuple(read[read.index(first) : read.index(last) + 1]), "no release in between lacks it"
        if last == read[-1]:
            return f"{version_text(first)} and later"
        return version_text(first) if first == last else f"{version_text(first)} to {version_text(last)}"


def creators_of(name: str) -> tuple[Creator, ...]:
    """Return the nodes that may become an operator, by its name without prefix, as their fields say.

    Activations that are fused into another operator do not count, but where one kernel alone fuses them.
    """
    return _creators().get(name, ())


@cache
def _creators() -> Mapping[str, tuple[Creator, ...]]:
    found: dict[str, dict[tuple[str, str], list[Version]]] = defaultdict(lambda: defaultdict(list))
    for release in releases():
        for (domain, operator), kernels in directml_kernels(release).items():
            made = {kernel.since: possible_of(domain, operator, kernel.since, release) for kernel in kernels}
            for name in frozenset().union(*made.values()):
                found[name][_named(domain, operator), _opsets(name, made)].append(release)
    return {
        name: tuple(sorted(Creator(*key, tuple(versions)) for key, versions in rows.items()))
        for name, rows in found.items()
    }


def _named(domain: str, operator: str) -> str:
    if domain == FUSED_DOMAIN:
        return f"{fused_operator(operator)} with an activation"
    return f"{domain}.{operator}" if domain else operator


def _opsets(name: str, made: Mapping[int, frozenset[str]]) -> str:
    """Return which of an operator's opsets create a DirectML operator; empty for all."""
    lacking = [since for since, names in made.items() if name not in names]
    if not lacking:
        return ""
    first = min(since for since, names in made.items() if name in names)
    return f"from opset {first}" if first > max(lacking) else f"below opset {min(lacking)}"
