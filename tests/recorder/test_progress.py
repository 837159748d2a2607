"""A long comparison tells how far it is, also where standard error is no terminal."""

from __future__ import annotations

import pytest

from tests.recorder.progress import SECONDS, Progress


def test_a_line_is_printed_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 1.0, SECONDS, SECONDS + 1.0, 2 * SECONDS - 1.0, 2 * SECONDS])
    progress = Progress(1000, lambda: next(times))
    for done in (100, 200, 300, 400, 500):
        progress.tell(done, done // 200)
    assert capsys.readouterr().err.splitlines() == [
        "200 of 1000 descriptors, 1 disagreements, 30 s",
        "500 of 1000 descriptors, 2 disagreements, 60 s",
    ]
