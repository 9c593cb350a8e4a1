"""Test that pipeline processes keep no client library in memory, which would not be cold for the measured client."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PLAN = """
import sys
from pathlib import Path
from tidemark.pipeline import runner
from tidemark.config import load
from tidemark.pipeline.plan import make_plan
from tidemark.measure import series
from tidemark.machine import sampler
from tidemark.runs import manifest, outcome, plan, spec
from tidemark.studies.study import registry as studies
from tidemark.systems.registry import registry
make_plan(load(Path(sys.argv[1])))
assert studies() and all(study.workload for study in studies().values())
assert None in [kind.unavailable(kind.Options()) for kind in registry().values()]
libraries = {"pyarrow", "duckdb", "_duckdb", "deltalake", "pyiceberg", "pydantic", "pydantic_core"}
print(sorted({name.partition(".")[0] for name in sys.modules} & libraries))
"""


def test_processes_running_during_a_cold_run_load_no_client_library() -> None:
    """A page that a process has mapped is hard to evict, and `all`, Snakemake and the measuring step run meanwhile.

    Import such a library where it is used, or below `if TYPE_CHECKING`, also in the file of a system.
    """
    done = subprocess.run(
        [sys.executable, "-c", PLAN, REPOSITORY / "config.yaml"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
