import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from tidemark.paths import Workspace
from tidemark.pipeline import beside_input, enter, results_folder
from tidemark.stacks import lock_of, python


configfile: "config.yaml"


report: "workflow/report/workflow.rst"


PLAN = enter(
    config,
    Path.cwd(),
    workflow.configfiles[0] if workflow.configfiles else "config.yaml",
)
WORKSPACE = Workspace(Path.cwd())
RESULTS = results_folder(PLAN.config)


def tidemark(interpreter):
    """The command line as a rule calls it: it replaces its shell, so it is our own child and ends with us."""
    return f"PYTHONPATH={ROOT}/src exec {interpreter} -m tidemark"


TIDEMARK = tidemark(sys.executable)


if PLAN.config.archive is None:

    include: "workflow/rules/dataset.smk"
    include: "workflow/rules/services.smk"
    include: "workflow/rules/series.smk"

else:

    include: "workflow/rules/archive.smk"


include: "workflow/rules/analysis.smk"
include: "workflow/rules/paper.smk"


rule all:
    default_target: True
    input:
        # Named here as well: what only later steps need is not made again while those are up to date.
        OUTCOMES,
        rules.tables.output,
        rules.figures.output,
        rules.claims.output.json,
        rules.paper.output,
        rules.report.output,
