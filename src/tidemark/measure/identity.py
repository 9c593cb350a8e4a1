"""By what a run was made: a digest of the code that measures."""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
# Rooms and files whose code decides what is measured, and how; what plans and what analyses is not among them.
MEASURING = ("measure", "stream", "systems", "services", "machine", "events.py", "lifetime.py")


@cache
def harness_digest() -> str:
    """SHA-256 of the code that measures, in hex. Comments and docstrings are not in it: they change no number."""
    whole = hashlib.sha256()
    for name in MEASURING:
        place = PACKAGE / name
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in (".py", ".java"):
                content = meaning(path.read_text()) if path.suffix == ".py" else path.read_text()
                whole.update(f"{path.relative_to(PACKAGE).as_posix()}\n{content}\n".encode())
    return whole.hexdigest()


def meaning(source: str) -> str:
    """What Python makes of `source`: without comments, layout and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _is_described(node):
            node.body = node.body[1:]
    return ast.dump(tree)


def _is_described(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None
