"""The command line: ``dml-tile check``, ``lower``, ``show``, ``run``, ``emit``, ``levels``, ``device``, ``explain``,
``schema``, ``include-dir``, ``cmake-dir``.

Exit status: 0 clean, 1 findings, 2 wrong usage, or a file that cannot be read or written.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperGroup

from dml_tile import __version__
from dml_tile.cli.console import UNREADABLE, complain, ending_by_exceptions, print_stderr
from dml_tile.cli.formats import OutputStream, drop_errors_if_unwritable, drop_output, print_text
from dml_tile.errors import ConfigError, OutputError
from dml_tile.findings import unreadable

_EXIT_STATUS: Final = "Exit status: 0 clean, 1 findings, 2 wrong usage, or a file that cannot be read or written."

_COMMANDS: Final = {
    # the command: its module, and its line in the list of all
    "check": ("check", "Say which operators, and which nodes of models, DirectML would take, and why not the others."),
    "lower": ("tiles", "Find tiles that do the same at an older target."),
    "show": ("tiles", "Draw a tile's tensors as they lie in memory."),
    "run": ("run", "Check a DxDispatch model, then run it."),
    "emit": ("tiles", "Print C++, JSON or Python that builds descriptors."),
    "levels": ("reference", "Show which Windows and which DirectML take which tile."),
    "device": ("reference", "Say whether a DirectML device is created, and what to ship if not."),
    "explain": ("reference", "Print a rule's requirement, or the meaning of a result such as 80070057."),
    "schema": ("reference", "Print the JSON Schema of a format."),
    "include-dir": ("reference", "Print the folder of the C++ headers."),
    "cmake-dir": ("reference", "Print the folder of the headers' CMake package."),
}


_OF_PYDANTIC: Final = "Value error, "
"""The beginning of a message of typer's that pydantic words."""


class _Commands(TyperGroup):
    """Commands that complain of options and arguments in plain words, and of settings and outputs in one line."""

    def invoke(self, ctx: Any) -> Any:
        """Parse the arguments of a command, and run it."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(_OF_PYDANTIC)
            raise
        except (ConfigError, OutputError) as error:
            complain(error.file, [unreadable("", str(error))])
            raise typer.Exit(UNREADABLE) from None


def application(first: str = "") -> typer.Typer:
    """Return the command line; if its ``first`` argument is a command, with that one alone, else with all."""
    app = typer.Typer(
        name="dml-tile",
        cls=_Commands,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in [first] if first in _COMMANDS else _COMMANDS:
        module, line = _COMMANDS[name]
        command = getattr(import_module(f"dml_tile.cli.{module}"), name.replace("-", "_"))
        # a result may be a negative number, which would be an option
        settings = {"ignore_unknown_options": True} if name == "explain" else None
        app.command(short_help=line, epilog=_EXIT_STATUS, context_settings=settings)(command)
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        print_text(f"dml-tile {__version__}\n")
        raise typer.Exit


def _options(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Would DirectML take this operator, this model? Checks any, and runs DML_OPERATOR_TILE, on any machine."""


_INTERRUPTED: Final = 130
"""The exit status after Ctrl-C, as a shell's."""


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # as __main__ has set it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["RUST_BACKTRACE"] = "0"  # jiter would wait for itself for ever where it cannot allocate memory
    os.environ["PYTHONSAFEPATH"] = "1"  # multiprocessing's processes would import from the current folder first
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # importing NumPy would start threads, which nothing here needs
    # the caller may have closed them
    sys.stdout, sys.stderr = (each or Path(os.devnull).open("w") for each in (sys.stdout, sys.stderr))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with ending_by_exceptions():
            try:
                application(*sys.argv[1:2])(obj=sys.argv[1:])
            except (SystemExit, Exception) as ended:
                if isinstance(ended, SystemExit) and ended.code == _INTERRUPTED:
                    drop_output()
                OutputStream(sys.stdout).flush()  # at exit, Python could no longer report that it fails
                raise
            except BaseException:
                drop_output()  # whoever reads it may never do so, and the process is to end
                raise
    except (OSError, OutputError) as error:  # commands handle those of other files
        file = getattr(error, "filename", None) or "standard output"
        print_stderr(f"dml-tile: {file}: {getattr(error, 'strerror', error)}")
        drop_output()
        raise SystemExit(UNREADABLE) from None
    except BaseException as error:
        is_of_jiter = type(error).__name__ == "PanicException"  # raised instead of MemoryError, and exported nowhere
        if not (isinstance(error, MemoryError) or is_of_jiter):
            raise
        error.__context__ = error.__traceback__ = None  # whose frames hold what took the memory
        print_stderr("dml-tile: there is not enough memory")
        drop_output()
        raise SystemExit(UNREADABLE) from None
    finally:
        drop_errors_if_unwritable()
