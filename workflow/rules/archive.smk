# In place of measuring: the run files of an archive, each checked against its SHA-256.

OUTCOMES = []


rule unpack:
    input:
        str(PLAN.config.archive),
    output:
        f"{RESULTS}/plan.json",
    params:
        root=str(Path(RESULTS).parent),
    log:
        f"{RESULTS}/logs/unpack.log",
    shell:
        "{TIDEMARK} unpack --archive {input:q} --target {params.root} --log {log}"
