"""dml_tile/back_ends/registrations.json, cpu_kernels.json, formals.json: ONNX Runtime's kernels, by release.

    python -m docs.generator.onnxruntime [RELEASE=REF]... PATH...

Each PATH is a git directory or a checkout: of onnx, which has the limits at the commit that ONNX Runtime pins, and of
ONNX Runtime. The releases are those of registrations.json, at its commits; ``1.31=v1.31.0`` adds one, or reads another
commit: a tag, else the release branch, else main where the release was cut. Compare the last two with the Linux
wheel's kernels and limits: main may have moved on (``CORRECTED``). Prints the lines that changed, and the files of
facts read by hand that changed between two releases.

``dml_tile.back_ends.kernels`` says what the files hold.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import onnx.defs

import dml_tile

FOLDER: Final = Path(dml_tile.__file__).parent / "back_ends"
TABLES: Final = ("registrations", "cpu_kernels", "formals")

LETTERS: Final = {
    "Float32": ("f", "float"),
    "Float16": ("h", "float16"),
    "Float64": ("d", "double"),
    "UInt8": ("B", "uint8"),
    "Int8": ("b", "int8"),
    "UInt16": ("W", "uint16"),
    "Int16": ("w", "int16"),
    "UInt32": ("I", "uint32"),
    "Int32": ("i", "int32"),
    "UInt64": ("L", "uint64"),
    "Int64": ("l", "int64"),
    "Bool": ("?", "bool"),
    "UInt4": ("N", "uint4"),
    "Int4": ("n", "int4"),
}
"""The letter and ONNX's name of each element type, by its name in DirectML's registrations, in their order."""

CPP_TYPES: Final = {"int32_t": "i", "int64_t": "l", "bool": "?", "float": "f"}

DOMAINS: Final = {
    "kOnnxDomain": "",
    "kMSDomain": "com.microsoft",
    "kMSDmlDomain": "com.microsoft.dml",
    "kMLDomain": "ai.onnx.ml",
    "kMSExperimentalDomain": "com.microsoft.experimental",
    "kMSNchwcDomain": "com.microsoft.nchwc",
    "kMSInternalNHWCDomain": "com.ms.internal.nhwc",
}

ONNX_DOMAINS: Final = {
    "ONNX": "",
    "AI_ONNX_ML": "ai.onnx.ml",
    "AI_ONNX_TRAINING": "ai.onnx.training",
    "AI_ONNX_PREVIEW": "ai.onnx.preview",
    "AI_ONNX_PREVIEW_TRAINING": "ai.onnx.preview.training",
}

SHADERS: Final = ("DFT", "STFT", "GridSample")
"""The operators that a custom shader computes; their headers register them."""

DML: Final = "onnxruntime/core/providers/dml"
OPERATORS: Final = f"{DML}/DmlExecutionProvider/src/Operators"
CPU_TABLES: Final = ("core/providers/cpu/cpu_execution_provider.cc", "contrib_ops/cpu/cpu_contrib_kernels.cc")

READ_BY_HAND: Final = (
    # the rules of support queries, equations and attributes; where the providers are asked, and what level 1 removes
    f"{DML}/OperatorAuthorHelper/OperatorHelper.cpp",
    f"{OPERATORS}/OperatorUtility.cpp",
    f"{OPERATORS}/DmlOperatorEinSum.cpp",
    f"{DML}/DmlExecutionProvider/src/ExecutionProvider.cpp",
    "onnxruntime/core/framework/fallback_cpu_capability.cc",
    "onnxruntime/core/optimizer/graph_transformer_utils.cc",
)

CpuKernel = tuple[str, str, int, int]
"""A kernel's domain, operator, first version and last version."""
Types = tuple[tuple[str, str], ...]
"""The names of a kernel's constraints, each with its types."""

_Row = TypeVar("_Row")


class Registered(NamedTuple):
    """A kernel of DirectML; ``order`` is what rows of one version are sorted by."""

    domain: str
    operator: str
    since: int
    types: str
    notes: dict[str, Any]
    order: str


