"""Output of Snakemake's plug-in for real runs of Snakemake, and the log that it keeps."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake_interface_logger_plugins.tests import TestLogHandlerBase

from snakemake_logger_plugin_tidemark import LOG, LogHandler
from tidemark.paths import REPOSITORY
from tidemark.pipeline.failure import LOCKED
from tidemark.progress import OUTPUT, QUIET, VERBOSE

SNAKEFILE = """
rule all:
    input: "tables.txt", "{last}"
rule dataset:
    output: "trips.txt"
    log: "dataset.log"
    shell: "echo here >&2; touch {output}"
rule series_000_null_single:
    input: "trips.txt"
    output: "outcome.json"
    shell: "echo null single: complete >&2; touch {output}"
rule tables:
    input: "outcome.json"
    output: "tables.txt"
    shell: "touch {output}"
rule wrong:
    input: "tables.txt"
    output: "wrong.txt"
    log: "wrong.log"
    shell: "exit 3"
"""


class TestPlugin(TestLogHandlerBase):
    """Snakemake's own suite for such plug-ins."""

    __test__ = True

    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def get_log_handler_cls(self) -> type[LogHandler]:
        return LogHandler

    def get_log_handler_settings(self) -> None:
        return None


def snakemake(folder: Path, *words: str, last: str = "tables.txt", terminal: bool = False) -> tuple[int, str]:
    """Return the exit code of Snakemake in `folder` and its output, to a pipe or to a terminal."""
    (folder / "Snakefile").write_text(SNAKEFILE.replace("{last}", last))
    (folder / ".tidemark").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--logger", "tidemark", *words]
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), LOCKED: "1"}
    if not terminal:
        done = subprocess.run(
            command, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60
        )
        return done.returncode, done.stdout
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    return process.wait(60), said.decode()


def failure(folder: Path) -> dict[str, object]:
    noted: dict[str, object] = json.loads((folder / ".tidemark" / "failed-step").read_text())
    return noted


def test_without_a_terminal_each_job_is_a_line_and_the_log_has_the_rest(tmp_path: Path) -> None:
    code, said = snakemake(tmp_path)
    assert code == 0, said
    lines = said.splitlines()
    assert [line for line in lines if line.startswith("tidemark: ")] == [
        "tidemark: dataset: done",
        "tidemark: tables: done",
    ]
    # Snakemake reports a job from a thread of its own, and the next job may have written already.
    assert [line for line in lines if not line.startswith("tidemark: ")] == ["here", "null single: complete"]
    log = (tmp_path / LOG).read_text()
    assert all(words in log for words in ("Building DAG of jobs", "Job stats:", "rule dataset:", "4 of 4 steps (100%)"))
    code, said = snakemake(tmp_path)
    assert code == 0 and said == "tidemark: Nothing to be done (all requested files are present and up to date).\n"
    assert (tmp_path / LOG).read_text().startswith(log), "it is kept"
    assert list((tmp_path / ".snakemake" / "log").glob("*.log")), "and so is Snakemake's own"


def test_quiet_shows_errors_and_verbose_all_that_snakemake_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(OUTPUT, QUIET)
    code, said = snakemake(tmp_path, last="wrong.txt")
    assert code == 1 and said.splitlines() == [
        "here",
        "null single: complete",
        "tidemark: wrong: failed; its log is wrong.log",
    ]
    monkeypatch.setenv(OUTPUT, VERBOSE)
    code, said = snakemake(tmp_path, last="wrong.txt")
    assert code == 1 and "rule wrong:" in said and "tidemark: " not in said and failure(tmp_path)["step"] == "wrong"


def test_terminal_shows_the_current_step_and_removes_it_again(tmp_path: Path) -> None:
    code, said = snakemake(tmp_path, terminal=True)
    assert code == 0, said
    assert "\r\x1b[Jdataset (step 1 of 4)\r" in said and "\r\x1b[Jtables (step 3 of 4)\r" in said
    assert "series_000" not in said and "done (" not in said and "Building DAG" not in said
    assert said.rstrip("\r\n").endswith("\r\x1b[J"), "nothing is left of it"


def test_failed_step_is_reported_with_its_log_and_recorded(tmp_path: Path) -> None:
    code, said = snakemake(tmp_path, last="wrong.txt")
    assert code == 1
    assert said.splitlines()[-1] == "tidemark: wrong: failed; its log is wrong.log"
    assert said.count("wrong") == 2 and "RuleException" not in said, said
    noted = failure(tmp_path)
    assert (noted["step"], noted["log"], noted["exit_code"]) == ("wrong", "wrong.log", 1)
    assert "Error in rule wrong" in (tmp_path / LOG).read_text()


def test_reason_recorded_by_a_step_itself_is_kept(tmp_path: Path) -> None:
    (tmp_path / ".tidemark").mkdir()
    own = {"step": "wrong", "reason": "no room", "log": "wrong.log", "exit_code": 9}
    (tmp_path / ".tidemark" / "failed-step").write_text(json.dumps(own))
    assert snakemake(tmp_path, last="wrong.txt")[0] == 1
    assert failure(tmp_path) == own


def test_errors_of_snakemake_itself_are_shortened(tmp_path: Path) -> None:
    code, said = snakemake(tmp_path, last="nobody-makes-this.txt")
    assert code == 1
    assert said.startswith("tidemark: MissingInputException") and "nobody-makes-this.txt" in said
    assert len(said.splitlines()) <= 8
    assert failure(tmp_path)["step"] == "Snakemake" and failure(tmp_path)["log"] == str(LOG)


def test_locked_directory_is_reported(tmp_path: Path) -> None:
    assert snakemake(tmp_path)[0] == 0
    (tmp_path / "tables.txt").unlink()
    (tmp_path / ".snakemake" / "locks").mkdir(exist_ok=True)
    (tmp_path / ".snakemake" / "locks" / "0.output.lock").write_text("tables.txt\n")
    code, said = snakemake(tmp_path)
    assert code == 1
    assert "LockException" in said and "--unlock" in said


def test_unknown_option_is_reported(tmp_path: Path) -> None:
    code, said = snakemake(tmp_path, "--no-such-option")
    assert code == 2
    assert "--no-such-option" in said.splitlines()[-1]


def test_plugin_is_light_and_silent_unless_requested(tmp_path: Path) -> None:
    """Run Snakemake without it: the output is as usual, although Snakemake imports the plug-in to inspect it."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE.replace("{last}", "tables.txt"))
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Building DAG of jobs" in done.stderr
    assert not (tmp_path / LOG).exists()
    loaded = "import sys, snakemake_logger_plugin_tidemark; print([n for n in sys.modules if n.startswith('tidemark')])"
    done = subprocess.run([sys.executable, "-c", loaded], env=environ, capture_output=True, text=True, check=True)
    assert "measure" not in done.stdout and "services" not in done.stdout


def test_full_log_device_hides_no_message(tmp_path: Path) -> None:
    (tmp_path / LOG).parent.mkdir(parents=True)
    (tmp_path / LOG).symlink_to("/dev/full")
    code, said = snakemake(tmp_path, last="wrong.txt")
    assert code == 1
    assert "tidemark: wrong: failed; its log is wrong.log" in said
    assert "Traceback" not in said and "Logging error" not in said
