"""The table of docs/limits.md has the recorder's claims, whose commands run, whole or in part."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import pytest

from docs.generator.claims_table import with_claims
from tests.helpers.paths import ROOT
from tests.recorder import __main__ as command_line
from tests.recorder import commands
from tests.recorder.claims import CLAIMS, Claim
from tests.recorder.releases import RELEASES


def test_the_table_of_the_page_is_that_of_the_claims() -> None:
    page = (ROOT / "docs" / "limits.md").read_text("utf-8")
    assert with_claims(page) == page, "run `python -m docs.generate`"
    assert all(f"  {claim.row()}\n" in page for claim in CLAIMS)


def test_a_claim_is_shown_once_for_each_seed_and_within_a_count() -> None:
    claim = Claim("Equal", "lives --count 500", (3, 4))
    assert list(claim.commands()) == [["lives", "--count", "500", "--seed", seed] for seed in ("3", "4")]
    assert list(claim.commands(20)) == [["lives", "--count", "20", "--seed", "3"]]
    assert list(claim.commands(1000)) == [["lives", "--count", "500", "--seed", "3"]]


def test_the_command_runs_each_claim_and_fails_with_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.recorder.releases.CACHE", tmp_path)
    for release in RELEASES:
        release.library.parent.mkdir()
        release.library.touch()
    names = [claim.command.split()[0] for claim in CLAIMS]
    ran = {name: Mock(return_value=int(name == "lives")) for name in names}
    for name, command in ran.items():
        monkeypatch.setattr(commands, name, command)
    monkeypatch.setattr(command_line, "build", lambda folder: None)
    assert command_line.main(["claims", "--count", "200"]) == 1
    assert {name: command.call_count for name, command in ran.items()} == Counter(names)
    assert ran["lives"].call_args.args[1].count == 200
