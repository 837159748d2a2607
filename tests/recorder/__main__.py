"""The recorder's command line: ``python tests/recorder fetch|compare|operators|crashes|…``.

fetch    puts the releases of DirectML into a folder that git ignores, after a look at their licence
compare  asks DirectML and the emulator about random descriptors, and shows where they disagree
operators  asks both about random descriptors of all operators, and shows how much each kind of fault is found
described  asks both about what ONNX Runtime's DirectML provider creates of onnx's node tests and of random nodes
crashes  asks at which null fields DirectML ends the process, and writes the table of them anew
lives    makes the same random calls of devices of both, and shows where they differ
graphs   compiles random graphs of tiles and of any operators with both
claims   runs the commands in the table of docs/limits.md
ask      shows what the releases say to descriptors in files, beside what ``check`` says
record   asks every question in tests/data again, and writes the answers anew

It exits with 0, with 1 where DirectML and the emulator disagree or an answer is not what was recorded, with 2 where
something is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:] = [str(ROOT), *(entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent)]

from tests.recorder.claims import CLAIMS  # noqa: E402 - the root is on the path only now
from tests.recorder.commands import ask, compare, crashes, described, fetch, lives, operators, record  # noqa: E402
from tests.recorder.record import RECORDED  # noqa: E402
from tests.recorder.releases import RELEASES_OF_LEVELS, Release  # noqa: E402
from tests.recorder.runtime import STAND_IN  # noqa: E402
from tests.recorder.stand_in import BuildError, build  # noqa: E402
from tests.recorder.wheels import FetchError  # noqa: E402


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = _parser().parse_args(arguments)
    releases = [RELEASES_OF_LEVELS[level] for level in options.level or RELEASES_OF_LEVELS]
    if options.command != "fetch" and (why := _why_not(releases)):
        print(why, file=sys.stderr)
        return 2
    try:
        if options.command != "fetch":
            build(STAND_IN)  # before processes do, all at once
        match options.command:
            case "fetch":
                return fetch(releases)
            case "compare":
                return compare(releases, options)
            case "operators":
                return operators(releases, options)
            case "described":
                return described(releases, options)
            case "crashes":
                return crashes()
            case "lives" | "graphs":
                return lives(releases, options)
            case "claims":
                return max(main(arguments) for claim in CLAIMS for arguments in claim.commands(options.count))
            case "ask":
                return ask(releases, options.file)
        return record(options.file)
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
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="fetch the releases through pip, if their licence is MIT")
    comparing = commands.add_parser("compare", help="ask about random descriptors, and compare with the emulator")
    all_operators = commands.add_parser("operators", help="ask about random descriptors of all operators, and compare")
    instead = all_operators.add_mutually_exclusive_group()
    instead.add_argument("--sweep", action="store_true", help="each data type and dimension count instead")
    instead.add_argument("--limits", action="store_true", help="with fields at their limits or one beyond")
    crashing = commands.add_parser("crashes", help="write the table of null fields that end the process anew")
    graphing = commands.add_parser("graphs", help="compile random graphs, and compare with the emulator")
    living = commands.add_parser("lives", help="make random calls of devices, and compare with the emulator")
    describing = commands.add_parser("described", help="ask about what ONNX Runtime creates of nodes, and compare")
    for command in (comparing, all_operators, describing, living, graphing):
        command.add_argument("--count", type=_positive, default=20_000, help="how many (default: %(default)s)")
        command.add_argument("--seed", type=int, default=0, help="which ones (default: %(default)s)")
        command.add_argument(
            "--show", type=int, default=5, help="how many disagreements to show (default: %(default)s)"
        )
    for command in (comparing, all_operators, living, graphing):
        command.add_argument(
            "--workers",
            type=_positive,
            default=os.cpu_count() or 1,
            help="how many processes (default: one for each CPU)",
        )
    claiming = commands.add_parser("claims", help="run the commands in the table of docs/limits.md")
    claiming.add_argument("--count", type=_positive, help="the most of each (default: as many as the page says)")
    asking = commands.add_parser("ask", help="ask about descriptors in files, as dml-tile check reads them")
    asking.add_argument("file", nargs="+")
    recording = commands.add_parser("record", help="write the recorded answers anew")
    recording.add_argument("file", nargs="*", type=_recorded_file, help="files of tests/data (default: all)")
    for command in (fetching, comparing, all_operators, describing, living, graphing, asking):
        command.add_argument("--level", action="append", choices=RELEASES_OF_LEVELS, help="a release, or several")
    for command in (recording, claiming, crashing):
        command.set_defaults(level=None)
    return parser


if __name__ == "__main__":
    sys.exit(main())
