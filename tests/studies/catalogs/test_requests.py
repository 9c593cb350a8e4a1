"""Tests of the data set, of the order and outcomes of a window's requests, and of refused settings."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import make_plan
from tidemark.studies.catalogs.published import RAMP_USERS
from tidemark.studies.catalogs.record import ACKED, CASCADED, CONFLICT, FAILED, UNKNOWN, CatalogSettings, longest_path
from tidemark.studies.catalogs.requests import KINDS, READS, TABLES, Phase, Request, Tree, phases
from tidemark.studies.catalogs.window.generator import Played
from tidemark.studies.catalogs.window.samples import CatalogWindow, outcomes
from tidemark.systems.catalogs.base import Endpoint

SHIPPED = Path(__file__).parents[3] / "config.yaml"
ONLY = ["studies=[catalogs]", "protocol=smoke"]
PARTS = "create,create-ramp,read,update,mixed-50,mixed-99,open-50,open-99,hot,append,race,churn"


def settings(users: int = 8, depth: int = 3) -> CatalogSettings:
    return CatalogSettings(users, depth, PARTS, 400, 5.0, 100.0, 30, 20, 3, 12, 0, 30.0)


@pytest.mark.parametrize("depth, namespaces, tables", [(1, 1, 2), (4, 15, 16), (13, 8191, 8192), (16, 65535, 65536)])
def test_the_tree_has_the_sizes_that_the_report_prints(depth: int, namespaces: int, tables: int) -> None:
    tree = Tree(depth, "x")
    assert (tree.namespaces, tree.tables, tree.views) == (namespaces, tables, tables)
    assert sum(len(level) for level in tree.levels()) == namespaces
    assert len(list(tree.in_leaves("T", TABLES))) == tables


def test_parents_come_before_their_children() -> None:
    tree = Tree(4, "x")
    assert tree.path(0) == ("NS_0_x",) and tree.path(14) == ("NS_0_x", "NS_2", "NS_6", "NS_14")
    there: set[tuple[str, ...]] = {()}
    for phase in phases(settings(depth=4), tree, 1):
        if phase.step == "create namespace":
            assert phase.requests and all(request.path[:-1] in there for request in phase.requests)
            there |= {request.path for request in phase.requests}
    assert len(there) == 1 + 15


def test_namespaces_are_created_again_in_a_ramp_as_in_the_report() -> None:
    """Breadth first below a separate root, by the report's number of users for this depth, only with several users."""
    ramp = next(phase for phase in phases(settings(depth=7), Tree(7, "x"), 1) if phase.part == "create-ramp")
    assert ramp.ramp and ramp.users == RAMP_USERS - 16 + 7 and len(ramp.requests) == 127
    assert all(len(before.path) <= len(after.path) for before, after in pairwise(ramp.requests))
    there = {("NS_0_x",)}
    for request in ramp.requests:
        assert request.path[:-1] in there
        there.add(request.path)
    assert not any(phase.ramp for phase in phases(settings(users=1), Tree(3, "x"), 1))


def test_path_never_exceeds_the_stated_length() -> None:
    for depth in (1, 4, 13, 16):
        tree = Tree(depth, "warm_up")
        assert len(".".join(tree.path(tree.namespaces - 1))) <= longest_path(depth)


def test_same_seed_gives_the_same_requests() -> None:
    tree = Tree(3, "x")
    assert phases(settings(), tree, 7) == phases(settings(), tree, 7) != phases(settings(), tree, 8)


def test_mixes_have_the_configured_read_share_and_arrivals() -> None:
    asked = {phase.part: phase for phase in phases(settings(), Tree(3, "x"), 1)}
    shares = {
        part: sum(request.kind in READS for request in asked[part].requests) / len(asked[part].requests)
        for part in ("mixed-50", "mixed-99")
    }
    assert 0.42 < shares["mixed-50"] < 0.58 and shares["mixed-99"] > 0.96
    due = asked["open-50"].due_s
    assert due is not None and list(due) == sorted(due) and 400 < len(due) < 600 and due[-1] < 5.0
    kinds = Counter(request.kind.name for request in asked["mixed-50"].requests)
    assert len(kinds) == 12


def test_requests_follow_the_protocol() -> None:
    endpoint = Endpoint("http://here", "/v1/main")
    path = ("a", "b")
    assert Request(KINDS["create namespace"], path).address(endpoint) == "/v1/main/namespaces"
    assert Request(KINDS["create namespace"], path).fill == '["a", "b"]'
    assert Request(KINDS["list namespaces"], path).address(endpoint) == "/v1/main/namespaces?parent=a%1Fb"
    assert Request(KINDS["get view"], path, "v").address(endpoint) == "/v1/main/namespaces/a%1Fb/views/v"
    assert Request(KINDS["update table"], path, "t", "key").fill == "key"
    renaming = Request(KINDS["rename table"], path, "t", "new")
    assert renaming.address(endpoint) == "/v1/main/tables/rename"
    place = '{"namespace": ["a", "b"], "name": '
    assert renaming.fill == f'{{"source": {place}"t"}}, "destination": {place}"new"}}}}'
    assert Request(KINDS["drop table"], path, "t").address(endpoint) == "/v1/main/namespaces/a%1Fb/tables/t"


