"""Rules for DML_TILE_OPERATOR_DESC: its support table, and the relations between its fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from operator import floordiv, mod, mul
from typing import TYPE_CHECKING, Final, NamedTuple

from dml_tile.descriptors.tile import DATA_TYPE, BufferTensorDesc, TileOperatorDesc, type_name
from dml_tile.directml import pages
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, HRESULT, UINT_MAX, FeatureLevel
from dml_tile.directml.operator_table import operator_table
from dml_tile.directml.operators import operator_name, operators
from dml_tile.directml.targets import Target, first_directml, tile_rows
from dml_tile.findings import BOTH, Basis, Edit, Rules, Severity, Try, Violation, set_to
from dml_tile.rules.tensor import TensorView, counted
from dml_tile.text import braced, counts_text

if TYPE_CHECKING:
    from dml_tile.descriptors.operator import OperatorDesc

_PRIVATE_TYPES: Final = range(0x80000000, 0x80000020)
"""The library's own operators; it reads a tile's description as theirs, and mostly crashes."""
_FIRST_UNSUPPORTED_TYPE: Final = 0xC0000000


class TileView(NamedTuple):
    """A tile, and its tensors; None for a tensor that is null."""

    desc: TileOperatorDesc
    input: TensorView | None
    output: TensorView | None


OPERATOR_RULES: Final[Rules[OperatorDesc | None]] = Rules(url=pages.OPERATOR)
TILE_BUFFER_RULES: Final = Rules[TensorView](url=pages.TILE)
INPUT_OUTPUT_RULES: Final = Rules[TileView](url=pages.TILE)
REPEATS_RULES: Final = Rules[TileView](url=pages.TILE)


@OPERATOR_RULES.add("DML-OPERATOR-null")
def operator_is_given(operator: OperatorDesc | None, target: Target) -> Iterator[Violation]:
    """The DML_OPERATOR_DESC is not null."""
    if operator is None:
        yield Violation("", "null was provided, but a DML_OPERATOR_DESC was expected")


def _no_operator(operator: OperatorDesc) -> str:
    return f"{int(operator.type)} is no operator of DirectML.h; an enumerator of DML_OPERATOR_TYPE was expected"


@OPERATOR_RULES.add("DML-OPERATOR-Type")
def operator_type_is_known(operator: OperatorDesc | None, target: Target) -> Iterator[Violation]:
    """Type is an enumerator of DML_OPERATOR_TYPE."""
    if not operator or operator.type in _PRIVATE_TYPES:
        return
    if operator.type < _FIRST_UNSUPPORTED_TYPE and operator.type not in operators():
        yield Violation("Type", _no_operator(operator))


@OPERATOR_RULES.add("DML-OPERATOR-Type-unsupported", hresult=HRESULT.DXGI_ERROR_UNSUPPORTED)
def operator_type_is_not_too_large(operator: OperatorDesc | None, target: Target) -> Iterator[Violation]:
    """Type is below 0xc0000000; from there on, the runtime returns DXGI_ERROR_UNSUPPORTED."""
    if operator and operator.type >= _FIRST_UNSUPPORTED_TYPE and operator.desc is not None:
        yield Violation("Type", _no_operator(operator))


@OPERATOR_RULES.add(
    "DML-OPERATOR-not-a-tile", basis=Basis.DOCUMENTED | Basis.INFERRED, hresult=None, severity=Severity.NOTE
)
def operator_is_checked(operator: OperatorDesc | None, target: Target) -> Iterator[Violation]:
    """The operator must be declared in DirectML.h; to lower it, it must be Tile. DirectML may accept others."""
    if operator and operator.type in _PRIVATE_TYPES and operator.desc is not None:
        yield Violation("Type", f"{operator_name(int(operator.type))} is private to DirectML; it is not checked")


@OPERATOR_RULES.add("DML-OPERATOR-Desc-null")
def operator_is_described(operator: OperatorDesc | None, target: Target) -> Iterator[Violation]:
    """An operator's Desc is not null, whatever its Type."""
    if operator and operator.desc is None:
        described = operators().get(operator.type)
        yield Violation("Desc", f"null was provided, but a {described.struct if described else 'struct'} was expected")


def _basis_of(data_type: int, target: Target) -> Basis:
    """Return the basis of a finding on a data type that the level's row lacks; below 5_0 nothing was measured."""
    _, taken = operator_table("TILE", ("InputTensor", "OutputTensor")).at(target.feature_level)
    return Basis.DOCUMENTED if data_type in taken["InputTensor"].data_types else Basis.DOCUMENTED | Basis.INFERRED


