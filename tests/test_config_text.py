"""Tests of the syntax of a configuration: each key once, one value for a list, names alone for systems."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import make_plan
from tidemark.schema import schema, sections

SHIPPED = Path(__file__).parents[1] / "config.yaml"
LAUGHS = "a0: &a0 [ha]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))
MEMORY = 1 << 30  # bytes of address space; reading the shipped file takes a fifth of it


def refused(text: str, folder: Path, *overrides: str) -> str:
    """Return the error message of a file with this text, without the path at its start."""
    path = folder / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path, overrides)
    return str(caught.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("protocol: smoke\nseed: 1\nprotocol: thesis\n", ": key 'protocol' stands twice, lines 1 and 3;"),
        ("streams: {threads: 1}\n\nstreams:\n  threads: 2\n", ": key 'streams' stands twice, lines 1 and 3;"),
        ("streams:\n  threads: 1\n  modes: [single]\n  threads: 2\n", ": key 'streams.threads' stands twice, lines 2 "),
        ("streams: {systems: {null: {}, 'null': {}}}\n", ": key 'streams.systems.null' stands twice, on line 1;"),
    ],
)
def test_duplicate_key_is_refused_with_both_lines(text: str, said: str, tmp_path: Path) -> None:
    assert refused(text, tmp_path).startswith(said)


def test_duplicate_key_in_a_command_line_value_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^--config 'streams=\.\.\.': key 'modes' stands twice, on line 1; keep one"):
        load(SHIPPED, ["streams={modes: [single], modes: [batch]}"])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[" * 50_000, r"found more than 50 levels on line 1; allowed: fewer"),
        ("{a: " * 3_000, r"found more than 50 levels on line 1; allowed: fewer"),
        (LAUGHS, r"found the alias '\*a0' on line 2; write out what it stands for"),
        ("&a [*a]", r"found the alias '\*a' on line 1; write out what it stands for"),
    ],
    ids=["brackets", "braces", "aliases", "an alias of itself"],
)
def test_text_that_would_exhaust_memory_or_stack_is_refused_in_little_memory(
    value: str, said: str, tmp_path: Path
) -> None:
    """Runs in a separate process limited to a gigabyte: aliases of aliases would expand to 400 million values."""
    file = tmp_path / "config.yaml"
    file.write_text(value if value is LAUGHS else f"a: {value}")
    given = tmp_path / "given"
    given.write_text(f"streams={value}")
    code = (
        "import sys; from pathlib import Path; from tidemark.config import load; "
        "load(Path(sys.argv[1]), [Path(sys.argv[2]).read_text()] if sys.argv[2:] else [])"
    )
    for arguments in ([str(file)], [str(SHIPPED), str(given)]):
        ended = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )
        last = ended.stderr.splitlines()[-1]
        assert last.startswith("tidemark.errors.ConfigError: "), last
        assert re.search(said, last), last


def test_an_error_in_a_value_of_the_command_line_names_the_command_line(tmp_path: Path) -> None:
    text = "streams:\n  modes:\n  - single\n  - batch\n  systems:\n    ducklake:\n      inline_rows: 0\n"
    assert refused(text, tmp_path, "streams.modes=[batches, single]").startswith("--config: key 'streams.modes.0'")
    assert refused(text, tmp_path, "streams={modes: [batches]}").startswith("--config: key 'streams.modes.0'")
    said = refused(text, tmp_path, "catalogs.protocols.smoke.users=8")
    assert said.startswith("--config: key 'catalogs.protocols.smoke'") and "needed as well: depth" in said
    # Other errors of the file still name the file.
    broken = text.replace("- single", "- singles")
    assert refused(broken, tmp_path, "streams.systems=ducklake").startswith(":3: key 'streams.modes.0'")
    with pytest.raises(ConfigError, match=r"^--config: key 'streams\.systems\.ducklake\.inlinerows'"):
        make_plan(load(SHIPPED, ["streams.systems={ducklake: {inlinerows: 5}}"]))


def lists(rules: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Return each list of the schema with its key, in which user-defined names are `mine`."""
    if "array" in (rules.get("type") or ()) or any("array" in each.get("type", "") for each in rules.get("oneOf", ())):
        return [(path, rules)]
    below = dict(rules.get("properties", {}))
    if isinstance(rules.get("additionalProperties"), dict):
        below["mine"] = rules["additionalProperties"]
    return [found for key, rule in below.items() for found in lists(rule, (*path, key))]


