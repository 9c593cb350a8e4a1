# What is made of tables and figures: the ledger of claims, the paper and the report.


rule claims:
    input:
        database=rules.database.output,
        claims=ROOT / "paper/claims.yaml",
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        "results/claims.json",
    log:
        "results/logs/claims.log",
    shell:
        "{TIDEMARK} analyse claims --log {log}"


rule paper:
    input:
        tables=rules.tables.output,
        figures=rules.figures.output,
        claims=rules.claims.output,
        sources=[str(path) for path in sorted(ROOT.glob("paper/**/*.*"))],
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        "results/paper.pdf",
    log:
        "results/logs/paper.log",
    shell:
        "{TIDEMARK} analyse paper --log {log}"


rule report:
    input:
        claims=rules.claims.output,
        page=[str(path) for path in sorted(ROOT.glob("workflow/report/page/*"))],
        code=[str(path) for path in sorted(ROOT.glob("src/tidemark/analysis/*.py"))],
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    shell:
        "{TIDEMARK} analyse report --log {log}"
