"""Identity of a run: a digest that changes with code and not with comments, and an id that distinguishes machines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tidemark import code
from tidemark.code import meaning
from tidemark.machine import inventory as inventory_module
from tidemark.machine.inventory import inventory
from tidemark.pipeline import plan
from tidemark.pipeline.plan import client_digest, harness_digest

CODE = '"""A module."""\n\n\ndef twice(x: int) -> int:\n    """Two times."""\n    # why\n    return 2 * x\n'


def test_comments_layout_and_docstrings_do_not_count() -> None:
    told = '"""Another text."""\ndef twice(x: int) -> int:\n    """Doubled."""\n    return (2 * x)\n'
    assert meaning(CODE) == meaning(told)


def test_code_counts() -> None:
    assert meaning(CODE) != meaning(CODE.replace("2 * x", "3 * x"))
    assert meaning("def f() -> None:\n    '''said'''\n") == meaning("def f() -> None:\n    '''else'''\n")


def test_imports_are_those_of_the_syntax_tree() -> None:
    sources = {path: path.read_text() for path in code.files("") if path.suffix == ".py"}
    assert len(sources) > 300
    assert {path: code.imports(source) for path, source in sources.items()} == {
        path: {name for name in named(source) if name.startswith("tidemark")} for path, source in sources.items()
    }


def named(source: str) -> Iterator[str]:
    """Yield what `source` imports, and string literals that look like the name of a module of the package."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"tidemark(\.\w+)+", str(node.value)):
            yield node.value


FILES = {
    "measure/series.py": "from tidemark.measure.helper import value\n",
    "measure/helper.py": CODE,
    "studies/one/workload.py": "import tidemark.services.broker\nfrom tidemark.studies.one.config import CONFIG\n",
    "studies/one/config.py": "from tidemark.paths import where\n",
    "studies/one/words.py": CODE,
    "services/broker.py": CODE,
    "services/database.py": CODE,
    "systems/lake.py": "def create():\n    from tidemark.services import database\n",
    "systems/other.py": CODE,
    "paths.py": CODE,
    "analysis/tables.py": CODE,
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a minimal package in place of the real one."""
    root = tmp_path / "tidemark"
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    monkeypatch.setattr(code, "PACKAGE", root)
    yield root
    forget()


def forget() -> None:
    for each in (code.led_to, code._text, code._meaning, plan.harness_digest, plan.client_digest):
        each.cache_clear()


def digests() -> tuple[str, str]:
    forget()
    return harness_digest("tidemark.studies.one.workload"), client_digest("tidemark.systems.lake")


def test_digests_of_the_real_package_cover_many_modules() -> None:
    forget()
    found = {path.name for path in plan._measuring(code.led_to("tidemark.studies.streams.study"))}
    assert {"study.py", "runner.py", "loop.py", "samples.py", "kafka.py", "producer.py", "consumer.py"} <= found
    assert "postgres.py" not in found and "table.py" not in found
    client = {path.name for path in code.led_to("tidemark.systems.ducklake.servers")}
    assert {"table.py", "postgres.py", "duckdb_client.py"} <= client and "loop.py" not in client
    assert len(harness_digest("tidemark.studies.streams.study")) == 64


@pytest.mark.parametrize(
    ("name", "harness", "client"),
    [
        ("measure/helper.py", True, False),
        ("services/broker.py", True, False),
        ("services/database.py", False, True),
        ("systems/lake.py", False, True),
        ("systems/other.py", False, False),
        ("studies/one/words.py", False, False),
        ("studies/one/config.py", False, False),
        ("paths.py", False, False),
        ("analysis/tables.py", False, False),
    ],
)
def test_digest_follows_the_imported_code(package: Path, name: str, harness: bool, client: bool) -> None:
    before = digests()
    (package / name).write_text(FILES[name] + "\nMORE = 1\n")
    after = digests()
    assert (after[0] != before[0], after[1] != before[1]) == (harness, client)
    (package / name).write_text(FILES[name] + "\n# a remark\n")
    assert digests() == before


def test_java_source_counts_with_the_module_next_to_it(package: Path) -> None:
    before = digests()
    (package / "services" / "Server.java").write_text("class Server {}")
    assert digests() != before


def test_machines_are_distinguished_and_no_id_is_readable(tmp_path: Path) -> None:
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
