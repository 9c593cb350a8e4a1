import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path.insert(0, str(ROOT / "src"))

from tidemark.pipeline import enter


configfile: "config.yaml"


PLAN = enter(config, Path.cwd(), workflow.configfiles[0] if workflow.configfiles else "config.yaml")
# Each step replaces its shell, so that a step is the child of the pipeline itself and ends with it.
TIDEMARK = f"PYTHONPATH={ROOT}/src exec {sys.executable} -m tidemark"


include: "workflow/rules/dataset.smk"
include: "workflow/rules/services.smk"
include: "workflow/rules/series.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/paper.smk"


rule all:
    default_target: True
    input:
        rules.tables.output,
        rules.figures.output,
        rules.claims.output,
