"""dml_tile/include/dml_tile/operator_fields.h: the strings of ``header.txt`` for C++."""

from __future__ import annotations

from textwrap import fill
from typing import Final

from dml_tile.directml.operators import operators

_TEXT: Final = """\
// dml_tile/operator_fields.h: the fields of each operator's struct, as DirectML.h has them. `python -m docs.generate`
// writes it, from dml_tile/directml/header.txt; dml_tile/directml/operators.py says how to read the strings.
#ifndef DML_TILE_OPERATOR_FIELDS_H
#define DML_TILE_OPERATOR_FIELDS_H

#include <cstdint>

namespace dml_tile_fields
{{

// The fields of an operator; null for a type that DirectML.h of {newest} does not have.
inline const char* of_operator(std::uint32_t type) noexcept
{{
    static const char* const strings[] = {{
{strings}
    }};
    static const unsigned char numbers[] = {{  // of the strings, by type
{numbers}
    }};
    return type < sizeof numbers && type != 0 ? strings[numbers[type]] : nullptr;
}}

}}  // namespace dml_tile_fields

#endif  // DML_TILE_OPERATOR_FIELDS_H
"""
_WIDTH: Final = 200


def cpp_fields() -> str:
    """Return the text of the header: each string once, and which one each operator has."""
    strings = list(dict.fromkeys(operator.fields_text for operator in operators().values()))
    numbers = [0, *(strings.index(operator.fields_text) for operator in operators().values())]
    assert [*operators()] == [*range(1, len(numbers))], "types are numbered without gaps"
    lines = [""]
    for string in strings:
        literal = f'"{string}",'
        if lines[-1] and len(lines[-1]) + len(literal) > _WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {literal}".lstrip()
    return _TEXT.format(
        newest=max(operator.level for operator in operators().values()).short,
        strings="\n".join(f"        {line}" for line in lines),
        numbers=fill(", ".join(map(str, numbers)), 120, initial_indent=" " * 8, subsequent_indent=" " * 8),
    )