def one_value(rules: dict[str, Any]) -> Any:
    """Return a value that the list of `rules` may hold."""
    items = next(each for each in (rules, *rules.get("oneOf", ())) if "items" in each)["items"]
    kinds = items.get("type", "string")
    if "enum" in items:
        return items["enum"][0]
    # A number within every range of the schemas, and a name that matches every pattern.
    return (101 if items.get("maximum", 101) > 100 else 99) if kinds in ("integer", "number") else "1s"


LISTS = lists(schema())


@pytest.mark.parametrize(("key", "rules"), LISTS, ids=[".".join(key) for key, _ in LISTS])
def test_single_value_is_taken_as_a_list_of_it(key: tuple[str, ...], rules: dict[str, Any]) -> None:
    value = "streams" if key == ("studies",) else one_value(rules)

    def said(given: Any) -> str:
        """Return the effective configuration, or the error if other keys are needed as well."""
        try:
            return load(SHIPPED, [f"{'.'.join(key)}={json.dumps(given)}"]).effective
        except ConfigError as error:
            return str(error)

    assert said(value) == said([value])
    assert json.dumps([value], indent=None)[1:-1] in said(value)


@pytest.mark.parametrize("study", list(sections()))
def test_names_alone_mean_systems_with_their_defaults(study: str, tmp_path: Path) -> None:
    names = list(sections()[study]["properties"]["systems"]["default"])[:2]
    path = tmp_path / "config.yaml"

    def systems(given: str, *overrides: str) -> Any:
        path.write_text(f"{study}:\n  systems: {given}\n")
        in_file = load(path, overrides)
        if not overrides:
            assert in_file.sections == load(SHIPPED, [f"{study}.systems={given}"]).sections | {
                study: in_file.sections[study]
            }
        return in_file.sections[study]["systems"]

    plain = [name for name in names if name != "null"]
    assert systems(plain[0]) == {plain[0]: {}}
    assert systems(json.dumps(names)) == {name: {} for name in names}
    titled = systems(json.dumps(names), f"{study}.systems.{names[1]}.title=Mine")
    assert titled == {names[0]: {}, names[1]: {"title": "Mine"}}


def test_null_in_a_list_of_systems_is_the_baseline_of_that_name() -> None:
    assert load(SHIPPED, ["streams.systems=[null, ducklake]"]).sections["streams"]["systems"] == {
        "null": {},
        "ducklake": {},
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("stacks=[thesis, current, thesis]", r"key 'stacks': names 'thesis' twice; allowed: once"),
        ("streams.systems=[ducklake, ducklake]", r"key 'streams\.systems': names 'ducklake' twice; allowed: once"),
        ("streams.systems=[ducklake: {}, delta-rs]", r"allowed: a name, a list of names, or names with their options"),
    ],
)
def test_invalid_list_states_the_reason(given: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(SHIPPED, [given])


def test_unknown_key_is_answered_with_the_nearest_or_all_keys() -> None:
    with pytest.raises(ConfigError) as caught:
        load(SHIPPED, ["protocl=smoke"])
    assert str(caught.value) == "--config: key 'protocl': found a key that does not exist; did you mean 'protocol'?"
    keys = "protocol, repeats, precision, budget_minutes, studies, .*, streams"
    with pytest.raises(ConfigError, match=rf"does not exist; the keys here are: {keys}$"):
        load(SHIPPED, ["xyz=1"])
