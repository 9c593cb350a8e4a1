"""Page of all settings: each key of the configuration with what is allowed, its default and its meaning."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tidemark.config import about_preset, presets
from tidemark.results.tables.table import markdown_grid
from tidemark.schema import schema, sections

HEAD = """# Settings

Every key of [`config.yaml`](../config.yaml), made from the schema that checks it. A key is written as it stands in the
file, or with dots on the command line: `./tidemark all --config protocol=smoke streams.batch_size=100`. A single value
is a list of one, and names alone are systems with their default options: `systems: [ducklake, delta-rs]`.
`./tidemark show config --sources` prints each key with its value and where that was given. Values of the command line
come before those of a preset, and these before those of the file. Tables give the default of a key; –: none, so that
the key must be given, or may be left out where its meaning says what then holds.

## Presets

`./tidemark all --preset NAME` measures with the values of `presets/NAME.yaml`. The option may be given more than once.

"""
BOUNDS = {"minimum": "from {}", "exclusiveMinimum": "more than {}", "maximum": "to {}"}


def settings_page() -> str:
    """Return the page as Markdown."""
    chosen = [(f"[`{name}`](../presets/{name}.yaml)", about_preset(name)) for name in presets()]
    common = {key: rule for key, rule in schema()["properties"].items() if key not in sections()}
    text = f"{HEAD}{markdown_grid(('preset', 'question, disk and time'), chosen)}\n"
    text += "\n## All studies\n\n" + "".join(_tables((), common))
    for name, rule in sections().items():
        text += f"\n## {name}\n\n{rule['description']}\n\n" + "".join(_tables((name,), rule["properties"]))
    return text


def _tables(path: tuple[str, ...], properties: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of the keys below `path`, the values of named sets, then a table of each group of keys."""
    rows, below = [], []
    for key, rule in properties.items():
        named = rule.get("additionalProperties")
        fields = (named if isinstance(named, dict) and "propertyNames" not in rule else rule).get("properties", {})
        if fields:
            below.append(((*path, key, *([] if fields is rule.get("properties") else ["NAME"])), fields, rule))
        name = f"{path[0]}.{key}" if len(path) == 1 else key
        default = "below" if fields or len(json.dumps(rule.get("default"))) > 60 else _value(rule)
        rows.append((f"`{name}`", _allowed(rule), default, rule["description"]))
    yield f"{markdown_grid(('key', 'allowed', 'default', 'meaning'), rows)}\n"
    for place, fields, rule in below:
        yield f"\n### `{'.'.join(place)}`\n\n"
        if rule.get("default") and place[-1] == "NAME":
            yield f"```yaml\n{_yaml({place[-2]: rule['default']})}```\n\n"
        yield from _tables(place, fields)
    if len(path) == 1 and "systems" in properties:
        systems = {"systems": properties["systems"]["default"]}
        yield f"\n### Default of `{path[0]}.systems`\n\n```yaml\n{_yaml(systems)}```\n"


def _value(rule: Mapping[str, Any]) -> str:
    return f"`{json.dumps(rule['default'])}`" if "default" in rule else "–"


def _yaml(values: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(values, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110))


def _allowed(rule: Mapping[str, Any]) -> str:
    """Return what is allowed, in words: alternatives, or the type with its bounds."""
    if "enum" in rule:
        return ", ".join(f"`{each}`" for each in rule["enum"])
    kinds = rule.get("type", "any")
    words = [kinds] if isinstance(kinds, str) else list(kinds)
    if "array" in words and "items" in rule:
        words[words.index("array")] = f"list of {_allowed(rule['items'])}"
    if "object" in words and "propertyNames" in rule:
        words[words.index("object")] = "names with settings"
    text = " or ".join(words)
    bounds = [form.format(f"{rule[key]:,}") for key, form in BOUNDS.items() if key in rule]
    return " ".join([text, *bounds])
