# Makes the trips with ids, and measures their size as events.


rule dataset:
    output:
        trips=f"{PLAN.dataset_directory}/trips.parquet",
        provenance=f"{PLAN.dataset_directory}/dataset.json",
    log:
        "results/logs/dataset.log",
    priority: BEFORE_SERIES
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
        folder=lambda wildcards, output: Path(output.trips).parent,
    shell:
        "{params.tidemark} dataset --target {params.folder} --log {log}"


rule events:
    input:
        trips=rules.dataset.output.trips,
    output:
        f"{PLAN.dataset_directory}/events.json",
    log:
        "results/logs/events.log",
    priority: BEFORE_SERIES
    conda:
        "../../envs/environment.yaml"
    params:
        tidemark=TIDEMARK,
    shell:
        "{params.tidemark} events --trips {input.trips} --target {output} --log {log}"
