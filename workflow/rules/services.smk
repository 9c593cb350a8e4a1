# Fetches and verifies the servers' programs, the workloads' tools and the stacks' environments, once.


rule provision:
    # The file's name lists the fetched programs: a plan that needs other programs requests another file.
    input:
        locks=lambda wildcards: [
            str(jar_lock(name)) for name in wildcards.names.split("+")
        ],
    output:
        ".tidemark/programs/{names}.json",
    log:
        "results/logs/provision-{names}.log",
    priority: BEFORE_SERIES
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
        names=lambda wildcards: wildcards.names.replace("+", " "),
    shell:
        "{params.tidemark} provision {params.names} --target {output} --log {log}"


rule tool:
    input:
        lock=lambda wildcards: str(tool_lock(wildcards.tool)),
    output:
        ".tidemark/tools/{tool}.json",
    log:
        "results/logs/tool-{tool}.log",
    priority: BEFORE_SERIES
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
    shell:
        "{params.tidemark} tool {wildcards.tool} --target {output} --log {log}"


rule stack:
    input:
        lock=lambda wildcards: str(lock_of(wildcards.stack)),
    output:
        ".tidemark/stacks/{stack}.json",
    log:
        "results/logs/stack-{stack}.log",
    priority: BEFORE_SERIES
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
    shell:
        "{params.tidemark} stack provide {wildcards.stack} --target {output} --log {log}"
