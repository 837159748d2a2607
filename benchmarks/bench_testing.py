"""Measures what tests feel, as ratios side by side in one run: drawing tiles, a device's whole life, and the marker.

python benchmarks/bench_testing.py [--goals]
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from bench_check import LOWEST, tiling
from harness import Measure, median_ratio, process, show_measures
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dml_tile import Device, TileOperatorDesc
from tests.helpers import strategies

SAMPLES: Final = 9
MARKED: Final = "import pytest\npytestmark = pytest.mark.dml\n"
TESTS: Final = "import pytest\n@pytest.mark.parametrize('i', range({count}))\ndef test_nothing(i):\n    pass\n"
LISTS: Final = st.lists(st.integers())


def drawing(strategy: st.SearchStrategy[Any]) -> Callable[[], object]:
    """A test that draws from a strategy, 200 times."""

    @settings(
        max_examples=200, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=[*HealthCheck]
    )
    @given(strategy)
    def draw(drawn: object) -> None:
        pass

    return draw


def draws(strategy: st.SearchStrategy[Any], samples: int) -> float:
    """The draws a second, to those of lists of integers."""
    return 1 / median_ratio(drawing(strategy), drawing(LISTS), 1, samples)


def whole_life(samples: int) -> float:
    """A new device, and all the steps of the example on it, to numpy.tile."""
    desc = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 1, 2, 3], repeats=[1, 1, 3, 3])
    array, out = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3), np.zeros(54, np.float32)
    return median_ratio(lambda: Device(LOWEST).execute(desc, array, out), tiling(), 1000, samples)


def marked(count: int, samples: int) -> float:
    """Trivial tests that are marked, to the same tests unmarked, each in a process of pytest without other plugins."""
    with tempfile.TemporaryDirectory() as folder:

        def run(name: str, text: str) -> Callable[[], object]:
            path = Path(folder, name)
            path.write_text(text)
            options = ["-p", "no:cacheprovider", "--rootdir", folder, "-qq"]
            command = ["-m", "pytest", "-p", "dml_tile.pytest_plugin", *options, str(path)]
            return process(*command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")

        tests = TESTS.format(count=count)
        return median_ratio(run("test_marked.py", MARKED + tests), run("test_unmarked.py", tests), 1, samples)


def main(
    count: Annotated[int, typer.Option(help="The tests that are marked.")] = 2000,
    goals: Annotated[bool, typer.Option("--goals", help="Exit 1 where a goal is missed.")] = False,
    samples: int = SAMPLES,
) -> None:
    """Measure what tests feel."""
    tiles = strategies.tiles(LOWEST)
    measures = (
        Measure("tiles drawn a second / lists of integers", 0.8, draws(tiles, samples), is_least=True),
        Measure("a device's whole life / numpy.tile", 25.0, whole_life(samples)),
        Measure(f"{count} trivial tests, marked / unmarked", 1.2, marked(count, samples)),
    )
    show_measures(measures, goals=goals)


if __name__ == "__main__":
    typer.run(main)
