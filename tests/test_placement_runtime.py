"""The kernels of onnxruntime 1.24.4's CPU provider, and what it loads of onnx's own node models, are foretold."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile.back_ends import release_tables
from dml_tile.back_ends.kernels import cpu_kernels, version_of
from dml_tile.back_ends.placement import Placement
from tests.helpers.described_nodes import node_tests
from tests.helpers.onnx_graphs import placed

RELEASE: Final = "1.24.4"
NO_END: Final = 2**31 - 1
"""The last version of a kernel that has none."""
MOST_OTHERS: Final = 20
"""Models that fail for other reasons: unknown attributes, functions that are not expanded, kernels that throw."""

LOAD: Final = """
import json, sys
from pathlib import Path
import onnxruntime

options = onnxruntime.SessionOptions()
options.log_severity_level = 4
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
found = {}
for path in sorted(Path(sys.argv[1]).glob("*.onnx")):
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        found[path.stem] = ""
    except Exception as error:
        found[path.stem] = str(error)
print(json.dumps(found))
"""


KERNELS: Final = """
import json
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

found = [
    (each.domain, each.op_name, *each.version_range, {name: [*of] for name, of in each.type_constraints.items()})
    for each in get_all_opkernel_def()
    if each.provider == "CPUExecutionProvider"
]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Run a program with that onnxruntime, in a folder of its own, before this environment's."""
    folder = tmp_path_factory.mktemp("onnxruntime")
    options = ["-q", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target", str(folder)]
    install = [sys.executable, "-m", "pip", "install", *options, f"onnxruntime=={RELEASE}"]
    if subprocess.run(install, capture_output=True, check=False).returncode:
        pytest.skip(f"onnxruntime {RELEASE} cannot be installed here")

    def run_it(program: str, *arguments: str | Path) -> Any:
        command, environment = [sys.executable, "-c", program, *arguments], os.environ | {"PYTHONPATH": str(folder)}
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)

    return run_it


@pytest.mark.long
def test_the_cpu_providers_kernels_are_those_of_the_release(run: Callable[..., Any]) -> None:
    """A kernel of several registrations, one for each type, is one row."""
    theirs: dict[tuple[str, str, int, int], dict[str, set[str]]] = {}
    for domain, operator, since, to, constraints in run(KERNELS):
        types = theirs.setdefault(("" if domain == "ai.onnx" else domain, operator, since, to), {})
        for name, listed in constraints.items():
            types.setdefault(name, set()).update(re.sub(r"tensor\((\w+)\)", r"\1", each) for each in listed)
    ours: dict[tuple[str, str, int, int], dict[str, set[str]]] = {}
    for (domain, operator), rows in cpu_kernels(version_of(RELEASE)).items():
        for row in rows:
            is_open = row.to == row.since and (domain, operator, row.since, row.to) not in theirs
            types = ours.setdefault((domain, operator, row.since, NO_END if is_open else row.to), {})
            for name, listed in row.types.items():
                types.setdefault(name, set()).update(listed)
    assert len(ours) > 600
    assert ours == theirs


@pytest.mark.long
def test_each_operator_without_a_kernel_and_each_limit_of_onnxs_node_models_is_foretold(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models: dict[str, Any] = {name: case.model for name, case in node_tests().items()}
    assert len(models) > 1500
    for name, made in models.items():
        (tmp_path / f"{name}.onnx").write_bytes(made.SerializeToString())
    monkeypatch.setattr(release_tables, "directml_kernels", lambda release: {})
    others = {}
    for name, message in run(LOAD, tmp_path).items():
        errors, nodes = placed(models[name], f"onnxruntime-directml-{RELEASE}")
        without = {
            (node.place.operator, node.place.version) for node, reason in nodes if reason.placement is Placement.NONE
        }
        throwing = [reason for _, reason in nodes if reason.rule == "ORT-NODE-kernel"]
        if lacking := re.search(r"Could not find an implementation for (\w+)\((\d+)\)", message):
            assert (lacking[1], int(lacking[2])) in without, name
        elif re.search(r"under development|Unsupported model IR version", message):
            assert errors, name
        elif bool(message) != bool(errors or without or throwing):
            others[name] = message or "it loads"
    assert len(others) <= MOST_OTHERS, others
