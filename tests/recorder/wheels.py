"""Fetches DirectML: the wheel through pip, then its licence, and only then the one library in it.

Nothing of a wheel is kept but ``libdirectml.so``, in a folder that git ignores.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Final

from tests.recorder.releases import PACKAGE, Release

LIBRARY: Final = "torch_directml/libdirectml.so"
PLATFORMS: Final = ("manylinux2010_x86_64", "manylinux2014_x86_64")
MIT_GRANT: Final = (
    "permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated "
    'documentation files (the "software"), to deal in the software without restriction, including without limitation '
    "the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the software"
)


class FetchError(Exception):
    """A release cannot be had; the message says why."""


class LicenceError(FetchError):
    """A wheel is not under the MIT licence, or does not say under which; nothing of it was unpacked."""


def fetch(release: Release) -> None:
    """Put a release's library into the cache, if it is not there.

    Raises LicenceError for a wheel that is not MIT, FetchError where pip finds none, or another library is in it.
    """
    if release.library.is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        unpack(_download(release, Path(folder)), release)


def unpack(wheel: Path, release: Release) -> None:
    """Put the library of a wheel into the cache, after a look at its licence. Raises what ``fetch`` raises."""
    with zipfile.ZipFile(wheel) as archive:
        require_mit(archive)
        library = archive.read(LIBRARY)
    digest = hashlib.sha256(library).hexdigest()
    if digest != release.sha256:
        raise FetchError(f"{wheel.name}: {LIBRARY} has the SHA-256 {digest}; {release.sha256} was expected")
    release.library.parent.mkdir(parents=True, exist_ok=True)
    release.library.write_bytes(library)


def require_mit(wheel: zipfile.ZipFile) -> None:
    """Raise LicenceError unless a wheel's metadata and each of its licence files say MIT. Unpacks nothing."""
    info = [name for name in wheel.namelist() if re.search(r"\.dist-info(/licenses.*)?/[^/]*$", name)]
    metadata = next((_text(wheel, name) for name in info if name.endswith("/METADATA")), "")
    texts = {name: _text(wheel, name) for name in info if re.search(r"/(LICEN[SC]E|COPYING)[^/]*$", name.upper())}
    header = Parser().parsestr(metadata, headersonly=True)
    named = header.get("License-Expression") or header.get("License") or "none"
    if named.strip() != "MIT":
        raise LicenceError(f"{wheel.filename}: the metadata names the licence {named.strip()!r}; 'MIT' was expected")
    if not texts:
        raise LicenceError(f"{wheel.filename}: there is no licence file; MIT's text was expected")
    for name, text in texts.items():
        if MIT_GRANT not in " ".join(text.lower().split()):
            raise LicenceError(f"{wheel.filename}: {name} is not the text of the MIT licence")


def _text(wheel: zipfile.ZipFile, name: str) -> str:
    return wheel.read(name).decode("utf-8", "replace")


def _download(release: Release, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--implementation", "cp", "--python-version", release.python, "--dest", str(folder)]
    command += [option for platform in PLATFORMS for option in ("--platform", platform)]
    run = subprocess.run(
        [*command, f"{PACKAGE}=={release.version}"], capture_output=True, text=True, timeout=1800, check=False
    )
    wheels = sorted(folder.glob("*.whl"))
    if run.returncode or not wheels:
        raise FetchError(f"pip has no wheel of {PACKAGE} {release.version}:\n{run.stderr.strip()}")
    return wheels[0]