def corrected(release: str, row: Registered) -> Registered:
    """Return a kernel of DirectML with the notes that no registration has."""
    if row.operator == "ConcatFromSequence":  # a row of the table, whose operator takes sequences
        return row._replace(notes={**row.notes, "sequences": True})
    if row.operator == "Identity" and row.types.startswith("T:") and row.since >= 14 and release == "1.13":
        return row._replace(notes={**row.notes, "throws": True}, order=f"{row.order} throws")  # the operator has V
    if row.operator == "Slice":  # its query is not asked: it is about opsets whose rows have none
        return row._replace(notes={key: value for key, value in row.notes.items() if key != "query"})
    return row


_FLOATS: Final = "bfloat16 double float float16"

CORRECTED: Final[Mapping[str, Mapping[CpuKernel, Types]]] = {
    "1.13": {("", "LayerNormalization", 17, 0): (("T", "double float"), ("U", "float"))},
    "1.23": {("com.microsoft", "MoE", 1, 0): (("T", "float"),)},
    "1.30": {
        **{("", "Gemm", *versions): (("T", "double float"),) for versions in ((7, 8), (9, 10), (11, 12), (13, 0))},
        ("", "LayerNormalization", 1, 16): (("T", _FLOATS), ("U", "float"), ("V", _FLOATS)),
        ("", "LayerNormalization", 17, 0): (("T", _FLOATS), ("U", "float")),
        ("", "MatMul", 1, 8): (("T", "double float"),),
        ("", "MatMul", 9, 12): (("T", "double float int32 int64 uint32 uint64"),),
        ("", "MatMul", 13, 0): (("T", "double float int32 int64 uint32 uint64"),),
        ("", "SimplifiedLayerNormalization", 1, 0): (("T", _FLOATS), ("U", "float"), ("V", _FLOATS)),
        ("com.microsoft", "EngramGate", 1, 0): (("T", "float float16"),),
        ("com.microsoft", "NGramHashMapping", 1, 0): (("M", "int32 int64"),),
        ("com.microsoft", "SkipLayerNormalization", 1, 0): (("T", _FLOATS),),
        ("com.microsoft", "SkipSimplifiedLayerNormalization", 1, 0): (("T", _FLOATS),),
    },
}
"""By release: kernels of the CPU as the Linux wheel's ``get_all_opkernel_def()`` has them, not the document."""


class Checkout:
    """The files of a repository at a commit."""

    def __init__(self, paths: Iterable[str], ref: str) -> None:
        for self.path in paths:
            if commit := self.git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").strip():
                self.commit = commit
                return
        raise SystemExit(f"no checkout has {ref}")

    def git(self, *words: str) -> str:
        """Return what a command of git prints; nothing where it fails."""
        command = ["git", "-C", self.path, *words]
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=False).stdout  # noqa: S603

    def read(self, path: str) -> str:
        """Return a file's text without carriage returns; empty for a file that the commit lacks."""
        return self.git("show", f"{self.commit}:{path}").replace("\r", "")

    def submodule(self, path: str) -> str:
        """Return the commit that a submodule is pinned at."""
        return self.git("ls-tree", self.commit, path).split()[2]


def found(pattern: str, text: str) -> str:
    """Return the first group of a pattern's first match. Raises SystemExit without one."""
    match = re.search(pattern, text, flags=re.DOTALL)
    if match is None:
        raise SystemExit(f"the sources lack {pattern}")
    return str(match[1])


def all_of(pattern: str, text: str) -> list[Any]:
    """Return the groups of each match of a pattern."""
    return re.findall(pattern, text, flags=re.DOTALL)


