# What all rules share: the plan, the folders, and the command line that every step is a call of.

import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

# Snakemake imports pandas once a job has ended, and that would load Arrow if it found it: a library of the clients, which
# no process but theirs may keep in memory while a series is made cold.
sys.modules.setdefault("pyarrow", None)

from tidemark import code
from tidemark.errors import RebootNeeded
from tidemark.paths import Workspace
from tidemark.pipeline.failure import noted
from tidemark.pipeline.programs import provided, tools
from tidemark.pipeline.restarts import (
    preparation,
    this_boot,
    use_boot,
    wait_for_restart,
)
from tidemark.pipeline.rounds import asked_for
from tidemark.pipeline.runner import (
    RESULT_ROOMS,
    beside_input,
    command_line,
    enter,
    is_plain,
    results_folder,
)
from tidemark.pipeline.targets import refuse_unknown
from tidemark.services.programs.provision import jar_lock
from tidemark.services.programs.tools import tool_lock
from tidemark.software.stacks import lock_of, python

PLAN = enter(
    config,
    Path.cwd(),
    workflow.configfiles[0] if workflow.configfiles else "config.yaml",
)
WORKSPACE = Workspace(Path.cwd())
# What is measured more than once is measured in rounds, and 'tidemark all' makes results after each: all that results are
# made of follows from it. None, as for a plain 'snakemake': they are made of everything at once.
ROUND = asked_for(PLAN)
RESULTS = results_folder(PLAN.config)
# With 'cold: reboot' a plain 'snakemake' is given what this boot allows; 'tidemark all' knows it by itself.
BOOT = this_boot(PLAN, WORKSPACE) if is_plain() else None
# What results are made by, beside the run files that they are made from.
ANALYSIS = [str(path) for path in code.files(*RESULT_ROOMS)]
# Where Snakemake deploys envs/environment.yaml by conda, that one's Python comes first in the search path.
DEPLOYED = [method.name for method in workflow.deployment_settings.deployment_method]
PYTHON = "python" if "CONDA" in DEPLOYED else sys.executable
TIDEMARK = command_line(PYTHON)
