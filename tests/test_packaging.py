"""What is published: the description, the files of the sdist, the forms of the repository, one version everywhere."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import dml_tile
from docs.generator.addresses import ADDRESS, REPEATED_IN, REVISION, with_addresses
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


@pytest.mark.parametrize("project", [{}, {"urls": {"Source": "https://github.com/OWNER/dml_tile"}}])
def test_without_an_address_no_link_is_left(project: dict[str, Any]) -> None:
    text = description(**project)
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
    cmake = ROOT / "dml_tile" / "share" / "cmake" / "dml_tile" / "dml_tileConfigVersion.cmake"
    assert f'set(PACKAGE_VERSION "{version}")' in cmake.read_text(), "dml_tileConfigVersion.cmake"


def test_the_changelog_begins_with_this_version_and_sorts_what_each_brings() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\d+\.\d+\.\d+) \((?:unreleased|\d{4}-\d\d-\d\d)\)$", text, re.MULTILINE)
    assert versions == ["0.2.0", "0.1.0"] == [PROJECT["project"]["version"], "0.1.0"]
    for section in text.split("\n## ")[1:]:
        kinds = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert kinds == [kind for kind in ("Added", "Changed", "Fixed") if kind in kinds], section[:20]
    start = text.partition("## 0.2.0")[2].partition("###")[0]
    assert re.findall(r"^(\d)\. ", start, re.MULTILINE) == [*"12345"]


def test_no_author_is_made_up_and_all_addresses_are_pyproject_toml_s() -> None:
    """A publisher fills in the project's address and authors (CONTRIBUTING.md)."""
    assert not {"authors", "maintainers"} & PROJECT["project"].keys()
    assert all(url.startswith(f"{ADDRESS}/") for url in PROJECT["project"]["urls"].values() if url != ADDRESS)
    for name in ("action.yml", ".pre-commit-hooks.yaml"):
        assert "stands in pyproject.toml, under [project.urls]" in (ROOT / name).read_text()


@pytest.mark.parametrize("name", REPEATED_IN)
def test_a_file_repeats_the_address_of_pyproject_toml(name: str) -> None:
    text = (ROOT / name).read_text()
    assert with_addresses(text) == text, "run `python -m docs.generate`"
    filled = with_addresses(text, "https://github.com/someone/dml_tile", "v1.2.3")
    assert filled != text
    repeated = [line for line in filled.splitlines() if re.search("OWNER|REVISION", line)]
    assert not [line for line in repeated if "# OWNER: " not in line]
    assert with_addresses(filled) == text


@pytest.mark.long
def test_the_pages_are_built_as_a_site_whose_links_lead_on(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="pip install '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", ".mkdocs.yml", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} - {"README"} == {
        path.parent.name for path in tmp_path.glob("*/index.html")
    }
    assert f'href="{ADDRESS}/blob/{REVISION}/CONTRIBUTING.md"' in (tmp_path / "index.html").read_text("utf-8")
    for page in tmp_path.rglob("*.html"):
        assert 'href="../../' not in page.read_text("utf-8"), "links out of docs/ lead into the repository"
        assert not re.search(r"<(script|link|img)[^>]* (src|href)=\"https?:", page.read_text("utf-8")), page


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
