"""Counts of a commit of real systems are as they were kept; one operation more is named, and nothing else is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.conformance.conftest import OF_A_STACK
from tests.conformance.planted import LosesItsThirdCommit, OneMoreRequest, OneMoreStatement, OneMoreSyncAndFile
from typer.testing import CliRunner

from tidemark.cli.main import app
from tidemark.errors import CountsDiffer, OracleError
from tidemark.machine.strace import why_not
from tidemark.measure.anatomy import session, writers
from tidemark.paths import REPOSITORY, Workspace
from tidemark.runs.anatomy import Anatomy, Source
from tidemark.systems.base import System, Variant
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.ducklake.servers import DuckLake
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg

COMMIT = 10
# What DuckDB 1.5 asks of a connection before it takes it from its pool and before it gives it back.
OF_A_POOL = ("SELECT 1", "DISCARD ALL")
KEPT = REPOSITORY / "reference" / "anatomy"


@pytest.fixture(autouse=True)
def found_by_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client's process import the planted systems."""
    monkeypatch.setattr(writers, "IMPORTED_FROM", [*writers.IMPORTED_FROM, REPOSITORY])


def anatomy(kind: type[System], workspace: Workspace) -> Anatomy:
    variant = Variant(kind.name, kind, kind.Options(), kind.title)
    return session.take_apart(variant, {}, workspace, "thesis", [COMMIT], 1, 1)


def as_kept(kind: type[System], workspace: Workspace) -> Anatomy:
    """Return the counts of a system, which must be those that are kept of the stack `thesis`.

    Bytes follow the path of the workspace, which some files hold compressed.
    """
    found = anatomy(kind, workspace)
    if OF_A_STACK not in os.environ:
        assert differing(found, Anatomy.read(KEPT / f"{kind.name}.json")) == set()
    return found


def of(found: Anatomy, source: Source) -> dict[str, tuple[int, int]]:
    return found.commits[COMMIT][source]


def differing(found: Anatomy, kept: Anatomy) -> set[str]:
    return {said.partition(":")[0] for said in found.differences(kept) if not said.startswith("bytes ")}


def test_commit_of_delta_rs_and_one_more_file_and_sync(workspace: Workspace) -> None:
    plain, more = as_kept(DeltaRs, workspace), anatomy(OneMoreSyncAndFile, workspace)
    assert of(plain, Source.FILES) == {"data files": (1, 1), "log files": (1, 1)}
    assert of(more, Source.FILES) == {"data files": (2, 2), "log files": (1, 1)}
    assert set(plain.not_counted) >= {Source.SQL, Source.NETWORK}
    traced = {"fsync by the client", "create by the client"} if why_not() is None else set()
    assert differing(more, plain) == {"data files", *traced}


def test_lost_commit_is_an_error_that_counts_the_rows(workspace: Workspace) -> None:
    with pytest.raises(
        OracleError, match=r"20 commits wrote: 20 ids were acknowledged, the table holds 19 rows: 1 miss"
    ):
        anatomy(LosesItsThirdCommit, workspace)


def test_commit_of_ducklake_and_one_more_statement(workspace: Workspace) -> None:
    plain, more = as_kept(DuckLake, workspace), anatomy(OneMoreStatement, workspace)
    assert of(plain, Source.FILES) == {"data files": (1, 1)}
    for name, count in of(plain, Source.SQL).items():
        assert count[0] == count[1] > 0
        assert of(more, Source.SQL)[name] == (count[0] + 1, count[0] + 1)
    asked = [step.asked for step in plain.steps if OF_A_STACK not in os.environ or step.asked not in OF_A_POOL]
    assert asked[0].startswith("BEGIN") and asked[-1] == "COMMIT"
    assert (len(plain.steps),) * 2 == of(plain, Source.NETWORK)["round trips in series"]
    assert differing(more, plain) == {
        "SQL statements",
        "SQL transactions",
        "round trips to PostgreSQL",
        "round trips in series",
    }


def test_commit_of_pyiceberg_and_one_more_request(workspace: Workspace) -> None:
    plain, more = as_kept(IcebergPyIceberg, workspace), anatomy(OneMoreRequest, workspace)
    kinds = ("data", "manifest", "manifest list", "metadata")
    assert {name: of(plain, Source.FILES)[f"{name} files"] for name in kinds} == dict.fromkeys(kinds, (1, 1))
    server = "Iceberg REST catalog"
    assert of(plain, Source.NETWORK)[f"POST requests to {server}"] == (1, 1)
    assert f"GET requests to {server}" not in of(plain, Source.NETWORK)
    assert of(more, Source.NETWORK)[f"GET requests to {server}"] == (1, 1)
    assert {f"GET requests to {server}", f"round trips to {server}", "round trips in series"} <= differing(more, plain)
    behind = "round trips to PostgreSQL by the catalog's server"
    assert of(plain, Source.SERVERS)[behind] == of(plain, Source.SQL)["SQL statements"], "each statement is one"
    assert behind in differing(more, plain), "the server asks PostgreSQL for its answer to the request"
    assert of(more, Source.SERVERS)[behind] == of(more, Source.SQL)["SQL statements"]


def test_catalogs_server_writes_its_metadata_to_the_object_store(workspace: Workspace) -> None:
    kind, options = IcebergPyIceberg, {"storage": "s3"}
    variant = Variant(kind.name, kind, kind.Options(**options), kind.title)
    found = session.take_apart(variant, options, workspace, "thesis", [2], 1, 1, columns=40).commits[2]
    assert found[Source.FILES]["metadata files"] == (1, 1)
    assert found[Source.SERVERS]["PUT requests to SeaweedFS by the catalog's server"] == (1, 1)
    assert found[Source.NETWORK]["PUT requests to SeaweedFS"] == (3, 3), "data, manifest and manifest list"
    asked, waited = (found[Source.NETWORK][f"round trips in series{each}"][0] for each in (" to SeaweedFS", ""))
    assert waited > asked > found[Source.SERVERS]["PUT requests to SeaweedFS by the catalog's server"][0]


def test_command_compares_with_kept_counts(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(workspace.root)
    words, kept = ["anatomy", "null", "--commits", "1", "--runs", "1"], tmp_path / "kept.json"
    made = CliRunner().invoke(app, [*words, "--json"])
    assert made.exit_code == 0, made.output
    kept.write_text(made.stdout)
    assert CliRunner().invoke(app, [*words, "--against", str(kept)]).exit_code == 0
    content = json.loads(made.stdout)
    content["commits"]["1"]["files"] = {"data files": [2, 2]}
    kept.write_text(json.dumps(content))
    changed = CliRunner().invoke(app, [*words, "--against", str(kept)])
    assert isinstance(changed.exception, CountsDiffer) and CountsDiffer.exit_code == 15
    assert "data files: 0 a commit, kept 2 (commit 1)" in changed.stdout
