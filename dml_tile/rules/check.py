"""Checking a descriptor: would DirectML accept it at a target, and if not, why?

check()         all findings of a descriptor
require()       raises DmlError if one of them is an error or a warning
lowest_level()  the lowest feature level without findings
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import mul
from typing import Final

from dml_tile.calls import record
from dml_tile.descriptors import BufferTensorDesc, OperatorDesc, TensorDesc, TileOperatorDesc
from dml_tile.enums import (
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    UINT_MAX,
    FeatureLevel,
    OperatorType,
    TensorFlags,
    TensorType,
)
from dml_tile.errors import DmlError
from dml_tile.findings import Against, Finding, Severity, bases_of
from dml_tile.geometry.layout import ELEMENT_SIZES, minimum_size_in_bytes
from dml_tile.rules.tensor import BUFFER_RULES, TENSOR_RULES, Operand, view_of
from dml_tile.rules.tile import (
    INPUT_OUTPUT_RULES,
    OPERATOR_RULES,
    REPEATS_RULES,
    TILE_BUFFER_RULES,
    Tile,
    operator_is_a_tile,
)
from dml_tile.simulation import resolve
from dml_tile.targets import Target, TargetLike
from dml_tile.text import did_you_mean

DESCRIPTOR_RULES: Final = (
    TENSOR_RULES + BUFFER_RULES + TILE_BUFFER_RULES + INPUT_OUTPUT_RULES + REPEATS_RULES + OPERATOR_RULES
)
"""In the order of their findings."""


def check(
    desc: OperatorDesc | TileOperatorDesc | None, target: TargetLike | None = None, against: Against = "both"
) -> tuple[Finding, ...]:
    """All findings of a descriptor at a target, those of InputTensor first, then OutputTensor's, then the operator's.

    ``target`` is whatever ``Target.parse`` takes; None means the simulated one, else 6_4. ``against`` is the contract
    to hold it to: what the ``"documentation"`` says, what the ``"runtime"`` was measured to do, or ``"both"``, the
    default: what breaks either.
    Raises ValueError for an unknown target or ``against``, TypeError for what is no descriptor.
    """
    target = resolve(target)
    findings = findings_of(desc, target, against)
    record("check", target, desc, findings)
    return findings


def findings_of(
    desc: OperatorDesc | TileOperatorDesc | None, target: Target, against: Against = "both"
) -> tuple[Finding, ...]:
    """Find what ``check`` finds, where the call in progress is another one. Raises what ``check`` raises."""
    bases = bases_of(against)
    tile = _tile_of(desc)
    if tile is not None and _is_plainly_fine(tile, target):
        return ()
    return tuple(finding for finding in _findings(desc, tile, target) if finding.basis & bases)


def require(
    desc: OperatorDesc | TileOperatorDesc | None, target: TargetLike | None = None, against: Against = "both"
) -> None:
    """Raise DmlError, with all findings, if ``check`` finds an error or a warning; a note alone raises nothing."""
    findings = check(desc, target, against)
    if any(finding.severity > Severity.NOTE for finding in findings):
        raise DmlError(findings)


def lowest_level(desc: OperatorDesc | TileOperatorDesc | None) -> FeatureLevel | None:
    """The lowest feature level at which the descriptor passes, against both; None if it passes at no level."""
    return next((level for level in DISTINCT_LEVELS if _passes(desc, Target(level))), None)


def not_a_tile(operator: str) -> Finding:
    """The finding for an operator that is known by its C name only."""
    rule = operator_is_a_tile
    meant = did_you_mean(operator.upper(), ["DML_OPERATOR_TILE"], cutoff=0.85)
    message = f"{operator} is not a tile; only tiles are checked{f'; {meant}' if meant else ''}"
    return Finding(rule.id, "Type", message, Severity.NOTE, rule.basis, rule.hresult, rule.crash, rule.url, None)


def _distinct_levels() -> Iterator[FeatureLevel]:
    """The lowest level of each run of levels that are checked alike."""
    previous = None
    for level in FeatureLevel:
        target = Target(level)
        checked_by = (target.tile_support, target.runtime_wraps_extents)
        if checked_by != previous:
            yield level
        previous = checked_by


DISTINCT_LEVELS: Final = tuple(_distinct_levels())
"""The levels at which the answer to a descriptor can change."""

_BUFFER: Final = int(TensorType.BUFFER)  # looking up an enumerator costs more than comparing with it
_OWNED_BY_DML: Final = int(TensorFlags.OWNED_BY_DML)


def _passes(desc: OperatorDesc | TileOperatorDesc | None, target: Target) -> bool:
    """True if a descriptor has no finding; the search ends at the first."""
    tile = _tile_of(desc)
    return (tile is not None and _is_plainly_fine(tile, target)) or not any(True for _ in _findings(desc, tile, target))


def _tile_of(operator: OperatorDesc | TileOperatorDesc | None) -> TileOperatorDesc | None:
    if operator is None or isinstance(operator, TileOperatorDesc):
        return operator
    if not isinstance(operator, OperatorDesc):
        raise TypeError(f"a TileOperatorDesc or an OperatorDesc was expected, not a {type(operator).__name__}")
    return operator.desc if operator.type == OperatorType.TILE else None


def _findings(
    desc: OperatorDesc | TileOperatorDesc | None, tile: TileOperatorDesc | None, target: Target
) -> Iterator[Finding]:
    if tile is not None:
        operands = Operand("InputTensor", tile.input_tensor), Operand("OutputTensor", tile.output_tensor)
        whole = Tile(tile, *map(view_of, operands))
        for operand, buffer in zip(operands, (whole.input, whole.output), strict=True):
            if not _is_ordinary(operand):
                for tensor_rule in TENSOR_RULES:
                    yield from tensor_rule.findings(operand, target)
                if buffer is not None:
                    for buffer_rule in BUFFER_RULES:
                        yield from buffer_rule.findings(buffer, target)
            if buffer is not None:
                for tile_buffer_rule in TILE_BUFFER_RULES:
                    yield from tile_buffer_rule.findings(buffer, target)
            if operand.is_output:
                for output_rule in INPUT_OUTPUT_RULES:
                    yield from output_rule.findings(whole, target)
        for repeats_rule in REPEATS_RULES:
            yield from repeats_rule.findings(whole, target)
    if not isinstance(desc, TileOperatorDesc):
        for operator_rule in OPERATOR_RULES:
            yield from operator_rule.findings(desc, target)


def _is_plainly_fine(tile: TileOperatorDesc, target: Target) -> bool:
    """True for a descriptor of the common kind that breaks no rule; applying the rules costs ten times as much.

    It never accepts what a rule refuses (a property test holds it to that), and leaves all that is less common, such as
    strides, to the rules.
    """
    source, destination = _plain(tile.input_tensor), _plain(tile.output_tensor)
    if source is None or destination is None or source.sizes is None or tile.repeats is None:
        return False
    support = target.tile_support
    return (
        source.data_type == destination.data_type
        and source.data_type in support.data_types
        and source.dimension_count in support.dimension_counts
        and source.dimension_count == destination.dimension_count == tile.repeats_count == len(tile.repeats)
        and target.typed_uav_loads
        and destination.flags == 0
        and tuple(map(mul, source.sizes, tile.repeats)) == destination.sizes
    )


def _is_ordinary(operand: Operand) -> bool:
    """True for a tensor of the common kind, which breaks no rule of tensors at any target (a test holds it to that)."""
    buffer = _plain(operand.tensor)
    return buffer is not None and not (operand.is_output and buffer.flags)


def _plain(tensor: TensorDesc | None) -> BufferTensorDesc | None:
    """The buffer of a packed, sane tensor without an alignment; None for any other."""
    if tensor is None or tensor.type != _BUFFER or tensor.desc is None:
        return None
    buffer = tensor.desc
    element_size = ELEMENT_SIZES.get(buffer.data_type)
    if (
        buffer.sizes is None
        or element_size is None
        or not 0 < len(buffer.sizes) == buffer.dimension_count <= DML_TENSOR_DIMENSION_COUNT_MAX1
        or buffer.strides is not None
        or buffer.guaranteed_base_offset_alignment != 0
        or buffer.flags > _OWNED_BY_DML
    ):
        return None
    elements = math.prod(buffer.sizes)
    if not 0 < elements <= UINT_MAX:
        return None
    total = buffer.total_tensor_size_in_bytes
    return (
        buffer if minimum_size_in_bytes(element_size, buffer.sizes, None) <= total <= UINT_MAX * element_size else None
    )
