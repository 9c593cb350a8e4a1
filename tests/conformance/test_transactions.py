"""Appends through the endpoint for several tables: the oracle finds those acknowledged and then overwritten."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from tidemark.software.tools import provide_tool, tool_python
from tidemark.studies.catalogs.record import ACKED
from tidemark.studies.catalogs.requests import APPENDING, CREATIONS, TRANSACTING, Kind, Phase, Request
from tidemark.studies.catalogs.window.generator import TOOL, Generator
from tidemark.studies.catalogs.window.oracle import Ledger, look
from tidemark.studies.catalogs.window.samples import outcomes
from tidemark.systems.base import Context
from tidemark.systems.catalogs.base import Entity
from tidemark.systems.catalogs.rest import RestSqlite

from .conftest import OF_A_STACK, Servers
from .test_catalogs import succeed

pytestmark = pytest.mark.skipif(OF_A_STACK in os.environ, reason="no library of a stack writes in it")
USERS, APPENDS = 8, 60
NAMESPACE, TABLE, _ = CREATIONS


@pytest.mark.parametrize("kind", [APPENDING, TRANSACTING], ids=lambda kind: str(kind.name))
def test_acknowledged_append_that_was_overwritten_is_lost(servers: Servers, tmp_path: Path, kind: Kind) -> None:
    """Expect losses in transactions only: the reference server checks their condition, but not again when it writes."""
    provide_tool(TOOL, servers.workspace)
    options = RestSqlite.Options()
    services = {needed: servers.get(needed) for needed in RestSqlite.needs_for(options)}
    system = RestSqlite(Context(tmp_path, services, 1), options)
    root = (kind.name.replace(" ", "_"),)
    made = succeed(system, [Request(NAMESPACE, root), Request(TABLE, root, "T_0")])
    appends = tuple(Request(kind, root, "T_0", str(number + 1)) for number in range(APPENDS))
    phase = Phase("append", "append", USERS, appends)
    python = tool_python(TOOL, servers.workspace)
    with Generator.of_rest(python, tmp_path, [phase], system.endpoint, 30.0) as generator:
        assert generator.play(0, time.monotonic() + 120) is not None
        status = np.array(generator.played().columns["status"])
    found = [str(each) for each in outcomes(status, np.zeros(APPENDS, bool))]
    acknowledged = {each.key for each, outcome in zip(appends, found, strict=True) if outcome == ACKED}
    reader = system.open_reader()
    finding = look(reader, Ledger.of([*made, *appends], [ACKED] * len(made) + found), root)
    table = reader.fetch(Entity.TABLE, root, "T_0")
    assert table is not None and acknowledged
    assert finding.lost_updates == len(acknowledged - set(table.snapshots))
    assert (finding.lost_updates > 0) is (kind is TRANSACTING), (finding.named, sorted(set(found)))
    assert finding.holds is (kind is APPENDING)
