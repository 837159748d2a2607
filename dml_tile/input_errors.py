"""Messages about an input that cannot be read, in the words of its format and with the C names of fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from dml_tile.descriptors.structs import c_names
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc, TileOperatorDesc, c_path
from dml_tile.findings import Finding, unreadable
from dml_tile.text import did_you_mean, json_pointer, nearest, plural, shown

_Part = TypeVar("_Part")
KeysAt: TypeAlias = Callable[[Sequence[str | int]], Sequence[str]]

C_NAMES: Final = tuple(c_names(TileOperatorDesc, TensorDesc, BufferTensorDesc).values())

MAX_PROBLEMS: Final = 10
MAX_PROBLEMS_COUNTED: Final = 10_000
"""An input with this many problems is not read on."""

MAX_PROBLEMS_OF_A_SOURCE: Final = 100
"""The most unreadable parts of a source that are reported one by one."""

MAX_KEYS: Final = 64
"""The most keys of an object that is read; no format has as many, and each unknown key is an error."""

_MANY_KEYS: Final = f"{{}} keys were provided; at most {MAX_KEYS} were expected"

MAX_LISTED_NAMES: Final = 16

_EXPECTED: Final = {
    # pydantic's kind of error: the expected value, in the words of JSON
    "bool_type": "true or false",
    "dict_type": "an object",
    "float32": "{expected}",
    "greater_than_equal": "at least {ge}",
    "int_type": "an integer",
    "less_than_equal": "at most {le}",
    "list_type": "an array",
    "literal_error": "{expected}",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "scalar": "{expected}",
    "string_too_short": "a string that is not empty",
    "string_type": "a string",
    "too_long": "a length of at most {max_length}",
    "too_short": "an array that is not empty",
    "tuple_type": "an array",
    "unsigned": "an integer from 0 to {maximum}",
    "union_tag_not_found": "an object with {discriminator}",
}


class Record(BaseModel):
    """An object of JSON in which unknown keys are errors."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _require_few_keys(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(data) > MAX_KEYS:
            raise PydanticCustomError("required", _MANY_KEYS.format(len(data)))
        return data


def too_many_keys(data: Any, path: tuple[str | int, ...] = ()) -> str:
    """Return the error about the first object of too many keys, at any depth; empty if there is none."""
    if isinstance(data, dict) and len(data) > MAX_KEYS:
        return ": ".join(filter(None, (c_path(path), _MANY_KEYS.format(len(data)))))
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, (dict, list)) and (crowded := too_many_keys(value, (*path, key))):
            return crowded
    return ""


def limited_problems(parts: Iterable[_Part | Finding]) -> Iterator[_Part | Finding]:
    """Yield MAX_PROBLEMS_OF_A_SOURCE problems at most, and count the others until they are too many."""
    problems = 0
    for part in parts:
        problems += isinstance(part, Finding)
        if problems <= MAX_PROBLEMS_OF_A_SOURCE or not isinstance(part, Finding):
            yield part
        elif problems > MAX_PROBLEMS_COUNTED:
            more = MAX_PROBLEMS_COUNTED - MAX_PROBLEMS_OF_A_SOURCE
            yield unreadable("", f"and more than {more} more problems; the rest is not read")
            return
    if problems > MAX_PROBLEMS_OF_A_SOURCE:
        yield unreadable("", f"and {plural(problems - MAX_PROBLEMS_OF_A_SOURCE, 'more problem')}")


