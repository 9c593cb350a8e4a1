# The servers' programs and the stacks' environments, fetched and verified once.


rule provision:
    input:
        locks=[str(path) for path in sorted(ROOT.glob("envs/jars/*/jgo.lock.toml"))],
    output:
        ".tidemark/provisioned.json",
    log:
        "results/logs/provision.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
    shell:
        "{params.tidemark} provision --target {output} --log {log}"


rule stack:
    input:
        lock=lambda wildcards: str(lock_of(wildcards.stack)),
    output:
        ".tidemark/stacks/{stack}.json",
    log:
        "results/logs/stack-{stack}.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
    shell:
        "{params.tidemark} stack provide {wildcards.stack} --target {output} --log {log}"
