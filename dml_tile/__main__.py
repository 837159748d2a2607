"""``python -m dml_tile`` is ``dml-tile``."""

from dml_tile.cli.app import main

if __name__ == "__main__":
    main()
