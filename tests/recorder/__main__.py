"""The recorder's command line: ``python tests/recorder fetch|compare|operators|crashes|…``.

It exits with 0, with 1 where DirectML and the emulator disagree or an answer is not what was recorded, with 2 where
something is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:] = [str(ROOT), *(entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent)]

from tests.recorder import commands  # noqa: E402 - the root is on the path only now
from tests.recorder.claims import CLAIMS  # noqa: E402
from tests.recorder.record import RECORDED  # noqa: E402
from tests.recorder.releases import RELEASES_OF_LEVELS, Release  # noqa: E402
from tests.recorder.runtime import STAND_IN  # noqa: E402
from tests.recorder.stand_in import BuildError, build  # noqa: E402
from tests.recorder.wheels import FetchError  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = _parser().parse_args(arguments)
    releases = [RELEASES_OF_LEVELS[level] for level in options.level or RELEASES_OF_LEVELS]
    try:
        if options.command != "fetch":
            if why := _why_not(releases):
                raise FetchError(why)
            build(STAND_IN)  # before processes do, all at once
        if options.command == "claims":
            return max(main(arguments) for claim in CLAIMS for arguments in claim.commands(options.count))
        run: Callable[[Sequence[Release], argparse.Namespace], int] = getattr(commands, options.command)
        return run(releases, options)
    except (BuildError, FetchError) as error:
        print(error, file=sys.stderr)
        return 2


def _why_not(releases: Sequence[Release]) -> str | None:
    absent = [release.level for release in releases if not release.library.is_file()]
    return f"{', '.join(absent)}: not fetched; run `python tests/recorder fetch` first" if absent else None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a number from 1 on was expected, not {text!r}")
    return int(text)


def _recorded_file(text: str) -> str:
    name = Path(text).name
    if name not in RECORDED:
        raise argparse.ArgumentTypeError(f"{text!r} is not recorded here; expected one of {', '.join(RECORDED)}")
    return name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python tests/recorder", description="Ask Microsoft's own DirectML.")
    parser.set_defaults(level=None)
    added = parser.add_subparsers(dest="command", required=True)
    claiming = added.add_parser("claims", help="Run the commands in the table of docs/limits.md.")
    claiming.add_argument("--count", type=_positive, help="the most of each (default: as many as the page says)")
    for name in ("fetch", "compare", "operators", "described", "edits", "crashes", "lives", "graphs", "ask", "record"):
        command = added.add_parser(name, help=getattr(commands, name).__doc__.partition("\n")[0])
        if name not in ("crashes", "record"):
            command.add_argument("--level", action="append", choices=RELEASES_OF_LEVELS, help="a release, or several")
        if name in ("compare", "operators", "described", "edits", "lives", "graphs"):
            command.add_argument("--count", type=_positive, default=20_000, help="how many (default: %(default)s)")
            command.add_argument("--seed", type=int, default=0, help="which ones (default: %(default)s)")
        if name in ("compare", "operators", "lives", "graphs"):
            command.add_argument("--workers", type=_positive, default=os.cpu_count(), help="how many processes")
        if name == "operators":
            instead = command.add_mutually_exclusive_group()
            instead.add_argument("--sweep", action="store_true", help="each data type and dimension count instead")
            instead.add_argument("--limits", action="store_true", help="with fields at their limits or one beyond")
        if name == "ask":
            command.add_argument("file", nargs="+", help="descriptors, as dml-tile check reads them")
        if name == "record":
            command.add_argument("file", nargs="*", type=_recorded_file, help="files of tests/data (default: all)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