def plain(text: str) -> str:
    """Return C++ without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def built(text: str, level: str = "0_0") -> str:
    """Return C++ without comments, without switches that are off, and without levels above that of the build."""
    kept: list[str] = []
    guards: list[bool] = []
    for line in plain(text).splitlines():
        if asked := re.match(r"\s*#\s*if(n?)(?:def)?\b(.*)", line):
            needed = re.search(r"DML_TARGET_VERSION >= 0x(\d)(\d)00", asked[2])
            is_on = bool(asked[1]) or "!" in asked[2] or "USE_DML" in asked[2]
            guards.append(f"{needed[1]}_{needed[2]}" <= level if needed else is_on)
        elif re.match(r"\s*#\s*else", line):
            guards[-1] = not guards[-1]
        elif re.match(r"\s*#\s*endif", line):
            guards.pop()
        elif all(guards):
            kept.append(line)
    return "\n".join(kept)


def arguments(text: str) -> list[str]:
    """Return the arguments of a call, up to its closing parenthesis."""
    parts, depth = [""], 0
    for letter in text:
        if letter == ")" and depth == 0:
            break
        depth += (letter in "({[<") - (letter in ")}]>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [" ".join(part.split()) for part in parts]


def arrays(text: str, element: str) -> dict[str, list[str]]:
    """Return the arrays of an element type by their names; one may be another's copy."""
    named: dict[str, list[str]] = {}
    pattern = rf"std::array<{element}, \d+> (\w+)\s*=\s*(?:\{{(.*?)\}}|(\w+))\s*;"
    for name, values, copied in all_of(pattern, text):
        named[name] = named[copied] if copied else [each.strip() for each in values.split(",") if each.strip()]
    return named


# DirectML's kernels


class TypeFlags:
    """The flags of SupportedTensorDataTypes, and those that become types of a kernel."""

    def __init__(self, text: str) -> None:
        members = found(r"enum class SupportedTensorDataTypes[^{]*\{(.*?)\};", text).split(",")
        self._members = {name.strip(): value for name, _, value in (each.partition("=") for each in members)}
        self._used = set(all_of(r"SupportedTensorDataTypes::(\w+)\s*\)\)", text))

    def _bits(self, expression: str) -> set[str]:
        bits: set[str] = set()
        for name in re.findall(r"\w+", expression.replace("SupportedTensorDataTypes::", "")):
            value = self._members[name]
            if "-1" in value:
                bits |= {each for each, shift in self._members.items() if "<<" in shift}
            else:
                bits |= {name} if "<<" in value else self._bits(value)
        return bits

    def letters(self, expression: str) -> str:
        """Return the types of an expression of flags: letters, ``*`` for all, ``+seq`` with sequences of them."""
        bits = self._bits(expression)
        used = bits & self._used
        scalars = "*" if "String" in bits else "".join(letter for name, (letter, _) in LETTERS.items() if name in used)
        return scalars + "+seq" * any(name.startswith("Sequence") for name in used)


def directml_rows(checkout: Checkout, release: str, level: str) -> list[Registered]:
    """Return the kernels of DirectML that a release built for a feature level has."""
    text = built(checkout.read(f"{OPERATORS}/OperatorRegistration.cpp"), level)
    shaders = [row for name in SHADERS for row in shader_rows(checkout, text, name)]
    return [corrected(release, row) for row in (*table_rows(checkout, text), *sequence_rows(text), *shaders)]


