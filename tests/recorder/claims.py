"""The claims of docs/limits.md, which ``claims.toml`` has with the commands that show them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple


class Claim(NamedTuple):
    """A sentence, and the recorder's command that shows it; ``measured`` is when, and what it printed."""

    says: str
    command: str
    seeds: tuple[int, ...] = ()
    """The command runs once for each, if there are any."""
    measured: str = ""

    def commands(self, most: int | None = None) -> Iterator[list[str]]:
        """Yield the arguments of each run of the command; of one with at most so many, the first alone."""
        name, *arguments = self.command.split()
        if most is not None and "--count" in arguments:
            place = arguments.index("--count") + 1
            arguments[place] = str(min(most, int(arguments[place])))
        for seed in (self.seeds or (None,))[: 1 if most else None]:
            yield [name, *arguments, *([] if seed is None else ["--seed", str(seed)])]

    def row(self) -> str:
        """Return the claim's row of a table in Markdown."""
        seeds = f" --seed {self.seeds[0]}" if self.seeds else ""
        more = ""
        if len(self.seeds) > 1:
            is_range = self.seeds == tuple(range(self.seeds[0], self.seeds[-1] + 1))
            others = f"up to {self.seeds[-1]}" if is_range else " and ".join(map(str, self.seeds[1:]))
            more = f", and with the seed{'s' * (len(self.seeds) > 2 or is_range)} {others}"
        measured = f" ({self.measured})" if self.measured else ""
        return f"| {self.says}{measured} | `python tests/recorder {self.command}{seeds}`{more} |"


_TEXT: Final = (Path(__file__).parent / "claims.toml").read_text(encoding="utf-8")
CLAIMS: Final = tuple(
    Claim(**claim | {"seeds": tuple(claim.get("seeds", ()))}) for claim in tomllib.loads(_TEXT)["claims"]
)
