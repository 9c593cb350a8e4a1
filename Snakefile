configfile: "config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"


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
