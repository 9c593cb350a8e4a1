# From the run files alone: the metrics database, the tables, the figures.


rule database:
    input:
        plan="results/plan.json",
        outcomes=OUTCOMES,
    output:
        "results/metrics.duckdb",
    log:
        "results/logs/database.log",
    shell:
        "{TIDEMARK} analyse database --log {log}"


rule tables:
    input:
        database=rules.database.output,
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        "results/tables/index.json",
    log:
        "results/logs/tables.log",
    shell:
        "{TIDEMARK} analyse tables --log {log}"


rule figures:
    input:
        database=rules.database.output,
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        "results/figures/index.json",
    log:
        "results/logs/figures.log",
    shell:
        "{TIDEMARK} analyse figures --log {log}"