_RUNTIME_ALONE: Final = 'go by the runtime alone (against="runtime", --against runtime)'


@TILE_BUFFER_RULES.add("DML-TILE-DataType", basis=BOTH | Basis.INFERRED)
def data_type_is_ever_supported(view: TensorView, target: Target) -> Iterator[Violation]:
    """Tile takes FLOAT16, FLOAT32 and integers of 8, 16, 32 and 64 bits. The runtime takes FLOAT64 too, from 5_0."""
    data_type = view.desc.data_type
    if not isinstance(data_type, TensorDataType) or data_type in (
        tile_rows()[-1].data_types | {TensorDataType.UNKNOWN}
    ):
        return
    message = f"{data_type.name} is in no row of Tile's tensor support, at any feature level"
    basis, advice, edit, path = BOTH, None, None, view.path("DataType")
    if data_type == TensorDataType.FLOAT64:
        basis = _basis_of(data_type, target)
        if TensorDataType.UINT64 in target.tile_support.data_types:
            edit = Try("tile the same bits as UINT64", edits=(Edit(path, TensorDataType.UINT64),))
        if basis == Basis.DOCUMENTED and target.double_precision:
            message += " (DirectML takes it)"
            advice = _RUNTIME_ALONE
    yield Violation(path, message, advice, basis, edit=edit)


@TILE_BUFFER_RULES.add("DML-TILE-DataType-level", basis=Basis.DOCUMENTED | Basis.INFERRED)
def data_type_is_supported_at_level(view: TensorView, target: Target) -> Iterator[Violation]:
    """The data type is in Tile's documented row for the feature level."""
    data_type = view.desc.data_type
    if data_type in target.tile_support.data_types or data_type not in tile_rows()[-1].data_types:
        return
    since = next(row.since for row in tile_rows() if data_type in row.data_types)
    message = level_needed(type_name(data_type), since, target)
    yield Violation(view.path("DataType"), message, upgrade_advice(since), _basis_of(data_type, target), ships=True)


@TILE_BUFFER_RULES.add("DML-TILE-DataType-adapter", basis=Basis.RUNTIME | Basis.INFERRED)
def data_type_is_supported_by_adapter(view: TensorView, target: Target) -> Iterator[Violation]:
    """FLOAT64 needs an adapter with DoublePrecisionFloatShaderOps; UINT8 and INT8 need, up to level 5_2, one with
    TypedUAVLoadAdditionalFormats; types of 16 bits need one with that or Native16BitShaderOpsSupported.
    """
    yield from lacking_capability(view, target, Basis.RUNTIME if target.level.tiles_are_measured else Basis.INFERRED)


@TILE_BUFFER_RULES.add("DML-TILE-DimensionCount-level", basis=Basis.DOCUMENTED | Basis.INFERRED)
def dimension_count_is_supported_at_level(view: TensorView, target: Target) -> Iterator[Violation]:
    """The dimension count is in Tile's documented row for the feature level."""
    count = view.desc.dimension_count
    if count in target.tile_support.dimension_counts or count not in tile_rows()[-1].dimension_counts:
        return
    since = next(row.since for row in tile_rows() if count in row.dimension_counts)
    counts = target.tile_support.dimension_counts
    edit = counted(view, min(counts)) if count < min(counts) else None
    yield count_outside_row(view, counts, since, target, taker="Tile", edit=edit)


MAX_TEXELS: Final = 2**27
"""D3D12_REQ_BUFFER_RESOURCE_TEXEL_COUNT_2_TO_EXP is 27."""


@TILE_BUFFER_RULES.add(
    "DML-TILE-typed-view", basis=Basis.DOCUMENTED, url=pages.DIRECT3D_CONSTANTS, severity=Severity.NOTE
)
def typed_view_is_guaranteed(view: TensorView, target: Target) -> Iterator[Violation]:
    """TotalTensorSizeInBytes has room for at most 2^27 elements where DirectML accesses them through a typed view:
    those of 8 bits, and those of 16 without Native16BitShaderOpsSupported. Direct3D 12 guarantees no larger view
    (D3D12_REQ_BUFFER_RESOURCE_TEXEL_COUNT_2_TO_EXP). The runtime was seen to make larger ones, on a software driver.
    """
    if elements := elements_beyond_a_view(view.desc, target):
        bits = 8 * ELEMENT_SIZES[view.desc.data_type]
        yield Violation(
            view.path("TotalTensorSizeInBytes"),
            f"a typed view has {elements} elements of {bits} bits, but Direct3D 12 guarantees {MAX_TEXELS} "
            "(DirectML makes the view)",
        )


