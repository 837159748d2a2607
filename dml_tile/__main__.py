"""``python -m dml_tile`` and the command ``dml-tile``."""

import contextlib
import gc
import os
import signal
import sys

from dml_tile import __version__

gc.set_threshold(100_000)  # imports, and a large input, make many objects, and few cycles

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else the caller ignores it
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # so that Ctrl-C ends the imports below without a traceback


def main() -> None:
    """Run the command line; ``--version`` alone is printed without importing it."""
    if sys.argv[1:] == ["--version"]:
        with contextlib.suppress(OSError):  # which the command line reports
            os.write(1, f"dml-tile {__version__}\n".encode())
            return
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else a file of each installed package is read
    from dml_tile.cli.app import main as run

    try:
        run()
    finally:
        gc.freeze()  # else Python, when it exits, looks through all objects twice more


if __name__ == "__main__":
    main()
