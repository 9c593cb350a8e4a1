"""What a run was made by: a digest that code changes and comments do not, and a machine that is told from others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tidemark.machine import inventory as inventory_module
from tidemark.machine.inventory import inventory
from tidemark.measure import identity
from tidemark.measure.identity import harness_digest, meaning

CODE = '"""A module."""\n\n\ndef twice(x: int) -> int:\n    """Two times."""\n    # why\n    return 2 * x\n'


def test_comments_layout_and_docstrings_do_not_count() -> None:
    told = '"""Another text."""\ndef twice(x: int) -> int:\n    """Doubled."""\n    return (2 * x)\n'
    assert meaning(CODE) == meaning(told)


def test_code_counts() -> None:
    assert meaning(CODE) != meaning(CODE.replace("2 * x", "3 * x"))
    assert meaning("def f() -> None:\n    '''said'''\n") == meaning("def f() -> None:\n    '''else'''\n")


def test_the_digest_follows_the_code_that_measures_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(harness_digest()) == 64
    for name in identity.MEASURING:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        if name.endswith(".py"):
            (tmp_path / name).write_text(CODE)
        else:
            (tmp_path / name).mkdir()
            (tmp_path / name / "module.py").write_text(CODE)
    (tmp_path / "analysis").mkdir()
    monkeypatch.setattr(identity, "PACKAGE", tmp_path)

    def digest() -> str:
        harness_digest.cache_clear()
        return harness_digest()

    before = digest()
    (tmp_path / "analysis" / "tables.py").write_text(CODE)
    assert digest() == before
    for name in ("measure/module.py", "services/module.py", "events.py"):
        (tmp_path / name).write_text(CODE.replace("2 * x", "4 * x"))
        assert digest() != before, name
        (tmp_path / name).write_text(CODE.replace("# why", "# because"))
        assert digest() == before, name
    (tmp_path / "services" / "Server.java").write_text("class Server {}")
    assert digest() != before
    monkeypatch.undo()
    harness_digest.cache_clear()


def test_machines_are_told_apart_and_no_id_is_readable(tmp_path: Path) -> None:
    here = inventory(tmp_path)
    assert len(here.identity) == 16 and here.identity == inventory(tmp_path).identity
    own = "0123456789abcdef0123456789abcdef"
    told = inventory_module._identity(here, own)
    others = [
        inventory_module._identity(here, "f123456789abcdef0123456789abcdef"),
        inventory_module._identity(replace(here, kernel="another"), own),
        inventory_module._identity(
            replace(here, memory_bytes=2 * here.memory_bytes), "0123456789abcdef0123456789abcdef"
        ),
        inventory_module._identity(replace(here, cpu_model="another"), own),
    ]
    assert len({told, *others}) == 5
    slightly = replace(here, memory_bytes=here.memory_bytes // (256 << 20) * (256 << 20) + (3 << 20))
    again = replace(here, memory_bytes=here.memory_bytes // (256 << 20) * (256 << 20))
    assert inventory_module._identity(slightly, None) == inventory_module._identity(again, None)
    assert "0123456789abcdef" not in told
