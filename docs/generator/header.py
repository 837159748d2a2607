"""dml_tile/directml/header.txt: the operators, fields and enumerations of DirectML.h, one line for each.

    python -m docs.generator.header DirectX-Headers/include/directx/DirectML.h

``dml_tile.directml.operators`` says how to read the lines; the C++ headers have the same strings. Tests hold them
to the header where DML_TILE_TESTS_DIRECTX_HEADERS names the folder ``include``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from dml_tile.directml.operators import HEADER

KINDS: Final = {
    "DML_TENSOR_DESC*": "t",
    "DML_TENSOR_DESC[]": "T",
    "DML_OPERATOR_DESC*": "o",
    "DML_OPERATOR_DESC[]": "O",
    "UINT": "u",
    "INT": "i",
    "FLOAT": "f",
    "float": "f",
    "BOOL": "b",
    "UINT[]": "U",
    "INT[]": "I",
    "FLOAT[]": "F",
    "DML_SCALE_BIAS*": "s",
    "DML_SIZE_2D": "z",
    "DML_SCALAR_UNION": "x",
}
"""Letters of the types of fields; an array's length is another field. Enumerators are ``e``."""

_PREFIXES: Final = {"DML_OPERATOR_TYPE": "DML_OPERATOR"}
"""The prefixes of enumerators, where they are not the enumeration's name."""


class _Member(NamedTuple):
    text: str
    level: str


class Header:
    """The enumerations and structs of DirectML.h: their lines, each with the feature level that guards it."""

    def __init__(self, text: str) -> None:
        self._members: dict[str, list[_Member]] = {}
        current: list[_Member] = []
        for level, line in _guarded(text.splitlines()):
            code = line.partition("//")[0].strip()
            if opened := re.fullmatch(r"(?:enum|struct) (DML_\w+)", code):
                current = self._members.setdefault(opened[1], [])
            elif code == "};":
                current = []
            elif code not in ("", "{"):
                current.append(_Member(code, level))

    def enumerators(self, enumeration: str) -> Iterator[tuple[str, int, str]]:
        """Yield the name without its prefix, the value and the level of each enumerator; aliases come last."""
        values: dict[str, int] = {}
        for text, level in self._members[enumeration]:
            name, _, given = (part.strip(" ,") for part in text.partition("="))
            values[name] = (
                values[given] if given in values else int(given, 0) if given else max(values.values(), default=-1) + 1
            )
            yield name.removeprefix(f"{_PREFIXES.get(enumeration, enumeration)}_"), values[name], level

    def fields(self, operator: str) -> str | None:
        """Return the fields of an operator's struct as one string; None for an alias, which has no struct."""
        struct = f"DML_{operator}_OPERATOR_DESC"
        if struct not in self._members:
            return None
        parsed = [_parsed(member.text) for member in self._members[struct]]
        names = [name for name, _, _ in parsed]
        return ", ".join(self._field(*field, names) for field in parsed)

    def _field(self, name: str, type_: str, annotations: str, names: list[str]) -> str:
        optional = "?" if "_Maybenull_" in annotations or "_opt_" in annotations else ""
        if count := re.search(r"_Field_size_\w*\((\w+)\)", annotations):
            return f"{KINDS[type_.replace('*', '[]')]}{names.index(count[1])}{optional} {name}"
        if type_ in self._members and type_ not in KINDS:
            return f"e {name}:{type_.removeprefix('DML_')}"
        return f"{KINDS[type_]}{optional} {name}"


def _guarded(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield lines, each with the feature level of its innermost guard."""
    guards: list[str | None] = []
    for line in lines:
        if re.match(r"\s*#\s*if", line):
            level = re.search(r"DML_TARGET_VERSION >= 0x([0-9])([0-9])00", line)
            guards.append(level and f"{level[1]}_{level[2]}")
        elif re.match(r"\s*#\s*endif", line):
            guards.pop()
        elif not line.lstrip().startswith("#"):
            yield next(filter(None, reversed(guards)), "1_0"), line


def _parsed(declaration: str) -> tuple[str, str, str]:
    """Return the name, the type and the annotations of a struct's member."""
    found = re.fullmatch(r"((?:_\w+(?:\(.*?\))? )*)(?:const )?(\w+\*?) (\w+);", declaration)
    assert found, declaration
    return found[3], found[2], found[1]


def header_lines(text: str) -> list[str]:
    """Return the lines of header.txt: the operators by their values, then the enumerations of their fields."""
    header = Header(text)
    operators, used = [], set()
    for name, value, level in sorted(header.enumerators("DML_OPERATOR_TYPE"), key=lambda each: each[1]):
        fields = header.fields(name)
        if fields is not None:
            operators.append(f"{value} {name} {level}: {fields}")
            used |= set(re.findall(r":(\w+)", fields))
    enumerations = []
    for enumeration in sorted(used):
        words: list[str] = []
        last = ""
        for name, _, level in header.enumerators(f"DML_{enumeration}"):
            words += [f"{level}:", name] if level != last else [name]
            last = level
        enumerations.append(f"{enumeration} {' '.join(words)}")
    source = (
        "From microsoft/DirectX-Headers, include/directx/DirectML.h; python -m docs.generator.header writes this file."
    )
    return [f"# {source}", *operators, "", *enumerations]


def main() -> None:
    lines = header_lines(Path(sys.argv[1]).read_text(encoding="utf-8"))
    HEADER.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
