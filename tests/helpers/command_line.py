"""The type of the fixtures that call the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from typer.testing import Result

Call: TypeAlias = Callable[..., Result]
