"""Results of the study: its tables, figures, claims, chapter, and the columns of the report's first table."""

from __future__ import annotations

from tidemark.analysis.metrics import require
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.claims.claim_data import ClaimData, LossClaimData
from tidemark.results.claims.measures import GENERAL, Measure, Measured, measure
from tidemark.results.publication import Publication
from tidemark.results.reference.run_files import RunFiles
from tidemark.results.report.summary_table import SystemRuns, of_series, questions_of
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.assembly import chapter_of, claims_of, figure_specs_of, tables_of
from tidemark.studies.freshness import metrics, tables
from tidemark.studies.freshness.capacity import capacity
from tidemark.studies.freshness.findings import Writer
from tidemark.studies.freshness.frontier import policies
from tidemark.studies.freshness.record import FreshnessRecord
from tidemark.studies.freshness.samples import COLUMNS
from tidemark.studies.freshness.settings import FreshnessSettings
from tidemark.studies.freshness.study import STUDY
from tidemark.studies.study import Results

PERCENT = 100.0
ALIKE_MS = 1000  # commit interval that all systems are measured with
DEFAULT_INTERVAL_S = 300  # of Iceberg's sink for Kafka Connect, iceberg.control.commit.interval-ms: 300000


OWN: dict[str, Measure] = {}


@measure(OWN)
def not_once_after_kills(claim_data: ClaimData, system: str) -> Measured:
    """Return the percentage of events that are missing or present more than once after kills."""
    killed = metrics.killed(claim_data.measures.run_set, claim_data.stack)
    own = [each for each in killed if each.system == system]
    return claim_data.measures.value(metrics.WRONG, claim_data.require_runs(own, f"{system} with kills")).scaled(
        PERCENT
    ), "%"


def _alike(asked: SystemRuns) -> Series:
    """Return the series with commits every second at the middle one of its rates, which is the most usual."""
    own = [(FreshnessSettings.of(each), each) for each in asked.series if FreshnessSettings.of(each).is_steady]
    timed = [(settings.rate, each) for settings, each in own if settings.rules.interval_ms == ALIKE_MS and each.runs]
    require(timed, own[0][1].missing() if own else "not measured")
    return sorted(timed, key=lambda pair: pair[0])[len(timed) // 2][1]


def _climbed(asked: SystemRuns) -> Series:
    return asked.first(lambda each: FreshnessSettings.of(each).steps > 0, "its rate was not raised")


def _killed(asked: SystemRuns) -> Series:
    return asked.first(lambda each: FreshnessSettings.of(each).kills > 0, "nothing was killed")


def _note(asked: SystemRuns, _mode: str | None) -> str:
    series = _alike(asked)
    return f"{FreshnessSettings.of(series).rate:,} events/s, commits {metrics.policy_of(series)}"


def _capacity(asked: SystemRuns, _mode: str | None) -> BootstrapEstimate:
    return capacity(_climbed(asked).counted_runs).replicates


def _bound(asked: SystemRuns, _mode: str | None) -> str:
    series = _climbed(asked)
    return f"{'at least; ' if capacity(series.counted_runs).is_least else ''}commits {metrics.policy_of(series)}"


def _kills(asked: SystemRuns, _mode: str | None) -> str:
    return f"{FreshnessSettings.of(_killed(asked)).kills} kills"


QUESTIONS = questions_of(
    __file__,
    {
        "age-median": of_series(metrics.SEEN_P50, _alike),
        "age-p99": of_series(metrics.SEEN_P99, _alike),
        "age-cpu": of_series(metrics.CPU, _alike),
        "capacity": _capacity,
        "once-killed": of_series(metrics.WRONG, _killed, PERCENT),
    },
    {"age-median": _note, "age-p99": _note, "age-cpu": _note, "capacity": _bound, "once-killed": _kills},
)


def _values(run_set: RunSet) -> dict[str, str]:
    given = run_set.config.values
    return {
        "freshness-look": f"{given['look_ms']:,}",
        "freshness-warm": f"{given['warm']:,}",
        "freshness-connect-default": f"{DEFAULT_INTERVAL_S}",
    }


RESULTS = Results(
    quantities=metrics.QUANTITIES,
    publication=Publication(
        key="iceberg-kafka-connect",
        origin="Documentation",
        software={"Kafka Connect": "not stated", "Iceberg REST catalog": "not stated"},
    ),
    tables=tables_of(tables),
    figure_specs=figure_specs_of("tidemark.studies.freshness.figures"),
    claims=claims_of(
        STUDY,
        metrics.QUANTITIES,
        GENERAL | OWN,
        LossClaimData,
        set_up_bytes=2.2e9,
        remarks=("Documentation prints no ages and no rates: what it promises is judged, and nothing else.",),
    ),
    paper=chapter_of(
        STUDY, _values, Writer, lambda writer: (writer.ages, writer.capacity, writer.behind, writer.killed)
    ),
    notes=lambda _run_set: tuple(tables.NOTES("unequal")),
    questions=QUESTIONS,
    costs=metrics.costs,
    policies=policies,
    run_files=RunFiles((COLUMNS,), (FreshnessRecord,)),
)