def elements_beyond_a_view(buffer: BufferTensorDesc, target: Target) -> int:
    """Return the elements of a typed view that are more than Direct3D 12 guarantees; 0 if it guarantees them."""
    element_size = ELEMENT_SIZES.get(buffer.data_type)
    if element_size != 1 and (element_size != 2 or target.native_16_bit_ops):
        return 0
    elements = buffer.total_tensor_size_in_bytes // element_size
    return elements if elements > MAX_TEXELS else 0


@INPUT_OUTPUT_RULES.add("DML-TILE-OutputTensor-DataType")
def data_types_agree(tile: TileView, target: Target) -> Iterator[Violation]:
    """InputTensor and OutputTensor have the same DataType."""
    for message in _mismatch(tile, "tensor data types", lambda desc: desc.data_type, DATA_TYPE.write):
        assert tile.input, "it has another"
        path = "OutputTensor.DataType"
        yield Violation(path, message, edit=set_to(tile.input.desc.data_type, path))


@INPUT_OUTPUT_RULES.add("DML-TILE-OutputTensor-DimensionCount")
def dimension_counts_agree(tile: TileView, target: Target) -> Iterator[Violation]:
    """InputTensor and OutputTensor have the same DimensionCount."""
    for message in _mismatch(tile, "dimension counts", lambda desc: desc.dimension_count):
        sizes, repeats = tile.input and tile.input.sizes, tile.desc.repeats
        products = tuple(map(mul, sizes, repeats)) if sizes and repeats and len(sizes) == len(repeats) else None
        edits = (Edit("OutputTensor.Sizes", products), Edit("OutputTensor.Strides", None))
        edit = Try(f"set Sizes to {braced(products)}", edits=edits) if products else None
        yield Violation("OutputTensor.DimensionCount", message, edit=edit)


def _mismatch(
    tile: TileView, what: str, value_of: Callable[[BufferTensorDesc], int], shown: Callable[[int], object] = int
) -> Iterator[str]:
    """Yield the message about a field that the two tensors do not have in common."""
    if tile.input and tile.output and (given := value_of(tile.output.desc)) != (other := value_of(tile.input.desc)):
        yield f"mismatched {what}. OutputTensor has {shown(given)}, while InputTensor has {shown(other)}"


@INPUT_OUTPUT_RULES.add("DML-TILE-OutputTensor-Sizes")
def output_sizes_are_the_products(tile: TileView, target: Target) -> Iterator[Violation]:
    """OutputTensor.Sizes[i] = InputTensor.Sizes[i] * Repeats[i]. The runtime multiplies modulo 2^32."""
    if not (tile.input and tile.output and tile.input.sizes and tile.output.sizes and tile.desc.repeats):
        return
    repeats = tile.desc.repeats[: tile.desc.repeats_count]
    is_one_for_each = len(tile.desc.repeats) >= tile.input.desc.dimension_count  # else leading repeats may be missing
    for i, (size, repeat, produced) in enumerate(zip(tile.input.sizes, repeats, tile.output.sizes, strict=False)):
        expected = size * repeat
        if produced == expected or repeat == 0:  # another rule refuses a repeat of 0
            continue
        refused = produced != (expected & UINT_MAX)
        wrapped = "" if refused else " (DirectML multiplies in 32 bits, and accepts it)"
        message = (
            f"{produced} was provided, but {expected} = InputTensor.Sizes[{i}] {size} * Repeats[{i}] {repeat} was "
            f"expected{wrapped}"
        )
        path, basis = f"OutputTensor.Sizes[{i}]", BOTH if refused else Basis.DOCUMENTED
        yield Violation(path, message, basis=basis, edit=set_to(expected, path) if is_one_for_each else None)


@REPEATS_RULES.add("DML-TILE-RepeatsCount")
def repeats_count_is_the_dimension_count(tile: TileView, target: Target) -> Iterator[Violation]:
    """RepeatsCount is InputTensor.DimensionCount."""
    if tile.input and tile.desc.repeats_count != tile.input.desc.dimension_count:
        message = (
            f"{tile.desc.repeats_count} was provided, but InputTensor.DimensionCount = "
            f"{tile.input.desc.dimension_count} was expected"
        )
        yield Violation("RepeatsCount", message, edit=_count_suggested(tile))


