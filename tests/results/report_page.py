"""Helpers for tests of the report page: its matrix, its view, and a few reader actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.results.browser import Page
from tests.results.page_data import data_of

# JavaScript: the matrices as they are on the page.
TABLES = """[...document.querySelectorAll("table.matrix")].map(table => {
  const heads = [...table.querySelectorAll("thead [data-column]")], keys = heads.map(head => head.dataset.column);
  const cellsOf = row => [...row.children].flatMap(cell => Array(cell.colSpan).fill(cell)).map((cell, place) =>
    [keys[place], { kind: cell.className.split(" "), text: cell.textContent }]);
  return {
    keys, group: table.dataset.group,
    sorting: Object.fromEntries(heads.map(head => [head.dataset.column, head.closest("th").getAttribute("aria-sort")])),
    rows: [...table.querySelectorAll("tbody tr")].map(row =>
      ({ system: row.dataset.system, cells: Object.fromEntries(cellsOf(row)) })),
  };
})"""
# JavaScript: everything that the view determines.
SHOWN = """({
  tables: [...document.querySelectorAll("#groups, #no-plots")].map(each => each.outerHTML),
  boxes: [...document.querySelectorAll("#filters input")].map(box => [box.name, box.value, box.checked]),
  plots: [...document.querySelectorAll("figure")].map(each => !each.hidden && each.querySelector("canvas").ariaLabel),
  runs: [...document.querySelectorAll("#run-list [data-system]")].map(each => each.hidden),
  claims: [...document.querySelectorAll("#ledger .fold")].map(each => each.open),
})"""
DRAW_ALL = "plots.forEach(({ plot }) => plot.approach(true))"  # by itself the page draws what is near the screen
JUMPS = "[...document.querySelectorAll('#jumps a')].map(each => each.textContent)"


def tables(page: Page) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.run(TABLES)
    return found


def told(pages: dict[str, Path], kind: str) -> dict[str, Any]:
    """Return the data embedded in a kind of page."""
    return data_of(pages[kind].read_text())


def chosen(page: Page, key: str) -> list[str]:
    found: list[str] = page.run(f"[...view.{key}]")
    return found


def text(page: Page, name: str) -> str:
    """Return the visible text of an element."""
    found: str = page.run(f"document.getElementById('{name}').innerText")
    return found


def hidden(page: Page, name: str) -> bool:
    found: bool = page.run(f"document.getElementById('{name}').hidden")
    return found


def tick(page: Page, key: str, value: str) -> None:
    """Click the checkbox of a choice."""
    page.run(f"document.querySelector('#filters input[name={key}][value=\"{value}\"]').click()")
    page.settle()


def sort_by(page: Page, key: str) -> None:
    page.run(f"document.querySelector('[data-column=\"{key}\"]').click()")
