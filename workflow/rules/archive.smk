# Instead of measuring, unpacks the run files of an archive, each checked against its SHA-256.

OUTCOMES = []


rule unpack:
    input:
        archive=str(PLAN.config.archive),
    output:
        plan=f"{RESULTS}/plan.json",
    log:
        f"{RESULTS}/logs/unpack.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
        root=lambda wildcards, output: Path(output.plan).parents[1],
    shell:
        "{params.tidemark} unpack --archive {input.archive:q} --target {params.root} --log {log}"