def _count_suggested(tile: TileView) -> Try | None:
    assert tile.input, "the rule has looked"
    count, repeats = tile.input.desc.dimension_count, tile.desc.repeats
    edit = set_to(count, "RepeatsCount")
    if repeats is None or len(repeats) >= count:
        return edit
    if not (wanted := _implied_repeats(tile)):
        return None
    text = f"{edit.text} and Repeats to {braced(wanted)}, which OutputTensor.Sizes implies"
    return Try(text, edits=(*edit.edits, Edit("Repeats", wanted)))


def _implied_repeats(tile: TileView) -> tuple[int, ...]:
    """Return the repeats that make the output of the input; empty if none do."""
    sizes, outputs = (view.sizes if view and view.sizes else () for view in (tile.input, tile.output))
    if len(sizes) != len(outputs) or any(map(mod, outputs, sizes)):
        return ()
    return tuple(map(floordiv, outputs, sizes))


@REPEATS_RULES.add("DML-TILE-Repeats-null", crash=True)
def repeats_are_given(tile: TileView, target: Target) -> Iterator[Violation]:
    """Repeats is not null. The runtime reads it last."""
    if tile.desc.repeats is None:
        message = "null was provided, but an array of RepeatsCount values was expected. DirectML reads it last"
        wanted = _implied_repeats(tile)
        edit = set_to(wanted, "Repeats") if wanted else None
        yield Violation("Repeats", f"{message}, and would crash", edit=edit)


@REPEATS_RULES.add("DML-TILE-Repeats-length")
def repeats_are_long_enough(tile: TileView, target: Target) -> Iterator[Violation]:
    """Repeats has at least RepeatsCount entries; the runtime reads past its end."""
    if tile.desc.repeats_count > DML_TENSOR_DIMENSION_COUNT_MAX1:
        return  # refused before the array is read
    if tile.desc.repeats is not None and len(tile.desc.repeats) < tile.desc.repeats_count:
        yield Violation(
            "Repeats",
            f"an array of {len(tile.desc.repeats)} was provided, but RepeatsCount promises {tile.desc.repeats_count}",
        )


@REPEATS_RULES.add("DML-TILE-Repeats-zero")
def repeats_are_positive(tile: TileView, target: Target) -> Iterator[Violation]:
    """Every value of Repeats is larger than 0."""
    count = min(tile.desc.repeats_count, DML_TENSOR_DIMENSION_COUNT_MAX1)
    for i, repeat in enumerate((tile.desc.repeats or ())[:count]):
        if repeat == 0:
            message = "is 0; it must be larger than 0"
            yield Violation(f"Repeats[{i}]", message, "leave the operator out: an empty output needs no tile")


DATA_TYPE_RULES: Final = frozenset(
    rule.id
    for rule in (data_type_is_ever_supported, data_type_is_supported_at_level, data_type_is_supported_by_adapter)
)
"""The rules about the data types that DirectML takes."""

LOWERED_RULES: Final = DATA_TYPE_RULES | {dimension_count_is_supported_at_level.id}
"""The rules of descriptors that a lowering can satisfy. Alignments are better mended in the tile itself."""


def count_outside_row(
    view: TensorView,
    counts: Collection[int],
    since: FeatureLevel | None,
    target: Target,
    basis: Basis | None = None,
    taker: str = "it",
    edit: Try | None = None,
) -> Violation:
    """Return the violation of a dimension count that the level's row lacks, and a later one, ``since``, may have."""
    what, expected = f"a dimension count of {view.desc.dimension_count}", counts_text(counts)
    message, advice = f"{what} was provided, but {expected} was expected", None
    if since:
        message, advice = f"{level_needed(what, since, target)}, where {taker} takes {expected}", upgrade_advice(since)
    return Violation(view.path("DimensionCount"), message, advice, basis, ships=since is not None, edit=edit)


def lacking_capability(view: TensorView, target: Target, basis: Basis) -> Iterator[Violation]:
    """Yield the violation of a data type for which the adapter lacks a capability."""
    if needed := target.missing_capability(view.desc.data_type):
        message = f"{type_name(view.desc.data_type)} needs an adapter with {needed}, which the target's adapter lacks"
        yield Violation(view.path("DataType"), message, basis=basis)


def level_needed(what: str, since: FeatureLevel, target: Target) -> str:
    """Return the sentence that something needs a level, beside the target and its level."""
    level = target.feature_level.short
    return f"{what} needs {since.name}; {'the target' if target.name == level else target.name} has {level}"


def upgrade_advice(since: FeatureLevel) -> str:
    """Return the suggestion to ship the library that brings a level."""
    return f"ship DirectML {first_directml(since)} or later with the application"
