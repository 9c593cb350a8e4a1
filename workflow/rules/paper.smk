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
