"""A system added as one file: the suite tests it unchanged, and an incomplete one is reported in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PLAIN = Path(__file__).with_name("plain")
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


def test_system_of_one_file_conforms(cache: Path) -> None:
    assert cache
    suite = ("tests/conformance/core", "tests/conformance/test_conformance.py")
    done = run(TESTS, PLAIN, "-q", *suite, "-k", "plain-parquet")
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.splitlines()[-1].split()[0]) > 15, done.stdout
    listed = run(COMMAND, PLAIN, "systems")
    assert "plain-parquet: Plain Parquet; format Parquet, client PyArrow, commit by none" in listed.stdout


def test_client_with_undeclared_packages_is_reported(tmp_path: Path) -> None:
    source = (PLAIN / "plain_parquet.py").read_text()
    forgotten = '    @classmethod\n    def versions(cls) -> dict[str, str]:\n        return {"duckdb": "1.4.4"}\n\n'
    (tmp_path / "plain_parquet.py").write_text(source.replace("    def create(", f"{forgotten}    def create("))
    words = ("-q", "tests/conformance/test_conformance.py", "-k", "plain-parquet and libraries")
    done = run(TESTS, tmp_path, *words)
    assert done.returncode == 1 and "its class names none of them in 'libraries'" in done.stdout, done.stdout


def half(*without: str) -> str:
    """Return the source of the system without the members of the given names."""
    blocks = (PLAIN / "plain_parquet.py").read_text().split("\n\n")
    kept = [block for block in blocks if not any(f"def {name}(" in block for name in without)]
    lines = (line for line in "\n\n".join(kept).splitlines() if line.split(" = ")[0].strip() not in without)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (half("format", "durability"), "class PlainParquet (system 'plain-parquet') lacks format, durability;"),
        (half("write", "close"), "lacks close(), write();"),
        (half("title").replace("close(self)", "end(self)"), "lacks title, close();"),
        (half().replace('"plain-parquet"', '"null"'), "the name 'null' is that of "),
        (half().replace("(TableSystem)", "(TabelSystem)"), "plain_parquet.py:18: cannot be imported (NameError: "),
        (half().replace("close(self)", "close(self"), "plain_parquet.py:58: cannot be imported (SyntaxError: "),
        (half() + "\n    class Options:\n        level = 3\n", "lacks Options as a dataclass;"),
    ],
)
@pytest.mark.parametrize("command", ["systems", "series"])
def test_incomplete_system_is_reported_with_its_missing_members(
    source: str, message: str, command: str, tmp_path: Path
) -> None:
    (tmp_path / "plain_parquet.py").write_text(source)
    done = run(COMMAND, tmp_path, command)
    assert done.returncode == 2 and done.stdout == "", done
    assert len(done.stderr.splitlines()) == 1 and message in done.stderr and "plain_parquet.py" in done.stderr, done
