# Makes the metrics database, the tables and the figures, from the run files alone.


rule database:
    input:
        plan=f"{RESULTS}/plan.json",
        outcomes=OUTCOMES,
        code=ANALYSIS,
    output:
        database=f"{RESULTS}/metrics.duckdb",
        resampled=f"{RESULTS}/resampled.arrow",
    log:
        f"{RESULTS}/logs/database.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
        results=beside_input,
    shell:
        "{params.tidemark} analyse database --results {params.results} --log {log}"


rule tables:
    input:
        database=rules.database.output,
        code=ANALYSIS,
    output:
        report(
            directory(f"{RESULTS}/tables"),
            patterns=["{study}/{name}.csv", "{name}.csv"],
            caption="../report/table.rst",
            category="Tables",
            labels={"table": "{name}"},
        ),
    log:
        f"{RESULTS}/logs/tables.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
        results=beside_input,
    shell:
        "{params.tidemark} analyse tables --results {params.results} --log {log}"


rule figures:
    input:
        database=rules.database.output,
        code=ANALYSIS,
    output:
        report(
            directory(f"{RESULTS}/figures"),
            patterns=["{study}/{name}.svg"],
            caption="../report/figure.rst",
            category="Figures",
            labels={"figure": "{name}"},
        ),
    log:
        f"{RESULTS}/logs/figures.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
        results=beside_input,
    shell:
        "{params.tidemark} analyse figures --results {params.results} --log {log}"
