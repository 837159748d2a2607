"""``python -m dml_tile`` and the command ``dml-tile``."""

import contextlib
import gc
import os
import signal
import sys
from types import ModuleType

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
    if os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__") == "__all__":  # else each package's files are read
        no_plugins = ModuleType("pydantic.plugin._loader")  # which imports email and more before it asks the variable
        vars(no_plugins)["get_plugins"] = tuple
        sys.modules[no_plugins.__name__] = no_plugins
    from dml_tile.cli.app import main as run

    try:
        run()
    finally:
        gc.freeze()  # else Python, when it exits, looks through all objects twice more


if __name__ == "__main__":
    main()