def table_rows(checkout: Checkout, text: str) -> Iterator[Registered]:
    """Yield the rows of the table of DirectML's operators."""
    folder = f"{DML}/OperatorAuthorHelper"
    versions = checkout.read(f"{folder}/OperatorVersions.h") or checkout.read(f"{folder}/OperatorRegistration.h")
    since: dict[tuple[str, str], int] = {}
    current = ""
    for namespace, operator, version in all_of(r"namespace (\w+Set\d+)|sc_sinceVer_(\w+)\s*=\s*(\d+)", plain(versions)):
        current = namespace or current
        since[current, operator] = int(version or 0)
    flags, names = TypeFlags(text), arrays(text, r"const char\*")
    types = arrays(text, "SupportedTensorDataTypes")
    macro = r"#define (REG_INFO\w*)\(version, operatorName(, aliases)?.*?(\w+Set)##version.*?onnxruntime::(k\w+)"
    macros = {name: rest for name, *rest in all_of(macro, text)}
    for name, row in all_of(r"\{(REG_INFO\w*)\((.*?\))\}", text):
        aliases, set_name, domain = macros[name]
        version, operator, *given = arguments(row)
        if operator.startswith("Memcpy"):  # no model has them
            continue
        type_names, type_list, support, cpu, count, query = [*given[bool(aliases) :], "", "", ""][:6]
        cpu_inputs = [int(each) for each in re.findall(r"\d+", cpu)]
        int64 = "any" * ("StridesFromAnyEp" in support) or "dml" * ("Via32BitStrides" in support)
        int64 += "+direct" * ("Prefer64BitTensorsDirectly" in support)
        notes = {"cpu_inputs": cpu_inputs, "query": query.removeprefix("Query"), "int64": int64}
        order = {
            "cpu": ",".join(map(str, cpu_inputs)),
            "query": notes["query"],
            "inputs": "".join(re.findall(r"\d+", count)),
            "nograph": "NotSupported" in support,
            "int64": int64,
        }
        constraints = zip(names[type_names], types[type_list], strict=True)
        yield Registered(
            DOMAINS[domain],
            operator,
            since[f"{set_name}{version}", operator],
            " ".join(f"{label.strip(chr(34))}:{flags.letters(each)}" for label, each in constraints),
            {key: value for key, value in notes.items() if value},
            " ".join(key if value is True else f"{key}={value}" for key, value in order.items() if value),
        )


def sequence_rows(text: str) -> Iterator[Registered]:
    """Yield the kernels of the CPU that are registered for DirectML, with their plain constraints alone."""
    registered = set(all_of(r"BuildKernelCreateInfo<ONNX_OPERATOR_KERNEL_CLASS_NAME\((.*?)\)>", text))
    for call in all_of(r"ONNX_OPERATOR_KERNEL_EX\((.*?\);)", text):
        name, domain, version, provider, builder, *_ = arguments(call)
        if f"{provider}, {domain}, {version}, {name}" not in registered:
            continue
        cpu = [int(each) for each in all_of(r"\.InputMemoryType\(OrtMemTypeCPUInput, (\d+)\)", builder)]
        constraints = builder.split(".TypeConstraint(")[1:]
        named = [(each.split('"')[1], all_of(r"GetTensorType<(\w+)>", each)) for each in constraints]
        types = " ".join(f"{label}:{''.join(map(CPP_TYPES.__getitem__, each))}" for label, each in named if each)
        notes = {**({"cpu_inputs": cpu} if cpu else {}), "sequences": True}
        yield Registered(DOMAINS[domain], name, int(version), types, notes, "")


def shader_rows(checkout: Checkout, registration: str, name: str) -> Iterator[Registered]:
    """Yield the kernels of a custom shader, which its header registers."""
    text = plain(checkout.read(f"{OPERATORS}/Dml{name}.h")).partition(f"static void Register{name}Kernel")[2]
    spelled = {"Float": "Float32", "Double": "Float64"}
    named = all_of(r'typeLabel = "(\w+)";.*?AllowedEdges\s*\{(.*?)\};', text)
    sets = [(each, {spelled.get(t, t) for t in re.findall(r"DataType::(\w+)", edges)}) for each, edges in named]
    types = " ".join(f"{each}:{''.join(LETTERS[t][0] for t in LETTERS if t in chosen)}" for each, chosen in sets)
    cpu = [int(each) for each in "".join(all_of(r"CpuInputs = \{(.*?)\}", text)).split(",") if each]
    for version in all_of(rf"Register{name}Kernel\(registry(?:, (\d+))?\)", registration):
        since = int(version or found(r"minimumOperatorSetVersion = (\d+)", text))
        yield Registered("", name, since, types, {**({"cpu_inputs": cpu} if cpu else {}), "shader": True}, "")


# The CPU's kernels, and formals


class DocumentRow(NamedTuple):
    """A row of docs/OperatorKernels.md, which ONNX Runtime's own build writes."""

    provider: str
    domain: str
    operator: str
    parameters: str
    versions: str
    types: str


