"""What is published: the description, the files of the sdist, the forms of the repository, one version everywhere."""

from __future__ import annotations

import re
import runpy
import tomllib
from typing import Any

import pytest
import yaml

import dml_tile
from tests.helpers.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
README = (ROOT / "README.md").read_text()
LINKS = re.findall(r"\]\((?!https://)([^)\s#]+)", README)
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def description(**project: Any) -> str:
    """Return what the build makes of README."""
    metadata: dict[str, Any] = {"version": "1.2.3"} | project
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["DescriptionHook"]
    hook(str(ROOT), {}).update(metadata)
    assert metadata["readme"]["content-type"] == "text/markdown"
    return str(metadata["readme"]["text"])


def test_links_of_the_description_lead_into_the_repository() -> None:
    text = description(urls={"Source": "https://example.org/o/dml_tile"})
    assert "](https://example.org/o/dml_tile/blob/v1.2.3/docs/testing.md)" in text
    assert "](https://example.org/o/dml_tile/raw/v1.2.3/docs/images/terminal.svg)" in text
    assert not re.search(r"\]\((?!https://)", text)
    assert text.count("](") == README.count("](")


def test_without_an_address_no_link_is_left() -> None:
    text = description()
    assert not re.search(r"\]\((?!https://)", text)
    assert "![" not in text
    assert "pytest plugin" in text


def test_the_sdist_has_what_the_readme_names() -> None:
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    for name in (*LINKS, "pyproject.toml", "tests", "examples/tile.json", "hatch_build.py", ".ci/run", "action.yml"):
        assert (ROOT / name).exists()
        assert name == "pyproject.toml" or any(f"/{name}/".startswith(f"{path}/") for path in included), name
    for path in included:
        assert (ROOT / path.removeprefix("/")).exists(), path


def test_findings_stay_out_of_the_wheel_the_sdist_and_ci_and_are_all_listed() -> None:
    folder = ROOT / "findings"
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["dml_tile"]}
    assert not [path for path in targets["sdist"]["include"] if path.startswith("/findings")]
    ci = [ROOT / "action.yml", *(path for name in (".ci", ".github") for path in (ROOT / name).rglob("*"))]
    assert not [path for path in ci if path.is_file() and "findings/" in path.read_text()]
    scripts = sorted(path.name for path in folder.glob("*.sh"))
    assert re.findall(r"^\| `(\w+\.sh)` \|", (folder / "README.md").read_text(), re.MULTILINE) == scripts
    assert len(scripts) >= 6
    for name in scripts:
        text = (folder / name).read_text()
        head = text.partition("\nset -euo pipefail\n")[0]
        assert text.startswith("#!/usr/bin/env bash\n# "), name
        assert all(f"\n# {word}: " in head for word in ("Behaviour", "One would have guessed", "Concerns")), name
        assert "dml_tile" not in text, name


def test_there_is_a_classifier_for_each_version_of_python() -> None:
    versions = re.findall(r"Python :: 3\.(\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert versions == [str(minor) for minor in range(int(versions[0]), int(versions[-1]) + 1)]
    assert PROJECT["project"]["requires-python"] == f">=3.{versions[0]}"


def test_the_version_is_the_same_everywhere() -> None:
    version = PROJECT["project"]["version"]
    assert dml_tile.__version__ == version
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == version
    assert citation["license"] == PROJECT["project"]["license"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_no_address_is_made_up() -> None:
    """A publisher fills in the project's addresses and authors (CONTRIBUTING.md)."""
    assert not {"authors", "maintainers", "urls"} & PROJECT["project"].keys()


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_asks_for_the_version_and_the_descriptor(path: Any) -> None:
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= form.keys()
    asked = " ".join(f"{field['attributes']}" for field in form["body"])
    assert "`dml-tile --version`" in asked
    assert "descriptor" in asked
    assert len({field["id"] for field in form["body"]}) == len(form["body"])


def test_the_commit_hooks_are_ci_s() -> None:
    ci = (ROOT / ".ci" / "run").read_text()
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in local["hooks"]:
        assert f"/{hook['entry'].split()[0]}" in ci
