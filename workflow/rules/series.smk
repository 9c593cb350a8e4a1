# One rule per series: a system in a mode. The series share the machine, so each takes all of it, in the plan's order.
# (Threads alone do not separate them: if several become ready at once, Snakemake 9.14 starts several.)

PROGRAMS = provided(PLAN)
OUTCOMES = [f"{spec.directory}/outcome.json" for spec in PLAN.until(ROUND)]
PLANNED = WORKSPACE.plan_of_round(ROUND.number) if ROUND else WORKSPACE.plan

for spec in PLAN.series:

    rule:
        name:
            f"series_{spec.position:03}_{spec.name}_{spec.mode}".replace("-", "_")
        input:
            spec=f"{spec.directory}/spec.json",
            trips=(
                [rules.dataset.output.provenance, *rules.events.output]
                if spec.dataset_directory
                else []
            ),
            programs=ancient(PROGRAMS),
            tools=ancient([f".tidemark/tools/{name}.json" for name in tools(spec)]),
            stack=ancient(f".tidemark/stacks/{spec.stack}.json"),
        output:
            f"{spec.directory}/outcome.json",
        log:
            f"{spec.directory}/measure.log",
        priority: 10_000 - spec.position
        conda:
            "../../envs/environment.yaml"
        threads: workflow.cores
        resources:
            machine=1,
        params:
            position=spec.position,
            tidemark=command_line(python(spec.stack, WORKSPACE, PYTHON)),
        shell:
            "{params.tidemark} measure --spec {input.spec} --position {params.position} --log {log}"


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
