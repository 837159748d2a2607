"""The simulated device does what Microsoft's runtime was recorded to do in binding, dispatch and after removal."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.recorded_bindings import BINDING_CASES, is_huge
from tests.helpers.recorded_dispatches import DISPATCH_CASES
from tests.helpers.recorded_life import CrashError, Life

Case = dict[str, Any]

CASES: Final[list[Case]] = [
    json.loads(line) for line in (Path(__file__).parent / "data" / "binding.jsonl").read_text().splitlines()
]
PLAYS: Final = BINDING_CASES | DISPATCH_CASES

WITHOUT_A_MEANING: Final[dict[str, Callable[[Case], bool]]] = {
    # why a case has no counterpart in Python, and which it is
    "Python has no interface ids and no out-pointers": lambda case: case["group"].endswith("_iid"),
    "objects have no COM bookkeeping": lambda case: case["setup"].get("then") in ("op.GetDevice", "SetName", "Evict"),
    "it would take more memory than a test should": lambda case: case["setup"].get("output_elements", 0) > 2**24,
}


def why_without_a_meaning(case: Case) -> str | None:
    return next((why for why, applies in WITHOUT_A_MEANING.items() if applies(case)), None)


GROUPS: Final[dict[str, list[Case]]] = defaultdict(list)
for _case in CASES:
    if why_without_a_meaning(_case) is None:
        GROUPS[_case["group"].replace("_volatile", "")].append(_case)


@pytest.mark.parametrize("level", ["5_0", "5_2", "6_2"])
@pytest.mark.parametrize("group", sorted(GROUPS))
def test_the_device_does_what_was_recorded(group: str, level: str) -> None:
    for case in GROUPS[group]:
        life = Life(level)
        with suppress(CrashError):
            PLAYS[group](life, case["setup"] | {"id": case["id"], "group": group})
        outcome, recorded = life.outcome, case["result"]
        assert outcome.crash_in == recorded.get("crash_in"), case
        assert outcome.removed_by == recorded.get("removed_by"), case
        if recorded.get("hresult") is not None:
            assert outcome.hresult == recorded["hresult"], case
        calls = [(step["call"], step["removed"] != "0x00000000") for step in recorded.get("steps", ())]
        if calls:
            assert outcome.calls == (calls[:-1] if is_huge(case["setup"]) else calls), case


def test_few_cases_are_left_out() -> None:
    assert Counter(why_without_a_meaning(case) for case in CASES) == {
        None: 1113,
        "Python has no interface ids and no out-pointers": 11,
        "objects have no COM bookkeeping": 6,
        "it would take more memory than a test should": 11,
    }
