# One rule per series, a system in a mode, or per block of rounds of all series. They share the machine, so each takes
# all of it, in the plan's order. (Threads alone do not separate them: if several become ready at once, Snakemake 9.14
# starts several.)

PROGRAMS = provided(PLAN)
OUTCOMES = [f"{spec.directory}/outcome.json" for spec in PLAN.until(ROUND)]
PLANNED = WORKSPACE.plan_of_round(ROUND.number) if ROUND else WORKSPACE.plan

for series in PLAN.jobs():

    spec = series[0]

    rule:
        name:
            (
                f"series_{spec.job}"
                if spec.in_round
                else f"series_{spec.position:03}_{spec.name}_{spec.mode}"
            ).replace("-", "_")
        input:
            specs=[f"{each.directory}/spec.json" for each in series],
            trips=(
                [rules.dataset.output.provenance, *rules.events.output]
                if spec.dataset_directory
                else []
            ),
            programs=ancient(PROGRAMS),
            tools=ancient(
                sorted(
                    {
                        f".tidemark/tools/{name}.json"
                        for each in series
                        for name in tools(each)
                    }
                )
            ),
            stack=ancient(f".tidemark/stacks/{spec.stack}.json"),
        output:
            [f"{each.directory}/outcome.json" for each in series],
        log:
            f"{RESULTS}/logs/{spec.job}/measure.log"
            if spec.in_round
            else f"{spec.directory}/measure.log",
        priority: 10_000 - spec.position
        conda:
            "../../envs/environment.yaml"
        threads: workflow.cores
        resources:
            machine=1,
        params:
            specs=" ".join(
                f"--spec {each.directory}/spec.json --position {each.position}"
                for each in series
            ),
            goal=(
                f"--precision {PLAN.goal.precision:g} --budget {PLAN.goal.minutes:g} --python {PYTHON}"
                if spec.in_round
                else ""
            ),
            tidemark=command_line(python(spec.stack, WORKSPACE, PYTHON)),
        shell:
            "{params.tidemark} measure {params.specs} {params.goal} --log {log}"


rule measured:
    # Fails if no series has a run, before any earlier result is replaced.
    input:
        plan=str(PLANNED.relative_to(WORKSPACE.root)),
        outcomes=OUTCOMES,
    output:
        ".tidemark/plan-measured.json",
    log:
        f"{RESULTS}/logs/measured.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
    shell:
        "{params.tidemark} measured --plan {input.plan} --target {output} --log {log}"


rule plan:
    # The plan of the results: the series that they are made of. Until all are measured, the earlier plan stays valid.
    input:
        plan=rules.measured.output,
    output:
        f"{RESULTS}/plan.json",
    log:
        f"{RESULTS}/logs/plan.log",
    conda:
        "../../envs/environment.yaml"
    shell:
        "cp {input.plan:q} {output:q} 2> {log:q}"
