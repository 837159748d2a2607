"""Rules for activations that are fused into another operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dml_tile.descriptors.operator import OperatorFields, read_fields
from dml_tile.directml import pages
from dml_tile.directml.enums import HRESULT
from dml_tile.directml.operator_table import OperatorTable, operator_table
from dml_tile.directml.operators import operator_name, operators
from dml_tile.directml.targets import Target
from dml_tile.findings import BOTH, Basis, Edit, Rules, Severity, Try, Violation, set_to
from dml_tile.rules.operator_fields import FIELD_LEVEL_RULES, OPERATOR_FIELD_RULES
from dml_tile.rules.operator_view import OperatorView, table_of, viewed
from dml_tile.rules.tile import level_needed, upgrade_advice

ACTIVATION_RULES: Final = Rules[OperatorView](url=pages.FUSED_ACTIVATIONS, basis=BOTH | Basis.INFERRED)


def _known(op: OperatorView) -> Iterator[tuple[str, OperatorFields]]:
    """Yield the fields of each activation, after its path."""
    for path, activation in op.activations:
        if isinstance(activation.desc, OperatorFields):
            yield path, activation.desc


@ACTIVATION_RULES.add("DML-OPERATOR-activation")
def activations_can_be_fused(op: OperatorView, target: Target) -> Iterator[Violation]:
    """A fused activation is one that can be fused."""
    level = target.feature_level
    for path, activation in op.activations:
        known = operators().get(activation.type)
        table = operator_table(known.name, known.tensors) if known else OperatorTable()
        since = op.table.fused_from.get(known.name, known.level if table.fused else None) if known else None
        if since is None or since > level:
            name = operator_name(int(activation.type))
            message, advice = f"{name} cannot be fused into {op.operator.c_name}", None
            if since:
                message = level_needed(f"fusing {name} into {op.operator.c_name}", since, target)
                advice = upgrade_advice(since)
            is_odd = op.operator.name == "CONVOLUTION" and not (known and known.name.rstrip("1").endswith("MAX"))
            hresult = HRESULT.E_UNEXPECTED if is_odd else None
            is_taken = known is not None and known.level <= level and table.runtime_fused
            basis = Basis.DOCUMENTED if is_taken else BOTH
            edit = Try("make it an operator of its own", edits=(Edit(path, None),)) if "[" not in path else None
            yield Violation(f"{path}.Type", message, advice, basis, hresult, edit=edit)


@ACTIVATION_RULES.add("DML-OPERATOR-activation-tensors")
def tensors_of_activations_are_null(op: OperatorView, target: Target) -> Iterator[Violation]:
    """The tensors of a fused activation are null."""
    for path, activation in _known(op):
        for name in activation.operator.tensors:
            if activation[name] is not None:
                field = f"{path}.{name}"
                message = "a tensor was provided, but null was expected"
                yield Violation(field, message, basis=BOTH, edit=set_to(None, field))


@ACTIVATION_RULES.add("DML-OPERATOR-activation-Sizes")
def activations_fit_the_output(op: OperatorView, target: Target) -> Iterator[Violation]:
    """A fused activation would take the operator's OutputTensor by itself."""
    for path, violation, is_number in _refused_alone(op, target):
        if not is_number:
            is_size = violation.path.startswith("InputTensor")
            text = f"{violation.path}: {violation.message}" if is_size else violation.message
            place = path if is_size else f"{path}.{violation.path}"
            yield Violation(place, text.replace("InputTensor", "OutputTensor"), basis=BOTH)


@ACTIVATION_RULES.add("DML-OPERATOR-activation-number", basis=Basis.DOCUMENTED, severity=Severity.NOTE)
def numbers_of_activations_fit(op: OperatorView, target: Target) -> Iterator[Violation]:
    """A number of a fused activation is one that the activation would take by itself."""
    for path, violation, is_number in _refused_alone(op, target):
        if is_number:
            message = f"{violation.message}; DirectML takes it here, and refuses the activation alone"
            yield Violation(f"{path}.{violation.path}", message)


def _refused_alone(op: OperatorView, target: Target) -> Iterator[tuple[str, Violation, bool]]:
    """Yield the fault of each activation of OutputTensor, after its path, and whether that is of a FLOAT."""
    if not op.activations:
        return
    output = next((view.operand.tensor for view in op.of("OutputTensor")), None)
    for path, activation in _known(op):
        operator, table = activation.operator, table_of(activation)
        if not (table.fields or table.shapes) or operator.tensors != ("InputTensor", "OutputTensor"):
            continue
        fields = {name: activation[name] for name in operator.named} | dict.fromkeys(operator.tensors, output)
        alone = viewed(read_fields(operator, fields))
        for rule in (*OPERATOR_FIELD_RULES, *FIELD_LEVEL_RULES):
            for violation in rule.violations(alone, target):
                field = operator.named.get(violation.path)
                yield path, violation, field is not None and field.kind == "f"


_SCALE_BIAS: Final = "https://github.com/microsoft/DirectML/issues/698"


@ACTIVATION_RULES.add("DML-OPERATOR-activation-ScaleBias", url=_SCALE_BIAS, basis=Basis.RUNTIME | Basis.INFERRED)
def scale_or_bias_alone_is_given(op: OperatorView, target: Target) -> Iterator[Violation]:
    """ScaleBias of a fused activation is null, or has a Scale of 1 or a Bias of 0."""
    for path, given, changes in _scales(op):
        if changes == 2:
            yield Violation(path, f"{given}, but null was expected", basis=Basis.RUNTIME, edit=_unscaled(path))


@ACTIVATION_RULES.add(
    "DML-OPERATOR-activation-ScaleBias-unapplied", url=_SCALE_BIAS, basis=Basis.INFERRED, severity=Severity.WARNING
)
def scale_is_not_applied(op: OperatorView, target: Target) -> Iterator[Violation]:
    """ScaleBias of a fused activation is null, or changes nothing: DirectML does not apply it."""
    for path, given, changes in _scales(op):
        if changes == 1:
            yield Violation(path, f"{given}; DirectML takes and does not apply them", edit=_unscaled(path))


def _unscaled(path: str) -> Try:
    return Try("scale in an operator of its own, before the activation", edits=(Edit(path, None),))


def _scales(op: OperatorView) -> Iterator[tuple[str, str, int]]:
    """Yield the ScaleBias of each activation: its path, its values in words, and how many of them change something."""
    for path, activation in _known(op):
        if activation.operator.name in op.table.fused_from and (given := activation.get("ScaleBias")):
            text = f"a scale of {given.scale:g} and a bias of {given.bias:g} were provided"
            yield f"{path}.ScaleBias", text, (given.scale != 1) + (given.bias != 0)
