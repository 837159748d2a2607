"""Describes requests as DML_TILE_OPERATOR_DESC, with rules for those that no descriptor can express."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import mul
from typing import Final

from dml_tile.back_ends.dialects import Request, Specification
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml import pages
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX
from dml_tile.directml.targets import DEFAULT_TARGET, Target
from dml_tile.errors import DmlError
from dml_tile.findings import Basis, Finding, Rule, Rules, Severity, Violation, apply_rules

__all__ = ["findings", "tile_desc"]

_ADVICE: Final = {
    "complex64": "tile the same bits as UINT64",
    "complex128": "tile the same bits as UINT64, with a last dimension of 2",
}


def merged_dimensions(shape: Sequence[int], repeats: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the same tile in the fewest dimensions.

    A dimension is merged into the next inner one if that is not repeated, or if its own size is 1.
    """
    sizes, counts = list[int](), list[int]()
    for size, repeat in zip(reversed(shape), reversed(repeats), strict=True):
        if sizes and (counts[-1] == 1 or size == 1):
            size, repeat = sizes.pop() * size, counts.pop() * repeat
        sizes.append(size)
        counts.append(repeat)
    return tuple(reversed(sizes)), tuple(reversed(counts))


def expressed(request: Request) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return shape and repeats as a descriptor has them: a scalar gets one dimension; more than 8 are merged."""
    if len(request.shape) > DML_TENSOR_DIMENSION_COUNT_MAX1:
        return merged_dimensions(request.shape, request.repeats)
    return request.shape or (1,), request.repeats or (1,)


DIALECT_RULES: Final = Rules[Request](basis=Basis.DOCUMENTED, hresult=None, severity=Severity.ERROR)
"""Rules for what no descriptor expresses; DirectML is not called, so it returns no HRESULT."""


@DIALECT_RULES.add("DML-DIALECT-data-type", url=pages.BUFFER)
def elements_can_be_held(request: Request, target: Target) -> Iterator[Violation]:
    """A DirectML data type can carry the bits of an element."""
    if request.carrier is None:
        message = f"no DirectML data type can carry {request.data_type}, which {request.dialect} accepts"
        yield Violation("InputTensor.DataType", message, _ADVICE.get(request.data_type))


@DIALECT_RULES.add("DML-DIALECT-empty", url=pages.TILE)
def tile_is_not_empty(request: Request, target: Target) -> Iterator[Violation]:
    """Every size and every repeat is larger than 0: DirectML has no empty tensors."""
    given = request.given or request.repeats
    fields = (("InputTensor.Sizes", request.shape, request.shape), ("Repeats", request.repeats, given))
    for field, values, written in fields:
        for i in (i for i, value in enumerate(values) if value == 0):
            verb = "computes as 0" if written[i] else "accepts"
            message = f"is {written[i]}, which {request.dialect} {verb}; DirectML cannot express it"
            yield Violation(f"{field}[{i}]", message, "dispatch nothing: the result is empty")


@DIALECT_RULES.add("DML-DIALECT-rank", url=pages.BUFFER)
def dimensions_are_few_enough(request: Request, target: Target) -> Iterator[Violation]:
    """The tile has at most 8 dimensions after all that can be merged are merged."""
    (shape, _), most = expressed(request), DML_TENSOR_DIMENSION_COUNT_MAX1
    if len(shape) > most:
        message = f"{len(request.shape)} dimensions merge into {len(shape)}; a descriptor has at most {most}"
        yield Violation("InputTensor.DimensionCount", message, "tile in two steps")


@DIALECT_RULES.add("DML-DIALECT-size", url=pages.BUFFER)
def sizes_fit(request: Request, target: Target) -> Iterator[Violation]:
    """Every size of the input and of the output, and every repeat, fits a UINT."""
    shape, repeats = expressed(request)
    for i, (size, repeat, product) in enumerate(zip(shape, repeats, map(mul, shape, repeats), strict=True)):
        if product > UINT_MAX:
            message = f"{size} * {repeat} = {product} does not fit a UINT, which is at most {UINT_MAX}"
            yield Violation(f"OutputTensor.Sizes[{i}]", message)


_SPECIFICATION_PAGES: Final[dict[Specification, str]] = {"ONNX": pages.ONNX, "OpenVINO": pages.OPENVINO}

SPECIFICATION_RULES: Final[dict[Specification, Rule[str]]] = {
    specification: Rule(
        f"DML-DIALECT-{specification}",
        f"The tile must be one that {specification}'s specification allows.",
        Basis.DOCUMENTED,
        url,
        lambda error, target: [Violation("", error)] if error else [],
        hresult=None,
        severity=Severity.ERROR,
    )
    for specification, url in _SPECIFICATION_PAGES.items()
}
"""Rules for the tiles in model files. The subject is the specification's error; the empty string means none."""


def findings(request: Request) -> tuple[Finding, ...]:
    """Return the reasons why no descriptor can express the request; ``check`` returns those of a descriptor."""
    return tuple(apply_rules(DIALECT_RULES, request, DEFAULT_TARGET))


def tile_desc(request: Request) -> TileOperatorDesc:
    """Return the packed descriptor that tiles the same bits.

    bool becomes UINT8 and bfloat16 UINT16; a scalar gets the sizes {1}. Dimensions are merged only where there are
    more than 8. Raises DmlError, with the findings, where no descriptor can express the request.
    """
    carrier = request.carrier
    if (found := findings(request)) or carrier is None:
        raise DmlError(found)
    sizes, repeats = expressed(request)
    return TileOperatorDesc.from_input(data_type=carrier, sizes=sizes, repeats=repeats)
