"""A system added as one file: the suite tests it unchanged, and an incomplete one is reported in one line.

'./tidemark new system' writes the file, and docs/new-system.md has the two methods that it leaves open.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

REPOSITORY = Path(__file__).parents[2]
BODIES = re.findall(r"```python\n(.*?)\n```", (REPOSITORY / "docs" / "new-system.md").read_text(), re.DOTALL)
FILLED = {name: indent(body, " " * 8).strip() for name, body in zip(("write", "read"), BODIES, strict=True)}
# Adds the folder to those in which the registry looks for systems.
WITH = "import sys, tidemark.systems; tidemark.systems.__path__.append(sys.argv.pop(1)); "
TESTS = f"{WITH}import pytest; sys.exit(pytest.main(sys.argv[1:]))"
COMMAND = f"{WITH}from tidemark.cli.main import main; sys.exit(main())"


def run(code: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, str(folder), *words],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the file of a new system, its two methods filled in."""
    folder = tmp_path_factory.mktemp("plain")
    made = run(COMMAND, folder, "new", "system", "plain-parquet", "--target", str(folder))
    assert made.returncode == 0 and "fill in 'write' and 'read'" in made.stdout, made
    path = folder / "plain_parquet.py"
    path.write_text(filled(path.read_text(), *FILLED))
    return folder


def filled(source: str, *methods: str) -> str:
    """Return the source with the body of each of `methods` in place of the error that it raises."""
    for name in methods:
        start = source.index(" raise NotImplementedError", source.index(f"def {name}(")) + 1
        source = source[:start] + FILLED[name] + source[source.index("\n", start) :]
    return source


def test_system_of_one_file_conforms(cache: Path, plain: Path) -> None:
    assert cache
    suite = ("tests/conformance/core", "tests/conformance/test_conformance.py")
    done = run(TESTS, plain, "-q", *suite, "-k", "plain-parquet")
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.splitlines()[-1].split()[0]) > 15, done.stdout
    listed = run(COMMAND, plain, "list", "systems")
    assert "plain-parquet: Plain Parquet; format Parquet, client PyArrow, commit by none" in listed.stdout


def test_a_method_that_is_left_open_is_reported_by_its_name(cache: Path, tmp_path: Path) -> None:
    assert cache
    folder = tmp_path
    run(COMMAND, folder, "new", "system", "plain-parquet", "--target", str(folder))
    path = folder / "plain_parquet.py"
    path.write_text(filled(path.read_text(), "write"))
    done = run(
        TESTS, folder, "-q", "tests/conformance/test_conformance.py", "-k", "plain-parquet and writes_after_a_read"
    )
    assert done.returncode == 1 and "NotImplementedError: plain-parquet: read " in done.stdout, done.stdout


def test_client_with_undeclared_packages_is_reported(plain: Path, tmp_path: Path) -> None:
    source = (plain / "plain_parquet.py").read_text()
    forgotten = '    @classmethod\n    def versions(cls) -> dict[str, str]:\n        return {"duckdb": "1.4.4"}\n\n'
    (tmp_path / "plain_parquet.py").write_text(source.replace("    def create(", f"{forgotten}    def create("))
    words = ("-q", "tests/conformance/test_conformance.py", "-k", "plain-parquet and libraries")
    done = run(TESTS, tmp_path, *words)
    assert done.returncode == 1 and "its class names none of them in 'libraries'" in done.stdout, done.stdout


def half(*without: str) -> str:
    """Return the source of a new system without the members of the given names."""
    source = (REPOSITORY / "src/tidemark/systems/new_system.txt").read_text()
    source = source.replace("CLASS", "PlainParquet").replace("NAME", "plain-parquet").replace("TITLE", "Plain Parquet")
    blocks = source.split("\n\n")
    kept = [block for block in blocks if not any(f"def {name}(" in block for name in without)]
    lines = (line for line in "\n\n".join(kept).splitlines() if line.split(" = ")[0].strip() not in without)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (half("format", "durability"), "class PlainParquet (system 'plain-parquet') lacks format, durability;"),
        (half("write", "footprint"), "lacks footprint(), write();"),
        (half("title").replace("footprint(self)", "end(self)"), "lacks title, footprint();"),
        (half().replace('"plain-parquet"', '"null"'), "the name 'null' is that of "),
        (half().replace("(TableSystem)", "(TabelSystem)"), "plain_parquet.py:17: cannot be imported (NameError: "),
        (half().replace("footprint(self)", "footprint(self"), "plain_parquet.py:58: cannot be imported (SyntaxError: "),
        (half() + "\n    class Options:\n        level = 3\n", "lacks Options as a dataclass;"),
    ],
)
@pytest.mark.parametrize("command", ["systems", "series"])
def test_incomplete_system_is_reported_with_its_missing_members(
    source: str, message: str, command: str, tmp_path: Path
) -> None:
    (tmp_path / "plain_parquet.py").write_text(source)
    done = run(COMMAND, tmp_path, "list", command)
    assert done.returncode == 2 and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1 and message in done.stderr and "plain_parquet.py" in done.stderr, done
