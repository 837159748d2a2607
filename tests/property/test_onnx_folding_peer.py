"""The repeats known of a model agree with the values that onnxruntime folds and computes."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxruntime")

from tests.helpers.onnx_chains import figures_of


@pytest.mark.long
def test_whatever_onnxruntime_folds_is_known_and_nothing_is_contradicted() -> None:
    figures = figures_of(seed=0, chains=100, share=0.1)
    assert figures.missed == []
    assert figures.contradicted == []
    assert figures.built > 150
    assert figures.folded_by_onnxruntime > 100
