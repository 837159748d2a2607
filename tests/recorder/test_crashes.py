"""The table of null fields that end the process."""

from __future__ import annotations

import pytest

from tests.recorder.crashes import Asked, lines


def asked(level: str, *given: str, crashed: bool = True) -> Asked:
    return Asked("GEMM.OutputTensor.Desc", "null", level, frozenset(given), crashed)


@pytest.mark.parametrize(
    ("questions", "expected"),
    [
        ([asked("5_1"), asked("6_2")], ["GEMM.OutputTensor.Desc null 5_1 6_2"]),
        ([asked("5_1", crashed=False), asked("6_2", "CTensor")], ["GEMM.OutputTensor.Desc null 6_2"]),
        ([asked("6_2", "ATensor", "CTensor"), asked("6_2", "ATensor", crashed=False)],
         ["GEMM.OutputTensor.Desc null 6_2 if CTensor"]),
        ([asked("6_2", crashed=False)], []),
    ],
)  # fmt: skip
def test_a_line_has_the_levels_and_the_tensor_that_tells(questions: list[Asked], expected: list[str]) -> None:
    assert [*lines(questions)] == expected


def test_no_line_is_written_where_nothing_tells() -> None:
    with pytest.raises(ValueError, match="no tensor says for which"):
        list(lines([asked("6_2", "ATensor"), asked("6_2", "ATensor", crashed=False)]))
