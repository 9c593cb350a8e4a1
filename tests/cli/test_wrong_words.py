"""Tests of wrong arguments and paths: one line that names them, and an exit code that the help lists."""

from __future__ import annotations

import errno
import zipfile
from pathlib import Path

import pytest
import typer
from tests.runs.runset import DUCKLAKE, write_run_set

from tidemark.cli import main as commands
from tidemark.cli.main import app, main
from tidemark.cli.words import VALUES, explained
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
        (("series", "--protocol", "smoke"), "no option --protocol; write --config protocol=smoke"),
        (("series", "--protocol=smoke"), "no option --protocol; write --config protocol=smoke"),
        (("config", "--keep-tables"), "no option --keep-tables; write --config keep_tables=VALUE"),
        (("series", "--modes", "[batch]"), "no option --modes; write --config streams.modes=[batch]"),
        (("config", "--warm", "1s"), "no option --warm; write --config freshness.warm=1s"),
        (("series", "--xml"), "no option --xml; './tidemark --help' lists the commands"),
        (("config", "--configfil", "x"), "no option --configfil; did you mean --config or --configfile?"),
        (("bench", "--x"), "no option --x;"),
        (("series", "-n"), "no option -n;"),
        (("series", "smoke"), "found 'smoke'; allowed: options, and values such as --config protocol=smoke"),
        (("config", "--config", "protocol=smoke", "now"), "found 'now'"),
        (("versions", "--protocol", "smoke"), "no option --protocol; './tidemark --help'"),
        (("doctor", "now"), "unexpected extra argument"),
        (("nope",), "No such command 'nope'"),
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
    monkeypatch.setattr("sys.argv", ["tidemark", "config", *CONFIG, "--config", "protocol=smoke", "seed=7"])
    assert main() == 0
    assert "protocol: smoke" in (shown := capsys.readouterr().out) and "seed: 7" in shown


WRONG_PLACES = [
    (("compare", "/nope", "results"), 2, "/nope: is not there"),
    (("compare", "results", "/nope"), 2, "/nope: is not there"),
    (("compare", "results", "file"), 14, "file: not a zip file"),
    (("compare", "results", "folder"), 14, "folder: found no plan.json"),
    (("compare", "results", "results", "--target", "file"), 2, "'file' is a file"),
    (("compare", "results", "results", "--target", "file/x"), 2, "file/x/streams: not a directory"),
    (("gallery", "/nope"), 2, "/nope: is not there"),
    (("gallery", "odd.zip"), 14, "odd.zip"),
    (("gallery", "results", "--target", "folder"), 2, "'folder' is a directory"),
    (("gallery", "results", "--target", "file/x.html"), 2, "file: file exists; name another place"),
    (("archive", "folder"), 2, "'folder' is a directory"),
    (("archive", "odd.zip"), 2, "odd.zip: exists already; name another file, or replace it with --force"),
    (("archive", "file/a.zip"), 2, "file: file exists; name another place"),
    (("archive", "a.zip", "--results", "/nope"), 2, "'/nope' does not exist"),
    (("archive", "a.zip", "--results", "folder"), 14, "folder/plan.json"),
    (("reference", "/nope"), 2, "/nope: is not there"),
    (("reference", "results", "--target", "file"), 2, "'file' is a file"),
    (("artifact", "/nope"), 2, "'/nope' does not exist"),
    (("artifact", "file"), 2, "'file' is a file"),
    (("artifact", "folder", "--reference", "folder"), 2, "folder/README.md: is not there; allowed: a folder with"),
    (("artifact", str(REPOSITORY), "--reference", "/nope"), 2, "'/nope' does not exist"),
    (("claims", "--results", "file"), 2, "file: found neither plan.json nor reference.json"),
    (("claim", "inlining-single", "--results", "/nope"), 2, "/nope: is not there"),
    (("claim", "nope"), 2, "found no claim 'nope'"),
    (("plan", "--rate", "5", "--fresh", "10s", "--results", "/nope"), 2, "/nope: is not there"),
    (("finding", "nope"), 2, "found no finding 'nope'"),
    (("finding", "power-failure", "--keep", "file"), 2, "'file' is a file"),
    (("tool", "nope"), 2, "found no tool 'nope'"),
    (("tool", "locust", "--target", "folder"), 2, "'folder' is a directory"),
    (("provision", "nope"), 2, "found no server 'nope'"),
    (("stack", "test", "nope"), 2, "found 'nope'; allowed: current"),
    (("stack", "provide", "nope", "--target", "x"), 2, "found 'nope'; allowed: current"),
    (("stack", "add", "new", "--from", "/nope"), 2, "'/nope' does not exist"),
    (("series", "--configfile", "folder"), 2, "folder: cannot be read: Is a directory"),
    (("measure", "--spec", "/nope"), 2, "'/nope' does not exist"),
    (("measure", "--spec", "file"), 2, "file: cannot be read as JSON"),
    (("measure", "--spec", "file", "--log", "file/x.log"), 2, "file: file exists; name another place"),
    (("events", "--trips", "/nope", "--target", "x"), 2, "'/nope' does not exist"),
    (("events", "--trips", "file", "--target", "x"), 3, "file: cannot be read as Parquet"),
    (("dataset", "--target", "x", "--config", "file"), 2, "file: cannot be read"),
    (("unpack", "--archive", "/nope", "--target", "x"), 2, "'/nope' does not exist"),
    (("unpack", "--archive", "file", "--target", "x"), 14, "file: not a zip file"),
    (("unpack", "--archive", "odd.zip", "--target", "file"), 2, "'file' is a file"),
    (("widths", "--number", "4", "--target", "x"), 14, ".tidemark/plan.json: not there"),
    (("measured", "--plan", "/nope", "--target", "x"), 14, "/nope: not there"),
    (("measured", "--plan", "file", "--target", "x"), 14, "file: "),
    (("analyse", "nope"), 2, "found 'nope'; allowed: database"),
    (("analyse", "tables", "--results", "/nope"), 2, "'/nope' does not exist"),
    (("analyse", "tables", "--results", "folder"), 14, "folder/plan.json"),
    (("series", "--preset", "nope"), 2, "--config: key 'preset': found 'nope'; allowed: advise, "),
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
    group = typer.main.get_group(app)
    tried = {words[0] for words, *_ in WRONG_PLACES} | {"bench", "config"}  # these read the configuration like 'series'
    none = {
        "all",
        "doctor",
        "presets",
        "studies",
        "systems",
        "test",
        "versions",
        "version",
    }  # 'all' is tested with the pipeline
    assert set(group.commands) - none == tried


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
    group = typer.main.get_group(commands.app)
    with_values = {
        name
        for name, command in group.commands.items()
        if any(parameter.metavar == VALUES for parameter in command.params)
    }
    assert with_values == {"all", "series", "config", "bench"}
