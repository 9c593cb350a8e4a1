# From the run files alone: the metrics database, the tables, the figures.


rule database:
    input:
        plan=f"{RESULTS}/plan.json",
        outcomes=OUTCOMES,
    output:
        f"{RESULTS}/metrics.duckdb",
    log:
        f"{RESULTS}/logs/database.log",
    params:
        results=beside_input,
    shell:
        "{TIDEMARK} analyse database --results {params.results} --log {log}"


rule tables:
    input:
        database=rules.database.output,
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        report(
            directory(f"{RESULTS}/tables"),
            patterns=["{name}.csv"],
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{name}"},
        ),
    log:
        f"{RESULTS}/logs/tables.log",
    params:
        results=beside_input,
    shell:
        "{TIDEMARK} analyse tables --results {params.results} --log {log}"


rule figures:
    input:
        database=rules.database.output,
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        report(
            directory(f"{RESULTS}/figures"),
            patterns=["{name}.svg"],
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{name}"},
        ),
    log:
        f"{RESULTS}/logs/figures.log",
    params:
        results=beside_input,
    shell:
        "{TIDEMARK} analyse figures --results {params.results} --log {log}"
