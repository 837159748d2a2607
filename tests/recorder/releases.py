"""The releases of DirectML that run without Windows: those in the Linux wheels of torch-directml."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from dml_tile.directml.enums import FeatureLevel

CACHE: Final = Path(__file__).resolve().parents[2] / ".recorder"
"""Where fetched and built files go; git ignores it."""

PACKAGE: Final = "torch-directml"


class Release(NamedTuple):
    """One DirectML: its highest feature level, and the wheel that carries it."""

    level: str
    version: str
    """Of the wheel; the later ones of the same level carry the same library."""
    python: str
    """The Python that the wheel is for; it is not needed to fetch it."""
    sha256: str
    """Of ``libdirectml.so``: the answers on record are those of these bytes."""

    @property
    def operator_level(self) -> FeatureLevel:
        """The level whose operators it has, and by whose rows it checks them: that which reports 5_0 has 5_1's."""
        return FeatureLevel.parse("5_1" if self.level == "5_0" else self.level)

    @property
    def library(self) -> Path:
        """Where ``libdirectml.so`` is, once it is fetched."""
        return CACHE / self.level / "libdirectml.so"


RELEASES: Final = (
    Release("5_0", "0.1.13.dev221206", "3.8", "ef8da1084e3203b09804ba4c581cc0c91f031ca91f95c06a9cc700545ab1c669"),
    Release("5_2", "0.2.0.dev230426", "3.8", "d717b5da5d37ae6016dff98ea2632380222d4dfbf6aafd76d7cb02e4e2bd8eec"),
    Release("6_2", "0.2.5.dev240914", "3.10", "fd54a8c578630f62a31d6d971d1f7e758e8497df8afccefe5efb1517d791692c"),
)
RELEASES_OF_LEVELS: Final = {release.level: release for release in RELEASES}
