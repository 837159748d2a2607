"""What keeps a tile that another specification accepts from being a DML_TILE_OPERATOR_DESC at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import mul
from typing import Final

from dml_tile.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX, TensorDataType
from dml_tile.findings import Basis, Rule, Violation, rule
from dml_tile.pages import BUFFER_PAGE, ONNX_PAGE, OPENVINO_PAGE, TILE_PAGE
from dml_tile.targets import Target
from dml_tile.tile_request import Request

_T = TensorDataType

CARRIERS: Final = {
    # by ONNX's, NumPy's and WebNN's name, and by OpenVINO's; what has the same size carries the same bits
    "float32": _T.FLOAT32,
    "float16": _T.FLOAT16,
    "float64": _T.FLOAT64,
    "bfloat16": _T.UINT16,
    "bool": _T.UINT8,
    "f32": _T.FLOAT32,
    "f16": _T.FLOAT16,
    "f64": _T.FLOAT64,
    "bf16": _T.UINT16,
    "boolean": _T.UINT8,
    "int8": _T.INT8,
    "int16": _T.INT16,
    "int32": _T.INT32,
    "int64": _T.INT64,
    "int4": _T.INT4,
    "i8": _T.INT8,
    "i16": _T.INT16,
    "i32": _T.INT32,
    "i64": _T.INT64,
    "i4": _T.INT4,
    "uint8": _T.UINT8,
    "uint16": _T.UINT16,
    "uint32": _T.UINT32,
    "uint64": _T.UINT64,
    "uint4": _T.UINT4,
    "u8": _T.UINT8,
    "u16": _T.UINT16,
    "u32": _T.UINT32,
    "u64": _T.UINT64,
    "u4": _T.UINT4,
    "f8e4m3": _T.UINT8,
    "f8e5m2": _T.UINT8,
    "f8e8m0": _T.UINT8,
}

_ADVICE: Final = {
    "complex64": "tile the same bits as UINT64",
    "complex128": "tile the same bits as UINT64, with a last dimension of 2",
}


def merged(shape: Sequence[int], repeats: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The same tile in as few dimensions as can be.

    A dimension joins the one inside it if that is not repeated, or if it has itself one element only.
    """
    joined: list[tuple[int, int]] = []
    for size, repeat in zip(reversed(shape), reversed(repeats), strict=True):
        if joined and (joined[-1][1] == 1 or size == 1):
            inner_size, inner_repeat = joined.pop()
            joined.append((inner_size * size, inner_repeat * repeat))
        else:
            joined.append((size, repeat))
    return tuple(size for size, _ in reversed(joined)), tuple(repeat for _, repeat in reversed(joined))


def expressed(request: Request) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and repeats as DirectML takes them: a scalar has one dimension, and what has more than 8 is merged."""
    if len(request.shape) > DML_TENSOR_DIMENSION_COUNT_MAX1:
        return merged(request.shape, request.repeats)
    return request.shape or (1,), request.repeats or (1,)


@rule(
    "DML-DIALECT-data-type",
    basis=Basis.DOCUMENTED,
    url=BUFFER_PAGE,
    says="A DirectML tensor can hold the elements: they have 1, 2, 4 or 8 bytes.",
    hresult=None,
)
def elements_can_be_held(request: Request, target: Target) -> Iterator[Violation]:
    if request.data_type not in CARRIERS:
        message = f"no DirectML tensor holds {request.data_type}, which {request.dialect} accepts"
        yield Violation("InputTensor.DataType", message, _ADVICE.get(request.data_type))


@rule(
    "DML-DIALECT-empty",
    basis=Basis.DOCUMENTED,
    url=TILE_PAGE,
    says="The input has elements, and each is repeated at least once: DirectML expresses no empty tensor.",
    hresult=None,
)
def there_is_something_to_tile(request: Request, target: Target) -> Iterator[Violation]:
    for field, values in (("InputTensor.Sizes", request.shape), ("Repeats", request.repeats)):
        for i, value in enumerate(values):
            if value == 0:
                yield Violation(
                    f"{field}[{i}]",
                    f"is 0, which {request.dialect} accepts; DirectML cannot express it",
                    "dispatch nothing: the result is empty",
                )


@rule(
    "DML-DIALECT-rank",
    basis=Basis.DOCUMENTED,
    url=BUFFER_PAGE,
    says="The tile has at most 8 dimensions when those are merged that can be.",
    hresult=None,
)
def dimensions_are_few_enough(request: Request, target: Target) -> Iterator[Violation]:
    shape, _ = expressed(request)
    if len(shape) > DML_TENSOR_DIMENSION_COUNT_MAX1:
        yield Violation(
            "InputTensor.DimensionCount",
            f"{len(request.shape)} dimensions are {len(shape)} when merged; at most "
            f"{DML_TENSOR_DIMENSION_COUNT_MAX1} can be described",
            "tile in two steps",
        )


@rule(
    "DML-DIALECT-size",
    basis=Basis.DOCUMENTED,
    url=BUFFER_PAGE,
    says="Each size of the output, and so each of the input and each repeat, fits a UINT.",
    hresult=None,
)
def sizes_fit(request: Request, target: Target) -> Iterator[Violation]:
    shape, repeats = expressed(request)
    for i, (size, repeat, product) in enumerate(zip(shape, repeats, map(mul, shape, repeats), strict=True)):
        if product > UINT_MAX:
            yield Violation(
                f"OutputTensor.Sizes[{i}]",
                f"{size} * {repeat} = {product} is beyond a UINT, whose maximum is {UINT_MAX}",
            )


def _specification_rule(name: str, url: str) -> Rule[str]:
    @rule(
        f"DML-DIALECT-{name}",
        basis=Basis.DOCUMENTED,
        url=url,
        says=f"{name}'s own specification allows the tile.",
        hresult=None,
    )
    def the_specification_allows_it(error: str, target: Target) -> Iterator[Violation]:
        if error:
            yield Violation("", error)

    return the_specification_allows_it


SPECIFICATION_RULES: Final[dict[str, Rule[str]]] = {
    name: _specification_rule(name, url) for name, url in (("ONNX", ONNX_PAGE), ("OpenVINO", OPENVINO_PAGE))
}
"""By the first word of a dialect; the subject is what the specification says against a tile, or nothing."""

DIALECT_RULES: Final[tuple[Rule[Request], ...]] = (
    elements_can_be_held,
    there_is_something_to_tile,
    dimensions_are_few_enough,
    sizes_fit,
)
