"""A plugin of pytest's: Hypothesis' profile for mutants, a limit, and which test runs, in ``MUTANTS_RUNNING``.

One example that fails is enough, so that nothing is shrunk; the same examples are drawn each time.
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "mutants",
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note which test runs, and let it compute for ``MUTANTS_SECONDS`` at most."""
    Path(os.environ["MUTANTS_RUNNING"]).write_text(nodeid.partition("[")[0])
    limit = int(time.process_time() + float(os.environ["MUTANTS_SECONDS"])) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
