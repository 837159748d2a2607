"""Nodes of com.microsoft's that level 2 may make on DirectML of others, and the operator whose level they need.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/graph_transformer_utils.cc, read at the tags of 1.14 to 1.22
"""

from __future__ import annotations

from typing import Final

from dml_tile.back_ends.kernels import Version, version_text
from dml_tile.directml.operators import operator_named

NEEDED: Final[dict[str, tuple[tuple[Version, str], ...]]] = {
    # the first release, and the operator of the highest level that its kernel creates
    "Attention": (((1, 14), "ACTIVATION_SOFTMAX1"), ((1, 15), "MULTIHEAD_ATTENTION")),
    "EmbedLayerNormalization": (((1, 14), "MEAN_VARIANCE_NORMALIZATION1"),),
    "SkipLayerNormalization": (
        ((1, 14), "MEAN_VARIANCE_NORMALIZATION1"),
        ((1, 18), "MEAN_VARIANCE_NORMALIZATION2"),
    ),
    "FusedMatMulActivation": (((1, 15), "ACTIVATION_SOFTMAX1"),),
    "MatMulIntegerToFloat": (((1, 18), "MATRIX_MULTIPLY_INTEGER_TO_FLOAT"),),
}


def possible_fusion(made: str, release: Version) -> str:
    """Return what a release may make of a node, and what that needs, in words; empty if it makes no such node."""
    needed = [name for since, name in NEEDED[made] if since <= release]
    operator = operator_named(needed[-1]) if needed else None
    if operator is None:
        return ""
    named = f"{operator.name} ({operator.level.short})"
    return f"onnxruntime {version_text(release)} may fuse it into {made}, which needs {named}; its parts are judged"