def test_outcome_of_a_request_follows_from_its_status() -> None:
    status = np.array([200, 204, 409, 404, 404, 400, 503, 0])
    creates = np.array([True, False, True, True, False, True, True, False])
    found = [ACKED, ACKED, CONFLICT, CASCADED, FAILED, FAILED, UNKNOWN, UNKNOWN]
    assert list(outcomes(status, creates)) == found


def test_conflict_of_a_retried_creation_is_unknown() -> None:
    """The first attempt may have succeeded despite a status of 500; a conflict is certain only without a retry."""
    create, append = Request(KINDS["create namespace"], ("a",)), Request(KINDS["append"], ("a",), "t", "1")
    window = CatalogWindow([Phase("create-ramp", "create-ramp", 1, (create, create, append), ramp=True)])
    columns = {name: [0, 0, 0] for name in ("start_ns", "elapsed_ns", "late_ns", "user", "doubled")}
    window.take(Played({**columns, "status": [409, 409, 409], "attempts": [1, 2, 50]}, [0], ()))
    assert list(window.columns["outcome"]) == [CONFLICT, UNKNOWN, CONFLICT]


def test_each_number_of_users_is_a_series() -> None:
    plan = make_plan(load(SHIPPED, ["studies=[catalogs]", "protocol=smoke"]))
    assert {spec.mode for spec in plan.series} == {"users-1", "users-8"}
    assert len(plan.series) == 8 and all(spec.dataset_directory == "" for spec in plan.series)
    again = make_plan(load(SHIPPED, ["studies=[catalogs]", "protocol=smoke", "dataset.rows=5"]))
    assert {spec.fingerprint for spec in again.series} == {spec.fingerprint for spec in plan.series}


@pytest.mark.parametrize(
    "users, killed", [("[1, 8, 50]", 8), ("[1, 4]", 4), ("[1]", 1), ("[16, 50]", 16), ("[2, 7, 9]", 7)]
)
def test_servers_are_killed_with_only_one_number_of_users(users: str, killed: int) -> None:
    sizes = f"catalogs.protocols={{smoke: {{depth: 2, users: {users}, runs: 1, kills: 4, window_seconds: 5}}}}"
    found = {spec.mode: CatalogSettings.of(spec).kills for spec in make_plan(load(SHIPPED, [*ONLY, sizes])).series}
    assert {mode for mode, kills in found.items() if kills} == {f"users-{killed}"} and max(found.values()) == 4
    parts = "catalogs.parts=[create, read]"
    assert not any(CatalogSettings.of(spec).kills for spec in make_plan(load(SHIPPED, [*ONLY, sizes, parts])).series)


def test_each_user_uses_only_its_own_tables() -> None:
    asked = [phase for phase in phases(settings(), Tree(3, "x"), 1) if phase.part == "churn"][1]
    assert asked.own and asked.users == 8 and len(asked.requests) == 5 * 2 * 8  # 12 tables give 2 per user
    for user in range(8):
        mine = asked.requests[user::8]
        kinds = [request.kind.name for request in mine]
        assert kinds.count("create table") == kinds.count("rename table") == 2 and kinds.count("drop table") == 1
        assert {request.name.split("_")[1] for request in mine if request.name} == {str(user)}
    can = frozenset(KINDS) - {"rename table"}
    assert "churn" not in {phase.part for phase in phases(settings(), Tree(3, "x"), 1, can) if phase.own}


@pytest.mark.parametrize(
    "override, said",
    [
        ("catalogs.systems={delta-rs: {}}", "found 'delta-rs', which is a table; allowed: "),
        ("catalogs.systems={rest-jdbc-postgre: {}}", "did you mean 'rest-jdbc-postgres'?"),
        ("catalogs.parts=[read]", "allowed: 'create', without which"),
        ("catalogs.parts=[create, crash, read]", "found 'crash' before 'read'; allowed: 'crash' at the end"),
        ("catalogs.protocols={smoke: {depth: 0, users: [1], runs: 1, window_seconds: 5}}", "at least 1"),
        ("catalogs.protocols={smoke: {depth: 3, users: [0], runs: 1, window_seconds: 5}}", "at least 1"),
        ("catalogs.systems={polaris: {}}", "key 'catalogs.systems.polaris': found 'polaris', but no Polaris; give"),
        ("streams.systems={rest-memory: {}}", "found 'rest-memory', which is a catalog server"),
    ],
)
def test_invalid_setting_is_refused_with_its_place(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match="--config: key") as caught:
        make_plan(load(SHIPPED, ["studies=[catalogs, streams]", "protocol=smoke", override]))
    assert said in str(caught.value)
