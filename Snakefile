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


if BOOT is None:

    rule all:
        default_target: True
        input:
            # Listed here as well: Snakemake does not remake inputs of steps that are up to date.
            OUTCOMES,
            rules.tables.output,
            rules.figures.output,
            rules.claims.output.json,
            rules.paper.output,
            rules.report.output,

else:

    rule all:
        # What this boot allows. The rule has a command because Snakemake calls no hook if nothing is left to do.
        default_target: True
        input:
            preparation(PLAN),
            [f"{spec.directory}/outcome.json" for spec in BOOT.series],
        shell:
            ":"


onstart:
    if is_plain():
        use_boot(PLAN, WORKSPACE)


onsuccess:
    if BOOT is not None and any(
        job.rule.name == "all" for job in workflow.dag.jobs
    ):
        sys.exit(wait_for_restart(PLAN, WORKSPACE, BOOT.waiting))


onerror:
    # A series that was requested by name waits for a boot: the step has reported it.
    failure = noted(WORKSPACE)
    if failure is not None and failure.exit_code == RebootNeeded.exit_code:
        sys.exit(failure.exit_code)


refuse_unknown(list(workflow.rules), PLAN.config)
