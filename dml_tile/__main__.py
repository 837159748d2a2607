"""``python -m dml_tile`` and the command ``dml-tile``."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else the caller ignores it
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # so that Ctrl-C ends the imports below without a traceback

from dml_tile.cli.app import main

if __name__ == "__main__":
    main()
