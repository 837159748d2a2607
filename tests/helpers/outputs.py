"""What has to hold of a command's output, whatever the names and values are that it tells of."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from tests.helpers.command_line import Call
from tests.helpers.paths import ROOT
from tests.helpers.report_pages import parsed

_COMMAND: Final = re.compile(r"::(error|warning|notice) (file=[^,:]*,(line=[0-9]+,col=[0-9]+,)?)?title=[^:,]*::.*")
_ISSUE: Final = re.compile(
    r"##vso\[task\.logissue type=(error|warning);(sourcepath=[^;\]]*;(linenumber=\d+;columnnumber=\d+;)?)?"
    r"code=[^;\]]*;\]"
)
_LINE_OF_PATH: Final = re.compile(r"\s*(::|##)")
_ANYWHERE: Final = re.compile(r"##vso\[|##\[", re.IGNORECASE)
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(?:[^\n]*?[^`\n])\1(?!`)")
"""A code span of Markdown."""
_PAGES: Final = r"(learn\.microsoft|github)\.com|onnx\.ai|onnxruntime\.ai|docs\.openvino\.ai"
"""The hosts of the pages that rules follow."""


@cache
def _junit_schema() -> Any:
    import xmlschema  # which takes a third of a second

    return xmlschema.XMLSchema((ROOT / "tests" / "data" / "junit-10.xsd").read_text())


def require_junit(text: str) -> None:
    """Asserts that each test case has a file and a line, and that without these the XML is valid by Jenkins' schema."""
    suites = ElementTree.fromstring(text)
    for case in suites.iter("testcase"):
        assert case.attrib.pop("file")
        assert int(case.attrib.pop("line")) > 0
    _junit_schema().validate(ElementTree.tostring(suites, encoding="unicode"))


def without_times(text: str) -> str:
    """Return JUnit's XML without the times that a run took."""
    return re.sub(r' time="[0-9.]+"', "", text)


OTHER_FORMATS: Final = ("json", "jsonl", "sarif", "junit", "github", "html")


def outputs_of_check(call: Call, *arguments: str) -> list[str]:
    """Return what a check prints as text, its errors, and what it writes in the other formats; its status is 2."""
    done = call("check", *arguments, "--format=text", *(f"--format={form}:out.{form}" for form in OTHER_FORMATS))
    assert done.exit_code == 2
    reports = [Path(f"out.{form}").read_text("utf-8") for form in OTHER_FORMATS]
    return [done.stdout, done.stderr, *map(without_times, reports)]


def require_safe_log(text: str) -> None:
    """Asserts that a text moves no cursor and is no command to the logs of GitHub's runner or Azure Pipelines."""
    assert all(char.isprintable() or char == "\n" for char in text), ascii(text)
    assert not _ANYWHERE.search(text), ascii(text)
    for line in text.split("\n"):
        assert not _LINE_OF_PATH.match(line), ascii(line)


def require_well_formed(form: str, text: str) -> None:
    """Asserts that an output of ``check`` is safe to print, and what its format says it is."""
    match form:
        case "text" | "concise":
            require_safe_log(text)
        case "json" | "sarif" | "gitlab":
            require_safe_log(text)
            json.loads(text)
        case "jsonl":
            require_safe_log(text)
            for line in text.split("\n")[:-1]:
                json.loads(line)
        case "github":
            for line in text.split("\n")[:-1]:
                assert _COMMAND.fullmatch(line), ascii(line)
                require_safe_log(line.removeprefix("::"))
        case "azure":
            for line in text.split("\n")[:-1]:
                require_safe_log(_ISSUE.sub("told: ", line, count=1))
        case "markdown":
            assert all(char.isprintable() or char == "\n" for char in text), ascii(text)
            assert not _ANYWHERE.search(text), ascii(text)
            rows = [line for line in text.split("\n") if line.startswith("| ")]
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1, ascii(rows)
            assert not any("\\\\|" in row for row in rows), ascii(rows)
            text = re.sub("^    .*$", "", text, flags=re.MULTILINE)
            plain = _CODE.sub("", text)
            plain = re.sub(rf"\\[^\n]|\]\(https://({_PAGES})/[^)]*\)", "", plain)
            assert not re.search(r"[<`@]|://|www\.", plain, re.IGNORECASE), ascii(text)
        case "junit":
            require_safe_log(text)
            ElementTree.fromstring(text)
        case "html":
            found = parsed(text)
            assert len([*found.iter("script")]) <= 1
            for element in found.iter():
                assert not any(name.startswith("on") for name in element.attrib), element
                assert element.tag not in ("img", "iframe")
                assert "javascript:" not in element.get("href", "")
        case _:
            raise NotImplementedError(form)
