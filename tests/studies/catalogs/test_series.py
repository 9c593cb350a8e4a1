"""Tests of the series that can run, and of the tools that each needs in addition to its stack."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from tidemark.config import load
from tidemark.pipeline.plan import make_plan, tools
from tidemark.runs.spec import HasSettings, SeriesSpec
from tidemark.studies.catalogs.record import CatalogSettings, users_of
from tidemark.studies.catalogs.study import Catalogs
from tidemark.systems.registry import variant_of

CONFIG = Path(__file__).parents[3] / "config.yaml"


def planned(*systems: str) -> list[SeriesSpec]:
    given = ", ".join(f"{name}: {{}}" for name in systems)
    return list(make_plan(load(CONFIG, ["studies=[catalogs]", f"catalogs.systems={{{given}}}"])).series)


def test_packages_of_one_client_do_not_outdate_other_series() -> None:
    series = planned("pyiceberg-sql-sqlite", "ducklake-catalog-postgres", "rest-jdbc-postgres")
    assert {(spec.system, tools(spec)) for spec in series} == {
        ("pyiceberg-sql-sqlite", ("locust", "sqlalchemy")),
        ("ducklake-catalog-postgres", ("locust",)),
        ("rest-jdbc-postgres", ("locust",)),
    }
    alone = {spec.system: spec.lock_sha256 for spec in planned("rest-jdbc-postgres")}
    assert alone.items() <= {spec.system: spec.lock_sha256 for spec in series}.items()


def test_single_process_file_is_measured_with_one_user() -> None:
    series = planned("ducklake-catalog-file", "ducklake-catalog-sqlite")
    for spec in series:
        reason = Catalogs.unavailable(spec, variant_of(spec))
        can = spec.system == "ducklake-catalog-sqlite" or users_of(spec) == 1
        assert (reason is None) is can and (can or f"not with {users_of(spec)}" in str(reason))
    assert {users_of(spec) for spec in series} == {1, 8, 50}


def test_series_of_an_earlier_plan_tells_its_users_by_its_label() -> None:
    """Plans of earlier versions have no settings; those that the label does not encode are unknown."""
    earlier = cast(HasSettings, SimpleNamespace(mode="users-50", settings=()))
    assert users_of(earlier) == 50 and CatalogSettings.of(earlier).depth is None