@cache
def document(checkout: Checkout) -> list[DocumentRow]:
    """Return the rows of docs/OperatorKernels.md."""
    rows: list[DocumentRow] = []
    provider = domain = operator = parameters = ""
    for text in checkout.read("docs/OperatorKernels.md").splitlines():
        if text.startswith("## Operators implemented by "):
            provider = text.rpartition(" ")[2]
        elif named := re.match(r"\|\*\*Operator Domain:\*\* \*(.*?)\*", text):
            domain = "" if named[1] == "ai.onnx" else named[1]
        elif cells := re.fullmatch(r"\|([^|]*)\|([^|]*)\|([^|]*\d[^|]*)\|([^|]*)\|", text.strip()):
            operator, parameters = (cells[1], cells[2]) if cells[1] else (operator, parameters)
            rows.append(DocumentRow(provider, domain, operator, parameters, cells[3], cells[4]))
    return rows


def versions_of(text: str) -> tuple[int, int]:
    """Return a kernel's first and last version; 0 for one without an end, which takes the first alone."""
    first, *last = (int(each) for each in re.findall(r"\d+", text))
    return first, last[0] if last else 0 if "+" in text else first


def types_of(text: str) -> Types:
    """Return the names of constraints with their types, sorted."""
    named = re.findall(r"\*\*(\w+)\*\* = (.*?)(?=<br/?>|$)", re.sub(r"tensor\(([^()]*)\)", r"\1", text))
    return tuple((name, " ".join(sorted(each.strip() for each in types.split(", ")))) for name, types in named)


def source_kernels(checkout: Checkout) -> Iterator[CpuKernel]:
    """Yield the kernels that the CPU provider's sources register."""
    for path in CPU_TABLES:
        text = built(checkout.read(f"onnxruntime/{path}"))
        for kind, call in all_of(r"CreateInfo<\s*ONNX_OPERATOR_(\w*?)KERNEL_CLASS_NAME\((.*?)\)>", text):
            _, domain, first, last, *names = (*arguments(call), "")
            end = int(last) if "VERSIONED" in kind else 0
            yield DOMAINS.get(domain, domain), [last, *names][-2], int(first), end


def cpu_rows(checkout: Checkout, release: str) -> list[tuple[CpuKernel, Types]]:
    """Return the kernels of the document, of the sources where they have no constraints, and those corrected."""
    rows = {
        (row.domain, row.operator, *versions_of(row.versions)): types_of(row.types)
        for row in document(checkout)
        if row.provider == "CPUExecutionProvider"
    }
    starts = {key[:3] for key in rows}
    rows |= {key: () for key in source_kernels(checkout) if key[:3] not in starts}
    return list((rows | dict(CORRECTED.get(release, {}))).items())


def formals(checkouts: Iterable[Checkout]) -> dict[str, Any]:
    """Return inputs and outputs of the operators that onnx lacks at a kernel's version, of the newest document."""
    named: dict[str, Any] = {}
    for checkout in checkouts:
        newest: dict[str, Any] = {}
        for row in document(checkout):
            schemas = row.parameters.split("<br>or<br>")  # the newest first; of ai.onnx, onnx lacks the oldest alone
            pairs = re.findall(r"\*(in|out)\* (\w+):\*\*(.*?)\*\*", schemas[-1 if row.domain == "" else 0])
            sides = [[[name, type_] for side, name, type_ in pairs if side == each] for each in ("in", "out")]
            if any(sides) and not is_of_onnx(row.domain, row.operator, versions_of(row.versions)[0]):
                newest.setdefault(f"{row.domain}:{row.operator}", sides)
        named |= newest
    return named


def is_of_onnx(domain: str, operator: str, version: int) -> bool:
    """Return True if onnx has an operator at a version; no model has a Memcpy."""
    try:
        onnx.defs.get_schema(operator, version, domain)
    except onnx.defs.SchemaError:
        return operator.startswith("Memcpy")
    return True


# Releases


