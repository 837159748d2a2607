"""Every rule of descriptors, with what it refuses and what it accepts."""

from __future__ import annotations

from typing import Any

import pytest

from dml_tile.checks.catalogue import RULES
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.directml.enums import UINT_MAX
from dml_tile.dxdispatch.fields import model_findings
from dml_tile.dxdispatch.rules import DXDISPATCH_RULES
from dml_tile.formats.json_text import parse_document
from dml_tile.rules.check import DESCRIPTOR_RULES, check
from tests.helpers.rule_cases import CASES, DXDISPATCH_CASES, Case


def _tensor(sizes: list[int], **fields: Any) -> BufferTensorDesc:
    return BufferTensorDesc(data_type="FLOAT32", sizes=sizes, **({"total_tensor_size_in_bytes": 8} | fields))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.target.name}-{case.path}")
def test_a_rule_refuses_and_accepts(case: Case) -> None:
    refusals = [finding for finding in check(case.refused, case.target) if finding.rule == case.rule]
    assert case.path in [finding.path for finding in refusals]
    assert next(finding for finding in refusals if finding.path == case.path).basis == case.basis
    accepted = check(case.accepted, case.accepted_at or case.target)
    assert case.rule not in [finding.rule for finding in accepted]


@pytest.mark.parametrize(
    ("tensor", "rule", "suggestion"),
    [
        (_tensor([]), "DML-BUFFER-DimensionCount", "give a scalar the Sizes {1}"),
        (_tensor([1] * 9), "DML-BUFFER-DimensionCount", None),
        (_tensor([2], total_tensor_size_in_bytes=4), "DML-BUFFER-TotalTensorSizeInBytes-minimum", "set it to 8"),
        (
            _tensor([2, 1], strides=[UINT_MAX - 1, 1]),
            "DML-BUFFER-TotalTensorSizeInBytes-minimum",
            "set it to 17179869180",
        ),
        (_tensor([3, 1], strides=[UINT_MAX, 1]), "DML-BUFFER-TotalTensorSizeInBytes-minimum", None),
    ],
)
def test_only_what_would_be_accepted_is_suggested(tensor: BufferTensorDesc, rule: str, suggestion: str | None) -> None:
    repeats = [1] * len(tensor.sizes or ())
    desc = TileOperatorDesc(input_tensor=tensor, output_tensor=tensor, repeats=repeats)
    found = [finding for finding in check(desc) if finding.rule == rule and finding.path.startswith("InputTensor")]
    assert [finding.suggestion for finding in found] == [suggestion]


@pytest.mark.parametrize(("rule", "refused", "accepted"), DXDISPATCH_CASES)
def test_a_rule_of_models_tells_what_breaks_it(rule: str, refused: str, accepted: str) -> None:
    broken = model_findings(parse_document(refused.encode()))
    assert {finding.rule for found in broken.values() for finding in found} == {rule}
    assert not model_findings(parse_document(accepted.encode()))


def test_each_rule_has_its_cases() -> None:
    assert [rule for rule, _, _ in DXDISPATCH_CASES] == [rule.id for rule in DXDISPATCH_RULES]
    assert {case.rule for case in CASES} == {rule.id for rule in DESCRIPTOR_RULES}


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_what_it_rests_on(rule: Any) -> None:
    assert rule.says.endswith(".")
    assert rule.url.startswith("https://")
    assert rule.basis
    never_called = rule.id == "DML-OPERATOR-not-a-tile" or rule.id.startswith(
        ("DML-CAPTURE-", "DML-DIALECT-", "DML-DXDISPATCH-", "DML-LOWER-", "DML-VIA-")
    )
    assert (rule.hresult is None) == (rule.crash or never_called)
