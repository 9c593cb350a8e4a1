# From the run files alone: the metrics database, the tables, the figures.


rule database:
    input:
        plan=f"{RESULTS}/plan.json",
        outcomes=OUTCOMES,
    output:
        f"{RESULTS}/metrics.duckdb",
    log:
        f"{RESULTS}/logs/database.log",
    shell:
        "{TIDEMARK} analyse database --results {RESULTS} --log {log}"


rule tables:
    input:
        database=rules.database.output,
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        f"{RESULTS}/tables/index.json",
    log:
        f"{RESULTS}/logs/tables.log",
    shell:
        "{TIDEMARK} analyse tables --results {RESULTS} --log {log}"


rule figures:
    input:
        database=rules.database.output,
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        f"{RESULTS}/figures/index.json",
    log:
        f"{RESULTS}/logs/figures.log",
    shell:
        "{TIDEMARK} analyse figures --results {RESULTS} --log {log}"
