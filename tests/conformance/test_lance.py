"""Lance tables: manifests read without Lance agree with Lance's own view."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidemark.systems import lance as manifests
from tidemark.systems.lance import Lance

from .trips import YELLOW, trips

OpenTable = Callable[..., Any]


def test_manifest_is_read_as_lance_reads_it(open_table: OpenTable) -> None:
    system = open_table(Lance)
    system.create(YELLOW)
    for first in range(200):  # version and fragment numbers take two bytes
        system.write(trips(YELLOW, 1 + first % 2, 2 * first))
    import lance

    for merged in (False, True):
        if merged:
            system.merge()
        table = lance.dataset(str(system._location))
        path = manifests.manifest_paths(system._location)[-1]
        found = manifests.read_manifest(path)
        assert manifests.version_of(path) == table.version == system.commits()
        assert found.rows == table.count_rows() == system.visible_rows() == 300
        assert list(found.files) == [file.path for each in table.get_fragments() for file in each.data_files()]
        (said,) = [each["timestamp"] for each in table.versions() if each["version"] == table.version]
        assert abs(said.timestamp() * 1000 - found.at_ms) < 1


def test_file_that_is_no_manifest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / f"{manifests.LAST_VERSION - 3}.manifest"
    path.write_bytes(b"\0" * 64)
    assert manifests.version_of(path) == 3
    with pytest.raises(ValueError, match="does not end as a manifest"):
        manifests.read_manifest(path)
