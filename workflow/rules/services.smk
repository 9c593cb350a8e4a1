# The servers' programs, fetched and verified once; each series starts its own servers from them.


rule provision:
    input:
        locks=[str(path) for path in sorted(ROOT.glob("envs/jars/*/jgo.lock.toml"))],
    output:
        ".tidemark/provisioned.json",
    log:
        "results/logs/provision.log",
    shell:
        "{TIDEMARK} provision --target {output} --log {log}"
