# What is made of tables and figures: the ledger of claims, the paper and the report.


rule claims:
    input:
        database=rules.database.output,
        claims=ROOT / "paper/claims.yaml",
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        f"{RESULTS}/claims.json",
    log:
        f"{RESULTS}/logs/claims.log",
    shell:
        "{TIDEMARK} analyse claims --results {RESULTS} --log {log}"


rule paper:
    input:
        tables=rules.tables.output,
        figures=rules.figures.output,
        claims=rules.claims.output,
        sources=[str(path) for path in sorted(ROOT.glob("paper/**/*.*"))],
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        f"{RESULTS}/paper.pdf",
    log:
        f"{RESULTS}/logs/paper.log",
    shell:
        "{TIDEMARK} analyse paper --results {RESULTS} --log {log}"


rule report:
    input:
        claims=rules.claims.output,
        page=[str(path) for path in sorted(ROOT.glob("workflow/report/page/*"))],
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        f"{RESULTS}/report.html",
    log:
        f"{RESULTS}/logs/report.log",
    shell:
        "{TIDEMARK} analyse report --results {RESULTS} --log {log}"
