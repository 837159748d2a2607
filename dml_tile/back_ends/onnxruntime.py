"""The tile that ONNX Runtime's DirectML execution provider describes.

``provider_tile`` says what it makes of a tile. Repeats computed at run
time are accepted: the operator is created when they are known. The minimum level is that of a device which the provider
creates; an application's own may be lower.

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/: DmlExecutionProvider/src/Operators/DmlOperatorTile.cpp,
the same file from 1.2 to 1.24, DmlOperator.cpp and OperatorRegistration.cpp there, DmlExecutionProvider/src/
TensorDesc.cpp, OperatorAuthorHelper/OperatorHelper.h, dml_provider_factory.cc
"""

from __future__ import annotations

from typing import Final

from dml_tile.back_ends.back_end import BackEnd, BackEndResult
from dml_tile.back_ends.deployment import Deployment, shipped
from dml_tile.back_ends.dialects import Request
from dml_tile.back_ends.kernels import limits_at
from dml_tile.directml.enums import FeatureLevel

_SOURCES: Final = (
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
)


def _provider_tile(request: Request, deployment: Deployment) -> BackEndResult:
    from dml_tile.back_ends.provider_tile import provider_tile  # needs NumPy, which placed models do not

    return provider_tile(request, deployment)


def _device_level(deployment: Deployment) -> FeatureLevel:
    return limits_at(deployment.release).device_level


ORT: Final = BackEnd(
    "ort",
    "ONNX Runtime's DirectML provider",
    f"{_SOURCES}Operators/DmlOperatorTile.cpp",
    _provider_tile,
    "https://github.com/microsoft/onnxruntime/pull/14172",
    _device_level,
    advice=shipped,
    places_nodes=True,
)

TRANSPOSES_MOVE_SINCE: Final = (1, 10)
"""The release from which on Transposes before a Tile move behind it."""
QUANTISED_SINCE: Final = (1, 20)
"""The release from which on a Tile between quantised values runs on their type."""
