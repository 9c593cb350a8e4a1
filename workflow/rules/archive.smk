# In place of measuring: the run files of an archive, each checked against its SHA-256.

OUTCOMES = []


rule unpack:
    input:
        str(PLAN.config.archive),
    output:
        f"{RESULTS}/plan.json",
    log:
        f"{RESULTS}/logs/unpack.log",
    params:
        root=str(Path(RESULTS).parent),
    shell:
        "{TIDEMARK} unpack --archive {input:q} --target {params.root} --log {log}"
