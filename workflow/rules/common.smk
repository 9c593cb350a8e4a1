# Shared by all rules: the plan, the folders, and the command line that every step calls.

import sys
from pathlib import Path

ROOT = Path(workflow.current_basedir).parents[1]
sys.path.insert(0, str(ROOT / "src"))

# Snakemake imports pandas after a job, which would load Arrow. No process other than the clients may keep that library in
# memory while a series is made cold.
sys.modules.setdefault("pyarrow", None)

from snakemake.settings.types import MaxJobsPerTimespan

from tidemark import code
from tidemark.errors import RebootNeeded
from tidemark.paths import Workspace
from tidemark.pipeline.failure import noted
from tidemark.pipeline.plan import asked_for, provided, tools
from tidemark.pipeline.reboots import (
    preparation,
    this_boot,
    use_boot,
    wait_for_restart,
)
from tidemark.pipeline.runner import (
    RESULT_ROOMS,
    beside_input,
    command_line,
    enter,
    is_plain,
    refuse_unknown,
    results_folder,
)
from tidemark.services.programs.provision import jar_lock
from tidemark.services.programs.tools import tool_lock
from tidemark.software.stacks import lock_of, python

PLAN = enter(
    config,
    Path.cwd(),
    workflow.configfiles[0] if workflow.configfiles else "config.yaml",
)
WORKSPACE = Workspace(Path.cwd())
# Snakemake limits the jobs that start in a second. For that, each job that ends leaves a timer behind, which looks at all
# waiting jobs each second until the plan ends: after 77 series, a quarter of a core while others are measured. As a limit
# that is false there is none.
MaxJobsPerTimespan.__bool__ = lambda limit: False
# Series that are measured more than once are measured in rounds, and 'tidemark all' makes results after each: the round
# decides the inputs of the results. None, as for a plain 'snakemake': the results are made once, of everything.
ROUND = asked_for(PLAN)
RESULTS = results_folder(PLAN.config)
# The priority of what series need. Without it the first stack that is ready would be measured in all rounds, and only then
# the next one made: what changes with time would look like a difference between stacks.
BEFORE_SERIES = 20_000
# With 'cold: reboot', what this boot allows a plain 'snakemake' to measure; 'tidemark all' determines this itself.
BOOT = this_boot(PLAN, WORKSPACE) if is_plain() else None
# The code that makes results, and its texts: an input of the results, like the run files.
ANALYSIS = [
    str(path)
    for path in code.files(
        *RESULT_ROOMS, suffixes=(".py", ".csv", ".sql", ".yaml", ".mplstyle")
    )
]
# If Snakemake deploys envs/environment.yaml by conda, that environment's Python comes first on PATH.
DEPLOYED = [method.name for method in workflow.deployment_settings.deployment_method]
PYTHON = "python" if "CONDA" in DEPLOYED else sys.executable
TIDEMARK = command_line(PYTHON)
