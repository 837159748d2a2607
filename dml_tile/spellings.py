"""The spellings of DirectML's enumerators and flags in JSON, as pydantic annotations.

Read: the full C name, its suffix alone, or the integer; flags also as a list, ORed. Written: the full C name, or the
integer where there is no name. A known value becomes the enumeration's member, an unknown one stays an int.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from functools import reduce
from operator import or_
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dml_tile.enums import UINT_MAX
from dml_tile.text import did_you_mean


class Enumerator:
    """Annotation of a C enumeration's field, as in ``Annotated[X | int, Enumerator(X, "DML_…_")]``."""

    def __init__(self, enum: type[IntEnum | IntFlag], prefix: str) -> None:
        self.prefix = prefix
        self.names = list(enum.__members__)
        self.c_names = {int(member): f"{prefix}{name}" for name, member in enum.__members__.items()}
        self._values = _Values({int(member): member for member in enum.__members__.values()})
        for name, member in enum.__members__.items():
            self._values[name] = self._values[f"{prefix}{name}"] = member
        self._values.complaint = f"expected one of {', '.join(self.names)}, with or without {prefix} before it"

    def read(self, spelling: str | int) -> int:
        """The value of one spelling. Raises PydanticCustomError, a ValueError, for an unknown name."""
        return self._values[spelling]

    def write(self, value: int) -> str | int:
        """The full C name of a value, or the value itself where it has none."""
        return self.c_names.get(value, value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        spelling = core_schema.union_schema(
            [core_schema.str_schema(strict=True), core_schema.int_schema(strict=True, ge=0, le=UINT_MAX)],
            mode="left_to_right",
            custom_error_type="enumerator",
            custom_error_message=f"Input should be a name or an integer from 0 to {UINT_MAX}; {self._values.complaint}",
        )
        # A dict's own lookup is the cheapest call that pydantic's core can make.
        looked_up = core_schema.no_info_plain_validator_function(self._values.__getitem__)
        return core_schema.chain_schema(
            [spelling, looked_up],
            serialization=core_schema.plain_serializer_function_ser_schema(self.write, when_used="json"),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"enum": self._json_names()}, {"type": "integer", "minimum": 0, "maximum": UINT_MAX}]}

    def _json_names(self) -> list[str]:
        return [*self.c_names.values(), *self.names]


class Flags(Enumerator):
    """Annotation of a C flags field: one spelling as for an enumeration, or a list of them."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        one = super().__get_pydantic_core_schema__(source, handler)
        ored = core_schema.no_info_plain_validator_function(lambda values: self.read(reduce(or_, values, 0)))
        return core_schema.union_schema(
            [one, core_schema.chain_schema([core_schema.list_schema(one), ored])],
            mode="left_to_right",
            custom_error_type="flags",
            custom_error_message=f"Input should be a name, an integer or a list of them; {self._values.complaint}",
            serialization=core_schema.plain_serializer_function_ser_schema(self.write, when_used="json"),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        one = super().__get_pydantic_json_schema__(schema, handler)
        return {"anyOf": [*one["anyOf"], {"type": "array", "items": one}]}


class _Values(dict[str | int, int]):
    complaint = ""

    def __missing__(self, spelling: str | int) -> int:
        if isinstance(spelling, int):
            return spelling
        meant = did_you_mean(spelling.upper(), [name for name in self if isinstance(name, str)])
        raise PydanticCustomError(
            "enumerator",
            "No enumerator has this name{meant}; {complaint}",
            {"meant": f" ({meant})" if meant else "", "complaint": self.complaint},
        )