@dataclass(eq=False)
class ProblemList:
    """Collects the problems of an input: keeps the first MAX_PROBLEMS, and counts the others.

    ``data`` is the JSON value that was read and ``pointer`` its place in the source. ``names`` are the known fields:
    an unknown key's message suggests the nearest known one, or lists all if there are few. ``keys_at`` returns the
    known keys of the object at a path; without it, they are ``names``. ``sections`` are keys of objects whose members
    a problem's pointer names already, so that its message does not.
    """

    data: Any
    pointer: str = ""
    names: Sequence[str] = C_NAMES
    keys_at: KeysAt | None = None
    sections: Collection[str] = ()
    _problems: list[Finding] = field(default_factory=list, init=False)
    _more: int = field(default=0, init=False)

    def add(self, problem: Finding) -> None:
        """Add one problem."""
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)
        else:
            self._more += 1

    def add_error(self, error: ValidationError, location: tuple[str | int, ...] = ()) -> None:
        """Add the problems of a pydantic error on the value at a location."""
        if len(self._problems) == MAX_PROBLEMS:
            self._more += error.error_count()
            return
        keys_at = self.keys_at or (lambda path: self.names)
        found = [(details, *self._followed(details, location)) for details in error.errors(include_url=False)]
        unknown = [path for details, _, path in found if details["type"] == "extra_forbidden"]
        misspelt = {(*path[:-1], *nearest(str(path[-1]), keys_at(path[:-1]))) for path in unknown[:MAX_PROBLEMS]}
        relevant = [entry for entry in found if entry[0]["type"] != "missing" or tuple(entry[2]) not in misspelt]
        room = MAX_PROBLEMS - len(self._problems)
        for details, steps, path in relevant[:room]:
            keys = keys_at(path[:-1]) if details["type"] == "extra_forbidden" else ()
            if path and path[0] in self.sections:
                path = path[2:] or path[-1:]
            self.add(unreadable(self.pointer + json_pointer(steps), _described(details, path, keys, self.names)))
        self._more += max(0, len(relevant) - room)

    def _followed(
        self, details: ErrorDetails, location: tuple[str | int, ...]
    ) -> tuple[list[str | int], list[str | int]]:
        """Return the steps to the wrong value, and the path to the field, which may be missing."""
        data, steps, rest = self.data, list[str | int](), list[str | int]()
        for step in location + details["loc"]:
            name = str(step)
            known = data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
            spellings = (step, *(change(name[:1]) + name[1:] for change in (str.upper, str.lower)))
            key = next((key for key in spellings if key in known), None)
            if key is None:
                rest.append(step)
            else:
                data, rest = data[key], []
                steps.append(key)
        return steps, [*steps, *rest[-1:]] if details["type"] == "missing" else steps

    @property
    def is_full(self) -> bool:
        """True once MAX_PROBLEMS_COUNTED problems are found; the rest of the input need not be read."""
        return self._more >= MAX_PROBLEMS_COUNTED

    def reported(self) -> list[Finding]:
        """Return the problems that are kept, and how many more there are."""
        if not self._more:
            return self._problems
        more = f"at least {MAX_PROBLEMS_COUNTED} more problems" if self.is_full else plural(self._more, "more problem")
        return [*self._problems, unreadable(self.pointer, f"and {more}")]


def problems_of(
    error: ValidationError, data: Any, pointer: str = "", names: Sequence[str] = C_NAMES, keys_at: KeysAt | None = None
) -> list[Finding]:
    """Return the problems of a pydantic error; the parameters are those of ProblemList."""
    problems = ProblemList(data, pointer, names, keys_at)
    problems.add_error(error)
    return problems.reported()


def _described(details: ErrorDetails, path: Sequence[str | int], keys: Sequence[str], names: Sequence[str]) -> str:
    field = c_path(path) or "the description"
    match details["type"]:
        case "missing":
            return f"{field} is missing"
        case "extra_forbidden":
            if path[-1] in names:
                return f"{field} is unknown here"
            known = f"the keys are {', '.join(keys)}" if len(keys) <= MAX_LISTED_NAMES else ""
            meant = did_you_mean(str(path[-1]), keys, known)
            return f"{field} is unknown{f' ({meant})' if meant else ''}"
        case "required":
            return details["msg"]
        case "union_tag_invalid":
            named, tag, tags = (details["ctx"][key] for key in ("discriminator", "tag", "expected_tags"))
            *others, last = tags.replace("'", "").split(", ")
            return f"{field}.{named[1:-1]} is {shown(tag)}; {', '.join(others)} or {last} was expected"
        case kind:
            template = _EXPECTED.get(kind)
            message = f"{template.format(**details.get('ctx', {}))} was expected" if template else details["msg"]
            return f"{field} is {shown(details['input'])}; {message[:1].lower()}{message[1:]}"
