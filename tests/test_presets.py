"""Tests of presets, of the documented variants, of the schema for editors, and of the source of each value."""

from __future__ import annotations

import json
import re
from math import ceil
from pathlib import Path

import jsonschema
import pytest
import yaml

from tidemark import config as module
from tidemark.config import about_preset, load, presets
from tidemark.errors import ConfigError
from tidemark.pipeline.build import expected_bytes
from tidemark.pipeline.plan import make_plan
from tidemark.schema import editor_schema

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "config.yaml"
BLOCKS = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "variants.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("name", presets())
def test_a_preset_can_be_planned_and_says_its_question_disk_and_time(name: str) -> None:
    plan = make_plan(load(SHIPPED, [f"preset={name}"]))
    assert plan.series and plan.config.changed()
    assert re.search(r"\?( .*)? Disk: \d+ GB\. Time: \d.* after set-up\.$", about_preset(name))
    assert f" Disk: {ceil(expected_bytes(plan.series) / 1e9)} GB." in about_preset(name)


def test_a_preset_comes_before_the_file_and_after_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PRESETS", tmp_path)
    (tmp_path / "one.yaml").write_text("# One?\nseed: 2\nstreams:\n  batch_size: 20\n  systems: [delta-rs]\n")
    (tmp_path / "two.yaml").write_text("# Two?\nstreams: {batch_size: 30}\n")
    own = tmp_path / "config.yaml"
    own.write_text("seed: 1\ncold: none\nstreams:\n  batch_size: 10\n  modes: [batch]\n")

    found = load(own, ["streams.read_ahead=7", "preset=one", "preset=two", "seed=3"]).sources()
    assert found["seed"] == (3, "--config")
    assert found["streams.batch_size"] == (30, "presets/two.yaml:2")
    assert found["streams.systems"] == ({"delta-rs": {}}, "presets/one.yaml:5")
    assert found["streams.modes"] == (["batch"], f"{own}:5")
    assert found["cold"] == ("none", f"{own}:2")
    assert found["streams.read_ahead"] == (7, "--config")
    assert found["streams.threads"] == (1, "default") and found["dataset.source"] == ("auto", "default")

    (tmp_path / "wrong.yaml").write_text("# Wrong?\nstreams:\n  batch_size: 1\n")
    with pytest.raises(ConfigError, match=r"^presets/wrong\.yaml:3: key 'streams\.batch_size': found 1"):
        load(own, ["preset=wrong"])


def test_an_unknown_preset_is_named() -> None:
    with pytest.raises(ConfigError, match=r"--config: key 'preset': found 'durabel'.* did you mean 'durable'"):
        load(SHIPPED, ["preset=durabel"])


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_documented_variant_can_be_planned(block: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(block)
    assert make_plan(load(path)).series


def test_editors_accept_what_the_check_accepts_and_refuse_what_it_refuses() -> None:
    rules = json.loads(editor_schema())
    jsonschema.Draft7Validator.check_schema(rules)
    editor = jsonschema.Draft7Validator(rules)
    for text in (SHIPPED.read_text(), *(path.read_text() for path in presets().values()), *BLOCKS):
        assert not list(editor.iter_errors(yaml.safe_load(text))), text
    for short in ("studies: all", "streams: {systems: ducklake, modes: batch}", "dataset:", "stacks: current"):
        assert not list(editor.iter_errors(yaml.safe_load(short))), short
    for wrong in ("studys: all", "streams: {batch_size: 1}", "streams: {modes: double}", "seed: many"):
        assert list(editor.iter_errors(yaml.safe_load(wrong))), wrong
