"""Tables in a folder whose name has characters that a URI encodes or that libraries treat specially."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidemark.errors import SystemFailure
from tidemark.measure import table_calls
from tidemark.measure.table_calls import hold, read
from tidemark.systems.base import Capability, System
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

from .checks import assert_holds, write_all
from .conftest import ODD
from .test_conformance import visible_files
from .trips import YELLOW, trips

# Parts of a path that a client cannot open, and that are refused.
REFUSED = {"delta-duckdb": "%d", "delta-rs": "%20"}


@pytest.mark.parametrize("name", list(of_kind(TableSystem)))
def test_table_can_lie_in_a_folder_of_any_name(name: str, open_table: Callable[..., System]) -> None:
    below = ODD.replace(REFUSED.get(name, "%20"), "")
    system = open_table(of_kind(TableSystem)[name], below=below)
    assert isinstance(system, TableSystem)
    written = write_all(system, [trips(YELLOW, 10, 10 * i) for i in range(12)])
    assert_holds(system, written)
    if Capability.ASKED in system.capabilities | system.of_release():
        hold(read(system), 120)
    if Capability.HISTORY in system.capabilities:
        assert [each.rows for each in system.history()] == 12 * [10] and system.visible_rows() == 120
    table_calls.flush(system)
    assert system.footprint().data_files == len(system.data_files())
    assert set(system.data_files()) <= set(visible_files(system.context.directory))
    table_calls.merge(system)
    assert_holds(system, written)


@pytest.mark.parametrize(("name", "part"), REFUSED.items())
def test_folder_that_a_client_cannot_open_is_refused(name: str, part: str, open_table: Callable[..., System]) -> None:
    system = open_table(of_kind(TableSystem)[name], below=f"a{part}b")
    with pytest.raises(SystemFailure, match=f"found '{part}' in the path .*a{part}b/table-1/table"):
        system.create(YELLOW)
