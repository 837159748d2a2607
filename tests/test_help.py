"""Help at the width of a terminal: nothing is cut, and each command tells its exit statuses."""

from __future__ import annotations

import pytest

from tests.helpers.command_line import COMMAND, invoke

COMMANDS = list(COMMAND.commands)
WIDTH = 80


def help_of(*arguments: str) -> str:
    return invoke(*arguments, "--help", env={"COLUMNS": str(WIDTH)}).stdout


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)], ids=lambda names: " ".join(names) or "all")
def test_nothing_is_cut_at_80_columns(arguments: list[str]) -> None:
    text = help_of(*arguments)
    assert text.startswith("Usage: ")
    assert all(len(line) <= WIDTH for line in text.splitlines())
    assert "…" not in text
    assert "..." not in text.replace("[FILE]...", "").replace("[ARGS]...", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_tells_its_exit_statuses(name: str) -> None:
    words = " ".join(help_of(name).split())
    assert "Exit status: 0 clean, 1 findings, 2 wrong usage, or a file that cannot be read or written." in words


def test_the_values_of_an_option_are_whole_words() -> None:
    words = help_of("check").split()
    assert {"documentation,", "runtime", "onnxruntime-directml-1.16.3;", "never:"} <= set(words)
