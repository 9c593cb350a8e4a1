"""Tests of progress lines that a terminal redraws, and of what is logged without a terminal."""

from __future__ import annotations

import io
import re

import pytest

from tidemark.cli.steps import Tee
from tidemark.progress import OUTPUT, QUIET, Progress, StatusLine, tell


class Terminal(io.StringIO):
    """Terminal of 8 rows that interprets the control sequences of progress lines."""

    def isatty(self) -> bool:
        return True

    @property
    def rows(self) -> list[str]:
        rows, row, column = [""] * 8, 0, 0
        for part in re.findall(r"\x1b\[\d*[A-K]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if part == "\r":
                column = 0
            elif part == "\n":
                row, column = row + 1, 0
            elif part == "\x1b[K":
                rows[row] = rows[row][:column]
            elif part == "\x1b[J":
                rows[row:] = [rows[row][:column], *[""] * (7 - row)]
            elif part.startswith("\x1b["):
                row -= int(part[2:-1])
            else:
                rows[row] = rows[row][:column].ljust(column) + part + rows[row][column + len(part) :]
                column += len(part)
        return [each.rstrip() for each in rows if each.strip()]


def test_both_lines_are_redrawn_in_place() -> None:
    terminal = Terminal()
    foot = StatusLine(terminal)
    foot.show("null single: run 0 of 2: 10 of 15 s", "series 1 of 4; about 3 min left", label="run 0 of 2")
    foot.show("null single: oracle", "series 1 of 4; about 2 min left", label="oracle")
    assert terminal.rows == ["null single: oracle", "series 1 of 4; about 2 min left"]
    foot.clear()
    assert terminal.rows == []
    print("null single: complete", file=terminal)
    foot.show("null batch: starting", "series 2 of 4", label="starting")
    assert terminal.rows == ["null single: complete", "null batch: starting", "series 2 of 4"]


def test_quiet_output_goes_to_the_log_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OUTPUT, QUIET)
    monkeypatch.setattr("tidemark.progress.LOG_SECONDS", 0.0)
    terminal, log = Terminal(), io.StringIO()
    for stream in (terminal, Tee(terminal, log)):
        StatusLine(stream).show("null single: oracle", "series 1 of 4", label="oracle")
        Progress("figures", 9, stream=stream).update(3)
        monkeypatch.setattr("sys.stderr", stream)
        tell("null single: complete")
    assert terminal.getvalue() == ""
    assert log.getvalue() == "null single: oracle\nfigures: 33 % (3 of 9), 0 s left\nnull single: complete\n"


def test_output_printed_in_between_stays_above() -> None:
    terminal = Terminal()
    foot = StatusLine(terminal)
    foot.show("null single: run 0", "series 1 of 4", label="run 0")
    terminal.write("\r\x1b[Jtidemark: a word\n")
    foot.show("null single: run 1", "series 1 of 4", label="run 1")
    assert terminal.rows == ["tidemark: a word", "null single: run 1", "series 1 of 4"]


def test_line_that_is_too_long_is_cut_and_not_wrapped() -> None:
    terminal = Terminal()
    StatusLine(terminal).show("x" * 5000, label="x")
    assert len(terminal.rows[0]) < 1000


def test_without_a_terminal_progress_goes_only_to_the_log_and_messages_to_both(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, log = io.StringIO(), io.StringIO()
    stream = Tee(reader, log)
    foot = StatusLine(stream)
    for second in range(3):
        foot.show(f"null single: run 0 of 2: {second} of 15 s", "series 1 of 4", label="run 0 of 2")
    foot.show("null single: oracle", "series 1 of 4", label="oracle")
    monkeypatch.setattr("tidemark.progress.LOG_SECONDS", 0.0)
    Progress("tables", 10, stream=stream).update(1)
    foot.clear()
    print("null single: complete", file=stream)
    assert reader.getvalue() == "null single: complete\n"
    assert log.getvalue().splitlines() == [
        "null single: run 0 of 2: 0 of 15 s",
        "null single: oracle",
        "tables: 10 % (1 of 10), 0 s left",
        "null single: complete",
    ]


def test_on_a_terminal_the_log_has_no_redrawn_lines() -> None:
    terminal, log = Terminal(), io.StringIO()
    foot = StatusLine(Tee(terminal, log))
    foot.show("null single: run 0", "series 1 of 4", label="run 0")
    foot.clear()
    print("null single: complete", file=Tee(terminal, log))
    assert terminal.rows == ["null single: complete"]
    assert log.getvalue() == "null single: complete\n"
