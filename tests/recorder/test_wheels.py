"""A wheel's licence is read first, and nothing of one that is not MIT is unpacked; wrong arguments are reported."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from tests.recorder import __main__ as command_line
from tests.recorder.releases import Release
from tests.recorder.wheels import LIBRARY, MIT_GRANT, FetchError, LicenceError, unpack

MIT_TEXT = f"MIT License\n\n    Copyright (c) Somebody\n\n    {MIT_GRANT.capitalize()}"
BYTES = b"a library"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Release:
    monkeypatch.setattr("tests.recorder.releases.CACHE", tmp_path / "cache")
    return Release("5_0", "1.0", "3.8", hashlib.sha256(BYTES).hexdigest())


def wheel(folder: Path, metadata: str | None = "License: MIT\n", **texts: str) -> Path:
    path = folder / "package-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(LIBRARY, BYTES)
        if metadata is not None:
            archive.writestr("package-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: package\n{metadata}")
        for name, text in texts.items():
            archive.writestr(f"package-1.0.dist-info/{name}", text)
    return path


@pytest.mark.parametrize("field", ["License", "License-Expression"])
def test_the_library_of_a_wheel_under_the_mit_licence_is_unpacked(tmp_path: Path, release: Release, field: str) -> None:
    unpack(wheel(tmp_path, f"{field}: MIT\n", LICENSE=MIT_TEXT), release)
    assert release.library.read_bytes() == BYTES


@pytest.mark.parametrize(
    ("metadata", "texts", "why"),
    [
        ("License: BSD-3-Clause\n", {"LICENSE": MIT_TEXT}, "names the licence 'BSD-3-Clause'"),
        ("License: MIT OR Apache-2.0\n", {"LICENSE": MIT_TEXT}, "names the licence 'MIT OR Apache-2.0'"),
        ("", {"LICENSE": MIT_TEXT}, "names the licence 'none'"),
        (None, {"LICENSE": MIT_TEXT}, "names the licence 'none'"),
        ("License: MIT\n", {}, "there is no licence file"),
        ("License: MIT\n", {"LICENSE": "for use on Windows only"}, "LICENSE is not the text of the MIT licence"),
        (
            "License: MIT\n",
            {"LICENSE": MIT_TEXT, "LICENSE_DirectML.txt": "for use on Windows only"},
            "LICENSE_DirectML.txt is not the text of the MIT licence",
        ),
    ],
)
def test_any_other_wheel_is_refused_and_nothing_of_it_unpacked(
    tmp_path: Path, release: Release, metadata: str | None, texts: dict[str, str], why: str
) -> None:
    with pytest.raises(LicenceError, match=why):
        unpack(wheel(tmp_path, metadata, **texts), release)
    assert not release.library.exists()


def test_another_library_than_the_recorded_answers_are_of_is_refused(tmp_path: Path, release: Release) -> None:
    with pytest.raises(FetchError, match="SHA-256"):
        unpack(wheel(tmp_path, LICENSE=MIT_TEXT), release._replace(sha256="0" * 64))
    assert not release.library.exists()


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


@pytest.mark.usefixtures("release")
def test_releases_that_are_not_fetched_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["compare", "--level", "5_2"]) == 2
    assert capsys.readouterr().err == "5_2: not fetched; run `python tests/recorder fetch` first\n"