def limits(checkout: Checkout, paths: Sequence[str]) -> tuple[dict[str, int], int]:
    """Return the newest opset that loads, by domain, and the newest IR version."""
    pinned = Checkout(paths, checkout.submodule("cmake/external/onnx"))
    schema = pinned.read("onnx/defs/schema.h")
    newest = int(found(r" map_\[ONNX_DOMAIN\] = std::make_pair\(1, (\d+)\)", schema))
    released = dict(all_of(r"last_release_version_map_\[(\w+)_DOMAIN\] = (\d+)", schema))
    opsets = {domain: int(released[name]) for name, domain in ONNX_DOMAINS.items() if name in released}
    environment = built(checkout.read("onnxruntime/core/session/environment.cc"))
    for name, last in all_of(r"AddDomainToVersion\(\s*(?:onnxruntime::)?(\w+), \d+, (\w+)", environment):
        if name in DOMAINS:
            opsets[DOMAINS[name]] = int(last) if last.isdigit() else newest
    return opsets, int(all_of(r"IR_VERSION = (0x\w+)", pinned.read("onnx/onnx.in.proto"))[-1], 16)


def release_row(checkout: Checkout, ref: str, rows: Sequence[Registered], opset: int, ir: int) -> dict[str, Any]:
    """Return the row of a release."""
    provider = checkout.read(f"{DML}/DmlExecutionProvider/src/ExecutionProvider.cpp")
    factory = checkout.read(f"{DML}/dml_provider_factory.cc") + provider
    table = checkout.read(f"{OPERATORS}/OperatorRegistration.cpp")
    is_strided = "Via32BitStrides " in table
    return {
        "ref": ref,
        "commit": checkout.commit,
        "rows": len(rows),
        "operators": len({row[:2] for row in rows}),
        "opset": opset,
        "ir": ir,
        "device_level": max(all_of(r"DML_FEATURE_LEVEL_(\d_\d)", factory)),
        "cpu_preferred": "GetCpuPreferredNodes" in factory,
        "int64": "direct or strided"
        if is_strided and "ViaEmulation" in table
        else "strided"
        if is_strided
        else "direct",
    }


def joined(by_release: Mapping[str, Iterable[_Row]], key: Callable[[_Row], Hashable]) -> list[tuple[_Row, str, str]]:
    """Return each row with its first and last release: equal rows of neighbouring releases are one."""
    spans: list[list[Any]] = []
    open_rows: dict[Hashable, list[Any]] = {}
    for release, rows in by_release.items():
        here = {key(row): row for row in rows}
        open_rows = {each: open_rows.get(each, [row, release, release]) for each, row in here.items()}
        for span in open_rows.values():
            spans += [span] if span[1:] == [release, release] else []
            span[2] = release
    return [(row, first, last) for row, first, last in spans]


def numbers(release: str) -> tuple[int, ...]:
    """Return a release as numbers."""
    return tuple(map(int, release.split(".")))


def compact(value: object) -> str:
    """Return a value as JSON in one line."""
    return json.dumps(value, separators=(",", ":"))


