"""Builds stand-ins for Direct3D 12 and DXCore that DirectML loads: two libraries that execute nothing.

They are built with a C++ compiler against Debian's package directx-headers-dev. For each interface that DirectML asks
for, a class with a neutral answer to each method is generated from the headers; the sources beside this file say what
more is answered.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent
INCLUDES: Final = Path("/usr/include")

INTERFACES: Final = {
    # the generated header: the headers with the interfaces, the class that is made of each
    "neutral_direct3d.h": (
        ("directx/d3d12.h", "directx/d3dcommon.h"),
        {
            "ID3D12Device5": "NeutralDevice",
            "ID3D12Resource": "NeutralResource",
            "ID3D12GraphicsCommandList": "NeutralCommandList",
            "ID3D12RootSignature": "NeutralRootSignature",
            "ID3D12PipelineState": "NeutralPipelineState",
            "ID3D10Blob": "NeutralBlob",
        },
    ),
    "neutral_dxcore.h": (
        ("directx/dxcore_interface.h",),
        {"IDXCoreAdapter": "NeutralAdapter", "IDXCoreAdapterFactory": "NeutralFactory"},
    ),
}
LIBRARIES: Final = {"libd3d12.so": "direct3d.cpp", "libdxcore.so": "dxcore.cpp"}

_SUCCEEDING: Final = ("Evict", "MakeResident", "SetName")
_CONDITIONAL: Final = re.compile(r"#if defined\(_MSC_VER\) \|\| !defined\(_WIN32\)(.*?)#else.*?#endif", re.S)
_METHOD: Final = re.compile(r"virtual\s+([\w\s*]+?)\s*STDMETHODCALLTYPE\s+(\w+)\s*\((.*?)\)\s*=\s*0;", re.S)


Method = tuple[str, str, str]
"""A pure virtual method of an interface: what it returns, its name, and its parameters as they stand in the header."""


class BuildError(Exception):
    """The stand-in cannot be built; the message says what is missing."""


def methods(header: str, interface: str) -> tuple[str, list[Method]]:
    """The interface that another extends, and the methods that it adds. Raises BuildError for an unknown one."""
    found = re.search(rf"^\s*{interface} : public (\w+)\s*\{{\s*public:(.*?)^\s*\}};", header, re.M | re.S)
    if not found:
        raise BuildError(f"the headers have no interface {interface}")
    return found[1], _METHOD.findall(_CONDITIONAL.sub(r"\1", found[2]))


def neutral_class(header: str, interface: str, name: str) -> str:
    """C++ of a class with all methods of an interface, of which none does anything."""
    chain: list[str] = []
    added: list[Method] = []
    base = interface
    while base != "IUnknown":
        chain.append(base)
        base, own = methods(header, base)
        added = own + added
    ids = " || ".join(f"id == IID_{known}" for known in ["IUnknown", *chain])
    lines = [
        f"struct {name} : {interface} {{",
        "    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID id, void** result) override {",
        f"        const bool known = {ids};",
        "        *result = known ? this : nullptr;",
        "        return known ? S_OK : E_NOINTERFACE;",
        "    }",
        "    ULONG STDMETHODCALLTYPE AddRef() override { return 2; }",
        "    ULONG STDMETHODCALLTYPE Release() override { return 1; }  // lives as long as the process",
        *map(_neutral, added),
        "};",
    ]
    return "\n".join(lines) + "\n"


def _neutral(method: Method) -> str:
    returns, name, parameters = method
    answer = "return S_OK;" if name in _SUCCEEDING else "return E_NOTIMPL;"
    if returns != "HRESULT":
        answer = "" if returns == "void" else "return {};"
    return f"    {returns} STDMETHODCALLTYPE {name}({parameters}) override {{ {answer} }}"


def generate(folder: Path) -> None:
    """Write the headers with the neutral classes into a folder."""
    for file, (names, classes) in INTERFACES.items():
        header = "".join((INCLUDES / name).read_text(encoding="utf-8", errors="replace") for name in names)
        text = "".join(neutral_class(header, interface, name) for interface, name in classes.items())
        (folder / file).write_text("#pragma once\n" + text)


def why_not_buildable() -> str | None:
    """What the machine lacks to build the stand-in, or None."""
    if not (INCLUDES / "directx" / "d3d12.h").is_file():
        return "the headers of Direct3D 12 are not installed (Debian: apt-get install directx-headers-dev)"
    return None


def build(folder: Path) -> None:
    """Build both libraries into a folder, unless they are there and newer than the sources.

    Raises BuildError where headers or the compiler are missing, or the compiler fails.
    """
    sources = [SOURCES / name for name in ("__init__.py", "exports.map", *LIBRARIES.values())]
    newest = max(path.stat().st_mtime for path in sources)
    if all((folder / name).is_file() and (folder / name).stat().st_mtime >= newest for name in LIBRARIES):
        return
    if why := why_not_buildable():
        raise BuildError(why)
    folder.mkdir(parents=True, exist_ok=True)
    generate(folder)
    for library, source in LIBRARIES.items():
        _compile(folder, library, source)


def _compile(folder: Path, library: str, source: str) -> None:
    command = [
        os.environ.get("CXX", "g++"),
        *("-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-fms-extensions"),
        *(f"-I{folder}", f"-I{INCLUDES / 'wsl' / 'stubs'}", f"-I{INCLUDES}"),
        *(str(SOURCES / source), "-o", str(folder / library), f"-Wl,-soname,{library}"),
        *((f"-Wl,--version-script={SOURCES / 'exports.map'}",) if library == "libd3d12.so" else ()),
    ]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BuildError(f"{command[0]} is not installed; a C++ compiler is needed, which CXX may name") from None
    if run.returncode:
        raise BuildError(f"{command[0]} failed on {source}:\n{run.stderr}")
