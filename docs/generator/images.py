"""The images of the documentation: tiles as ``dml-tile show`` draws them, plots, and the report page in a browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from typer.testing import CliRunner

from dml_tile.cli.app import application
from docs.generator.plan_picture import plan_picture
from docs.generator.speed_plot import speed_plot
from docs.generator.terminal_picture import first_commands, terminal_picture

DRAWN: Final = {f"{name}.svg": f"examples/{name}.json" for name in ("strided", "broadcast", "overlap")}
"""The images of tiles, which are text, with the descriptors that they show."""

_REPORT: Final = "report.png"
_SIZE: Final = "1100,1060"
_TARGETS: Final = "windows-11-23h2,windows-11-24h2,onnxruntime-directml-1.24.4"


def drawn(source: str) -> str:
    """The image of a descriptor's memory."""
    with TemporaryDirectory() as folder:
        image = Path(folder) / "tile.svg"
        CliRunner().invoke(application(), ["show", source, "--output", str(image)], catch_exceptions=False)
        return image.read_text("utf-8")


def write_images(folder: Path) -> None:
    """Write all images; that of the report page only where there is a chromium to draw it."""
    for name, source in DRAWN.items():
        (folder / name).write_text(drawn(source), "utf-8")
    plot = speed_plot((folder.parent / "speed.md").read_text("utf-8"))
    (folder / "speed.svg").write_text(plot, "utf-8")
    (folder / "plan.svg").write_text(plan_picture(), "utf-8")
    readme = (folder.parents[1] / "README.md").read_text("utf-8")
    (folder / "terminal.svg").write_text(terminal_picture(first_commands(readme)), "utf-8")
    if browser := shutil.which("chromium"):
        _write_report(browser, folder / _REPORT)


def _write_report(browser: str, image: Path) -> None:
    with TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        models = ["examples/models/classifier.onnx", "examples/models/two_tiles.onnx"]
        CliRunner().invoke(
            application(), ["check", *models, "--via", "ort", "-t", _TARGETS, "--format", f"html:{page}"]
        )
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={_SIZE}")
        profile = f"--user-data-dir={folder}/profile"
        command = [browser, *options, profile, f"--screenshot={image}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603
