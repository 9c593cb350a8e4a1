"""Tests of wrong arguments and paths: one line that names them, and an exit code that the help lists."""

from __future__ import annotations

import errno
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.runs.runset import DUCKLAKE, write_run_set

from tidemark.cli import main as commands
from tidemark.cli.main import app, main
from tidemark.cli.words import OLD_NAMES, VALUES, explained
from tidemark.errors import of_the_machine

REPOSITORY = Path(__file__).parents[2]
CONFIG = ("--configfile", str(REPOSITORY / "config.yaml"))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder of the command: with results, a folder, a file, and a zip file that is no archive."""
    monkeypatch.chdir(tmp_path)
    write_run_set(tmp_path, (DUCKLAKE,), window_s=1.0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("no JSON, no Parquet and no zip\n")
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as file:
        file.writestr("a", "b")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run a command; return its exit code and standard error, which must be one line and the only output."""
    monkeypatch.setattr("sys.argv", ["tidemark", *words])
    code = main()
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 1 and err.startswith("tidemark: "), (words, code, out, err)
    return code, err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("list", "series", "--protocol", "smoke"), "no option --protocol; write --config protocol=smoke"),
        (("list", "series", "--protocol=smoke"), "no option --protocol; write --config protocol=smoke"),
        (("show", "config", "--keep-tables"), "no option --keep-tables; write --config keep_tables=VALUE"),
        (("list", "series", "--modes", "[batch]"), "no option --modes; write --config streams.modes=[batch]"),
        (("show", "config", "--warm", "1s"), "no option --warm; write --config freshness.warm=1s"),
        (("list", "series", "--xml"), "no option --xml; './tidemark list series --help' says more"),
        (("show", "config", "--configfil", "x"), "no option --configfil; did you mean --config or --configfile?"),
        (("overhead", "--x"), "no option --x;"),
        (("list", "series", "-n"), "no option -n;"),
        (("list", "series", "smoke"), "found 'smoke'; allowed: options, and values such as --config protocol=smoke"),
        (("show", "config", "--config", "protocol=smoke", "now"), "found 'now'"),
        (("list", "versions", "--protocol", "smoke"), "no option --protocol; './tidemark list versions --help'"),
        (("show", "config", "--schema", "--study", "streams"), "found '--study' beside --schema"),
        (("show", "config", "--schema", "now"), "found 'now' beside --schema"),
        (("doctor", "now"), "unexpected extra argument"),
        (("nope",), "No such command 'nope'"),
        (("-q", "-v", "list", "stacks"), "found both --quiet and --verbose; allowed: one of them"),
    ],
)
def test_unknown_argument_is_refused(
    words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, line = run(monkeypatch, capsys, *words)
    assert code == 2 and message in line


def test_values_may_follow_one_option_or_several(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tidemark", "show", "config", *CONFIG, "--config", "protocol=smoke", "seed=7"])
    assert main() == 0
    assert "protocol: smoke" in (shown := capsys.readouterr().out) and "seed: 7" in shown


KEPT = ("--reference", str(REPOSITORY / "reference"))
WRONG_PLACES = [
    (("compare", "/nope", "results"), 2, "/nope: is not there"),
    (("compare", "results", "/nope"), 2, "/nope: is not there"),
    (("compare", "results", "file"), 14, "file: not a zip file"),
    (("compare", "results", "folder"), 14, "folder: found no plan.json"),
    (("compare", "results", "results", "--target", "file"), 2, "'file' is a file"),
    (("compare", "results", "results", "--target", "file/x"), 2, "file/x/streams: not a directory"),
    (("site", "--reference", "/nope"), 2, "/nope: found no reference.json in it; allowed: a folder that"),
    (("site", "/nope", *KEPT), 2, "/nope: is not there"),
    (("site", "odd.zip", *KEPT), 14, "odd.zip"),
    (("site", "folder", *KEPT), 14, "folder: found no plan.json"),
    (("site", *KEPT, "--output", "results"), 2, "results: holds something else than a site"),
    (("site", *KEPT, "--output", "file"), 2, "'file' is a file"),
    (("site", *KEPT, "--output", "file/x"), 2, "file: file exists; name another place"),
    (("open", "/nope"), 2, "/nope: is not there; './tidemark all' makes the report"),
    (("open", "folder"), 2, "'folder' is a directory"),
    (("archive", "folder"), 2, "'folder' is a directory"),
    (("archive", "odd.zip"), 2, "odd.zip: exists already; name another file, or replace it with --force"),
    (("archive", "file/a.zip"), 2, "file: file exists; name another place"),
    (("archive", "a.zip", "--results", "/nope"), 2, "'/nope' does not exist"),
    (("archive", "a.zip", "--results", "folder"), 14, "folder/plan.json"),
    (("keep", "/nope"), 2, "/nope: is not there"),
    (("keep", "results", "--target", "file"), 2, "'file' is a file"),
    (("docs", "--target", "file"), 2, "'file' is a file"),
    (("artifact", "/nope"), 2, "'/nope' does not exist"),
    (("artifact", "file"), 2, "'file' is a file"),
    (("artifact", "folder", "--reference", "folder"), 2, "folder/README.md: is not there; allowed: a folder with"),
    (("artifact", str(REPOSITORY), "--reference", "/nope"), 2, "'/nope' does not exist"),
    (("list", "claims", "--results", "file"), 2, "file: found neither plan.json nor reference.json"),
    (("list", "claims", "--study", "stream"), 2, "found no study 'stream'"),
    (("list", "claims", "--verdict", "held"), 2, "--verdict: found 'held'; allowed: reproduced, not-reproduced, "),
    (("compare", "results", "results", "--study", "stream"), 2, "found no study 'stream'"),
    (("compare", "results", "results", "--verdict", "held"), 2, "--verdict: found 'held'; allowed: reproduced, "),
    (("compare", "results", "results", "--verdict", "reproduced"), 2, "--verdict: found no claims; allowed where "),
    (("completion", "tcsh"), 2, "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    (("show", "claim", "inlining-single", "--results", "/nope"), 2, "/nope: is not there"),
    (("show", "claim", "nope"), 2, "found no claim 'nope'"),
    (("show", "system", "duklake"), 2, "'./tidemark list systems' lists them; did you mean 'ducklake'?"),
    (
        ("show", "study", "stream"),
        2,
        "found no study 'stream'; './tidemark list studies' lists them; did you mean 'streams'?",
    ),
    (("show", "results", "--results", "/nope"), 2, "/nope: found no table of systems; allowed: a results folder"),
    (("show", "results", "--study", "catalogs"), 2, "results: found no table of systems of catalogs"),
    (("show", "config", "--study", "stream", *CONFIG), 2, "found no study 'stream'"),
    (("advise", "--rate", "5", "--fresh", "10s", "--results", "/nope"), 2, "/nope: is not there"),
    (("anatomy", "nope"), 2, "found no system 'nope'; './tidemark list systems' lists them"),
    (("anatomy", "null-catalog"), 2, "found 'null-catalog', which is "),
    (("anatomy", "null", "--commits", "0,1"), 2, "--commits: found '0,1'; allowed: numbers from 1"),
    (("anatomy", "null", "--option", "storage"), 2, "--option: found 'storage'; allowed: KEY=VALUE"),
    (("anatomy", "null", "--option", "storage=s3"), 2, "found an option that 'null' does not have"),
    (("anatomy", "delta-rs", "--option", "rtt_ms=1", "--option", "storage=s3"), 2, "--option: found rtt_ms"),
    (("anatomy", "null", "--against", "/nope"), 2, "/nope: cannot be read: No such file"),
    (("anatomy", "null", "--against", "file"), 2, "file: cannot be read as an anatomy"),
    (("anatomy", "null", "--stack", "nope"), 2, "found 'nope'; allowed: current"),
    (("releases", "nope", "1.0"), 2, "found no system 'nope'; './tidemark list systems' lists them"),
    (("releases", "null", "1.0"), 2, "found 'null', whose client is in no stack; allowed: "),
    (("releases", "delta-rs", "newest"), 2, "VERSION: found 'newest'; allowed: a release of deltalake, such as 1.5.5"),
    (("releases", "delta-rs", "1.5", "--commits", "0"), 2, "--commits: found '0'; allowed: numbers from 1"),
    (("releases", "delta-rs", "1.6.6", "1.5.0"), 2, "found 1.6.6 before 1.5.0; allowed: each release once, oldest"),
    (("releases", "delta-rs", "1.5.0", "1.5.0"), 2, "found 1.5.0 before 1.5.0; allowed: each release once, oldest"),
    (("releases", "delta-rs", "precision=2"), 2, "VERSION: found none; allowed: releases of deltalake"),
    (("releases", "delta-rs", "1.5.0", "1.6.6"), 2, "config.yaml: cannot be read"),
    (("releases", "delta-rs", "1.5.0", "1.6.6", *CONFIG, "--config", "precision=x"), 2, "key 'precision': found"),
    (("releases", "delta-rs", "1.5", "--stack", "nope"), 2, "found 'nope'; allowed: current"),
    (("finding", "nope"), 2, "found no finding 'nope'"),
    (("finding", "power-failure", "--keep", "file"), 2, "'file' is a file"),
    (("tool", "nope"), 2, "found no tool 'nope'"),
    (("tool", "locust", "--target", "folder"), 2, "'folder' is a directory"),
    (("provision", "nope"), 2, "found no server 'nope'"),
    (("stack", "test", "nope"), 2, "found 'nope'; allowed: current"),
    (("stack", "provide", "nope", "--target", "x"), 2, "found 'nope'; allowed: current"),
    (("stack", "add", "new", "--from", "/nope"), 2, "'/nope' does not exist"),
    (("list", "series", "--configfile", "folder"), 2, "folder: cannot be read: Is a directory"),
    (("measure", "--spec", "/nope"), 2, "'/nope' does not exist"),
    (("measure", "--spec", "file"), 2, "file: cannot be read as JSON"),
    (("measure", "--spec", "file", "--log", "file/x.log"), 2, "file: file exists; name another place"),
    (("events", "--trips", "/nope", "--target", "x"), 2, "'/nope' does not exist"),
    (("events", "--trips", "file", "--target", "x"), 3, "file: cannot be read as Parquet"),
    (("dataset", "--target", "x", "--config", "file"), 2, "file: cannot be read"),
    (("unpack", "--archive", "/nope", "--target", "x"), 2, "'/nope' does not exist"),
    (("unpack", "--archive", "file", "--target", "x"), 14, "file: not a zip file"),
    (("unpack", "--archive", "odd.zip", "--target", "file"), 2, "'file' is a file"),
    (("widths", "--number", "4", "--study", "streams", "--target", "x"), 14, ".tidemark/plan.json: not there"),
    (("measured", "--plan", "/nope", "--target", "x"), 14, "/nope: not there"),
    (("measured", "--plan", "file", "--target", "x"), 14, "file: "),
    (("analyse", "nope"), 2, "found 'nope'; allowed: database"),
    (("analyse", "tables", "--results", "/nope"), 2, "'/nope' does not exist"),
    (("analyse", "tables", "--results", "folder"), 14, "folder/plan.json"),
    (("list", "series", "--preset", "nope"), 2, "--config: key 'preset': found 'nope'; allowed: advise, "),
    (("new", "system", "mine", "--target", "/nope"), 2, "'/nope' does not exist"),
    (
        ("new", "system", "My_System", "--target", "folder"),
        2,
        "found the name 'My_System'; allowed: lower-case letters",
    ),
    (("new", "system", "null", "--target", "folder"), 2, "found the name 'null', which a system has"),
    (("resume",), 13, "nothing waits for a restart here"),
]


@pytest.mark.parametrize(("words", "code", "message"), WRONG_PLACES)
def test_unusable_path_is_named_in_one_line(
    words: tuple[str, ...],
    code: int,
    message: str,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = {path: path.stat().st_size for path in place.rglob("*") if path.is_file()}
    more = CONFIG if words[0] == "artifact" or "--preset" in words else ()
    ended, line = run(monkeypatch, capsys, *words, *more)
    assert (ended, message in line) == (code, True), (ended, line)
    assert before.items() <= {path: path.stat().st_size for path in place.rglob("*") if path.is_file()}.items()


def test_every_command_with_a_path_is_tested_with_a_wrong_one() -> None:
    """A new command must be added to WRONG_PLACES as well."""
    every = set(current())
    tried = {words[: len(path)] for words, *_ in WRONG_PLACES for path in every if words[: len(path)] == path}
    as_series = {("overhead",), ("clean",)}  # these read the configuration like 'list series'
    lists = {("list", kind) for kind in ("systems", "studies", "presets", "stacks", "findings", "versions")}
    assert every - lists - as_series - {("all",), ("doctor",), ("test",)} == tried


def current() -> Iterator[tuple[str, ...]]:
    """Yield the words of each command that is not an old name of another."""
    for name, command in typer.main.get_group(app).commands.items():
        below = getattr(command, "commands", None)
        if below is not None:
            yield from ((name, each) for each, one in below.items() if not one.hidden)
        elif name not in OLD_NAMES:
            yield (name,)


@pytest.mark.parametrize("old", OLD_NAMES)
def test_old_name_takes_what_the_new_one_takes(old: str) -> None:
    commands: Any = typer.main.get_group(app).commands
    words = OLD_NAMES[old].split()
    if words == ["--version"]:
        return
    new = commands[words[0]] if len(words) == 1 else commands[words[0]].commands[words[1]]
    assert commands[old].hidden and not new.hidden
    assert [each.opts for each in commands[old].params] == [each.opts for each in new.params]


def test_old_name_says_the_new_one_and_refuses_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tidemark", "studies"])
    assert main() == 0
    out, err = capsys.readouterr()
    assert "streams: " in out and err.startswith("tidemark: 'studies' is now './tidemark list studies'")
    assert run(monkeypatch, capsys, "studies", "nope")[0] == 2


def test_existing_archive_is_replaced_only_with_force(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, capsys, "archive", "odd.zip")[0] == 2
    monkeypatch.setattr("sys.argv", ["tidemark", "archive", "odd.zip", "--force"])
    assert main() == 0 and "wrote odd.zip" in capsys.readouterr().out
    assert "results/plan.json" in zipfile.ZipFile(place / "odd.zip").namelist()


def test_internal_error_keeps_its_traceback(place: Path) -> None:
    """Errors about paths on the command line are reported in one line; all others keep their traceback."""
    named = PermissionError(errno.EACCES, "Permission denied", str(place / "folder" / "below"))
    assert str(explained(named, ["archive", "folder"])).endswith("folder/below: permission denied; name another place")
    assert str(explained(named, ["archive", "--target=folder"])).endswith("name another place")
    assert explained(named, ["archive", "file"]) is None
    assert explained(named, ["archive", "."]) is None
    assert explained(KeyError("x"), ["archive", "folder"]) is None
    full = OSError(errno.ENOSPC, "No space left on device", "x")
    assert explained(full, ["archive", "folder"]) is None, "not the command line's fault"
    of_the_disk = of_the_machine(full)
    assert of_the_disk is not None and of_the_disk.exit_code == 9


def test_commands_with_values_are_those_with_hints() -> None:
    group: Any = typer.main.get_group(commands.app)
    with_values = set()
    for path in current():
        command = group
        for word in path:
            command = command.commands[word]
        if any(parameter.metavar == VALUES for parameter in command.params):
            with_values.add(" ".join(path))
    assert with_values == {"all", "list series", "show config", "overhead", "clean", "releases"}
