"""The recorder's command line tells what is wrong with its arguments."""

from __future__ import annotations

import pytest

from tests.recorder import __main__ as command_line
from tests.recorder.releases import release_of


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["record", "tests/data/other.jsonl"], "'tests/data/other.jsonl' is not recorded here; expected one of "),
        (["compare", "--workers", "0"], "a number from 1 on was expected, not '0'"),
        (["compare", "--count", "-3"], "a number from 1 on was expected, not '-3'"),
        (["compare", "--level", "6_4"], "invalid choice: '6_4'"),
    ],
)
def test_wrong_arguments_are_told(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_releases_that_are_not_fetched_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "missing", lambda: [release_of("5_2")])
    assert command_line.main(["compare"]) == 2
    assert capsys.readouterr().err == "5_2: not fetched; run `python tests/recorder fetch` first\n"