def in_old_order(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return entries in the order of the table before; new ones come last."""
    return {
        key: new[key] for key in (*(each for each in old if each in new), *(each for each in new if each not in old))
    }


def tables(old: Mapping[str, Any], refs: Mapping[str, tuple[str, str]], paths: Sequence[str]) -> dict[str, str]:
    """Return the texts of the three tables; ``refs`` has the name and the commit of each release."""
    packages = json.loads((FOLDER.parent / "directml/releases.json").read_text("utf-8"))["directml"]
    levels: dict[str, str] = {version: level for version, _, level, *_ in packages}
    releases: dict[str, Any] = {}
    opsets: dict[str, Any] = {}
    directml: dict[str, list[Registered]] = {}
    cpu: dict[str, list[tuple[CpuKernel, Types]]] = {}
    checkouts = {
        release: Checkout(paths, commit)
        for release, (_, commit) in sorted(refs.items(), key=lambda each: numbers(each[0]))
    }
    for release, checkout in checkouts.items():
        package: str = found(r'AI\.DirectML" version="(\d+\.\d+)', checkout.read("packages.config"))
        directml[release] = directml_rows(checkout, release, levels[package])
        cpu[release] = cpu_rows(checkout, release)
        domains, ir = limits(checkout, paths)
        releases[release] = release_row(checkout, refs[release][0], directml[release], domains.pop(""), ir)
        opsets[release] = list(domains.items())
    registrations: list[list[Any]] = [
        [*row[:3], 0, row.types, row.notes, first, last]
        for row, first, last in sorted(
            joined(directml, lambda row: (*row[:4], compact(row.notes), row.order)),
            key=lambda each: (*each[0][:4], each[0].order, numbers(each[1])),
        )
    ]
    sets: dict[str, str] = {}
    kernels = [
        [*key, " ".join(f"{name}:{sets.setdefault(each, f't{len(sets)}')}" for name, each in types), first, last]
        for (key, types), first, last in sorted(
            joined(cpu, cpu_key), key=lambda row: (cpu_key(row[0]), numbers(row[1]))
        )
    ]
    names = dict(LETTERS.values())
    spelled = {}
    for code in (each.partition(":")[2] for row in registrations for each in row[4].split()):
        scalars = [names[letter] for letter in code.partition("+")[0].replace("*", "".join(names))]
        spelled[code] = " ".join([*scalars, *(f"seq({each})" for each in scalars if "+seq" in code)])
    own = [[*row, first, last] for row, first, last in joined(opsets, lambda row: row)]
    first_seen = list(dict.fromkeys(row[0] for row in old["registrations"]["domain_opsets"] + own))
    made = old["registrations"] | {
        "releases": releases,
        "domain_opsets": sorted(own, key=lambda row: (first_seen.index(row[0]), numbers(row[2]))),
        "types": in_old_order(spelled, old["registrations"]["types"]),
    }
    del made["rows"]
    cpu_table = old["cpu_kernels"] | {"types": {name: types for types, name in sets.items()}, "rows": []}
    known = in_old_order(formals(checkouts.values()), old["formals"]["formals"])
    return {
        "registrations": _lines(
            "{" + ",\n".join(f'"{key}":{compact(value)}' for key, value in made.items()) + ',\n"rows":[',
            map(compact, registrations),
            "]}",
        ),
        "cpu_kernels": _lines(compact(cpu_table)[:-2], map(compact, kernels), "]}"),
        "formals": _lines(
            f'{{"source":{compact(old["formals"]["source"])},"formals":{{',
            (f"{compact(key)}:{compact(value)}" for key, value in known.items()),
            "}}",
        ),
    }


def cpu_key(row: tuple[CpuKernel, Types]) -> tuple[Any, ...]:
    """Return what rows of the CPU's kernels are joined and sorted by."""
    key, types = row
    return (*key, ";".join(f"{name}:{each.replace(' ', ',')}" for name, each in types))


def _lines(first: str, lines: Iterable[str], last: str) -> str:
    return first + "\n" + ",\n".join(lines) + f"\n{last}\n"


def main(arguments: Sequence[str]) -> None:
    """Write the three tables, and print the lines that differ from those before."""
    paths = [each for each in arguments if "=" not in each]
    if not paths:
        raise SystemExit(__doc__)
    old = {name: json.loads((FOLDER / f"{name}.json").read_text("utf-8")) for name in TABLES}
    refs = {name: (row["ref"], row["commit"]) for name, row in old["registrations"]["releases"].items()}
    given = dict(each.split("=", 1) for each in arguments if "=" in each)
    refs |= {name: (ref, ref) for name, ref in given.items()}
    for name, text in tables(old, refs, paths).items():
        file = FOLDER / f"{name}.json"
        before, after = file.read_text("utf-8").splitlines(), text.splitlines()
        for sign, lines, others in (("-", before, {*after}), ("+", after, {*before})):
            for each in (each for each in lines if each not in others):
                print(f"{name}: {sign} {each[:160]}")
        file.write_text(text, "utf-8")
    order = sorted(refs, key=numbers)
    for older, newer in pairwise(order):
        if newer in given:
            was, now = (Checkout(paths, refs[each][1]) for each in (older, newer))
            changed = [path for path in READ_BY_HAND if was.read(path) != now.read(path)]
            for path in changed:
                print(f"read again, changed from {older} to {newer}: {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
