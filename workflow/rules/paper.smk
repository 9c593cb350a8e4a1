# Makes the ledger of claims, the paper and the report from tables and figures.


rule claims:
    input:
        database=rules.database.output,
        claims=[
            str(path)
            for path in sorted(ROOT.glob("src/tidemark/studies/*/claims.yaml"))
        ],
        code=ANALYSIS,
    output:
        json=f"{RESULTS}/claims.json",
        csv=report(
            f"{RESULTS}/claims.csv",
            caption="../report/claims.rst",
            category="Claims and paper",
            labels={"what": "claims"},
        ),
    log:
        f"{RESULTS}/logs/claims.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
        results=beside_input,
    shell:
        "{params.tidemark} analyse claims --results {params.results} --log {log}"


rule paper:
    input:
        tables=rules.tables.output,
        figures=rules.figures.output,
        claims=rules.claims.output.json,
        sources=[
            *(str(path) for path in sorted(ROOT.glob("paper/**/*.*"))),
            *(str(path) for path in sorted(ROOT.glob("src/tidemark/studies/*/*.typ"))),
        ],
        code=ANALYSIS,
    output:
        report(
            f"{RESULTS}/paper.pdf",
            caption="../report/paper.rst",
            category="Claims and paper",
            labels={"what": "paper"},
        ),
    log:
        f"{RESULTS}/logs/paper.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
        results=beside_input,
    shell:
        "{params.tidemark} analyse paper --results {params.results} --log {log}"


rule report:
    input:
        claims=rules.claims.output.json,
        page=[str(path) for path in sorted(ROOT.glob("workflow/report/page/*"))],
        code=ANALYSIS,
    output:
        report(
            f"{RESULTS}/report.html",
            caption="../report/page.rst",
            category="Claims and paper",
            labels={"what": "report"},
        ),
        answer=f"{RESULTS}/answer.txt",
    log:
        f"{RESULTS}/logs/report.log",
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
        results=beside_input,
    shell:
        "{params.tidemark} analyse report --results {params.results} --log {log}"
