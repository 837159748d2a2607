"""The exceptions of the package. Each pickles, so that it travels between processes.

* DmlTileError
  + DmlError (ValueError)      a descriptor, a binding or a call has findings
    - RefusedModelError        tiles or bindings of a DxDispatch model have findings
  + DialectError (ValueError)  a specification rules a tile out
  + InputError (ValueError)    a source cannot be read
  + ConfigError (ValueError)   a pyproject.toml, a baseline or a list of files cannot be read
  + OutputError                a file cannot be written
  + TargetError                the simulated target cannot be known, or is not the one that is needed

Arguments that Python itself has words for, such as an unknown target or a wrong type, raise ValueError or TypeError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from types import NoneType
from typing import Any

from dml_tile.directml.enums import UINT_MAX
from dml_tile.findings import Finding, Severity, finding_lines, unreadable


def require_instance(value: object, *kinds: type) -> None:
    """Raise TypeError, without the word NoneType, for a value of another type."""
    if not isinstance(value, kinds):
        names = [kind.__name__ for kind in kinds if kind is not NoneType]
        expected = " or ".join(f"{'an' if name[0] in 'AEIOU' else 'a'} {name}" for name in names)
        raise TypeError(f"{expected} was expected, not a {type(value).__name__}")


def integer_of(value: Any) -> int | None:
    """Return an integer, Python's or NumPy's, as Python's; None for anything else, True included."""
    try:
        return None if isinstance(value, bool) else index(value)
    except TypeError:
        return None


def require_uint(name: str, value: Any, limit: int = UINT_MAX) -> int:
    """Return an unsigned integer of C as an int, NumPy's too.

    Raises TypeError unless it is an integer, which True is not, and ValueError above ``limit`` or below 0.
    """
    number = integer_of(value)
    if number is None or not 0 <= number <= limit:
        error = TypeError if number is None else ValueError
        raise error(f"{name} is {value!r}; an integer from 0 to {limit} was expected")
    return number


class DmlTileError(Exception):
    """The base of every exception that dml_tile defines."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Exception.__new__, (type(self), *self.args), self.__dict__  # without calling the constructor


class DmlError(DmlTileError, ValueError):
    """A descriptor, binding or call has findings: DirectML refuses it or crashes, or its documentation rules it out.

    ``findings`` are the reasons. ``hresult`` is what DirectML returns, the first finding's; None if DirectML crashes
    (``crash``), if all findings are warnings, or if the result is unknown. ``call`` is the C method of a simulated
    device that was called, such as ``"BindInputs"``, else empty.
    """

    def __init__(self, findings: Sequence[Finding], call: str = "") -> None:
        self.findings = tuple(findings)
        self.call = call
        self.hresult = next((finding.hresult for finding in self.findings if finding.hresult is not None), None)
        self.crash = self.hresult is None and any(finding.crash for finding in self.findings)
        verdict = str(self.hresult) if self.hresult is not None else "no HRESULT"
        verdict += ", the process dies" if self.crash else ""
        if self.findings and all(finding.severity is Severity.WARNING for finding in self.findings):
            verdict += ", only the documentation forbids it; DirectML accepts it"
        super().__init__("\n".join([f"{call}: {verdict}" if call else verdict, *finding_lines(self.findings)]))


class RefusedModelError(DmlError):
    """Tiles or bindings of a DxDispatch model have findings.

    ``results`` maps the JSON pointer of each part to its findings.
    """

    def __init__(self, results: Mapping[str, tuple[Finding, ...]]) -> None:
        self.results = dict(results)
        super().__init__([finding for findings in results.values() for finding in findings])


class DialectError(DmlTileError, ValueError):
    """A specification rules a tile out; ``dialect`` is its name, ``field`` the input that is wrong."""

    def __init__(self, dialect: str, field: str, message: str) -> None:
        self.dialect, self.field, self.message = dialect, field, message
        super().__init__(f"{dialect}: {field}: {message}")


class InputError(DmlTileError, ValueError):
    """A source cannot be read, or asks for something forbidden; ``problems`` are all reasons."""

    def __init__(self, problems: Iterable[Finding]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problem.text for problem in self.problems))


def input_error(pointer: str, message: str) -> InputError:
    """Return the InputError of one problem, for `raise`."""
    return InputError([unreadable(pointer, message)])


class ConfigError(DmlTileError, ValueError):
    """A pyproject.toml, a baseline or a list of files is unreadable or has a wrong value; ``file`` is its name."""

    def __init__(self, file: str, message: str) -> None:
        self.file = file
        super().__init__(message)


class OutputError(DmlTileError):
    """A file or standard output cannot be written; ``file`` is its name."""

    def __init__(self, file: str, reason: str) -> None:
        self.file = file
        super().__init__(reason)


class TargetError(DmlTileError):
    """The simulated target cannot be known, or is not the one that is needed.

    Not a ValueError: an application that catches ValueError to fall back must not hide it.
    """
