// The best system of a column, and how far the others are from it. Comparisons stay inside a group of the matrix: one
// result set with one software stack.
"use strict";

// Steps of the tint: each up to this multiple of the best; values beyond the last have the strongest tint.
const TINTS = [1.2, 2, 4, 10];
const MOST_TINT = TINTS.length;

const chosenGroups = () => MATRIX.groups.filter(group => allows("stacks", group.stack) && allows("archives", group.source));
const chosenColumns = group => QUESTIONS.filter(question => group.asked.includes(question.key) && view.columns.has(question.key) && (!question.mode || view.modes.has(question.mode)));
const chosenRows = group => group.rows.map((row, place) => ({ row, place })).filter(({ row }) => view.systems.has(row.system));

const cellOf = (row, question) => row.cells[question.key];
const hasValue = cell => cell !== null && cell !== undefined && cell.missing === undefined && cell.value !== null;

// Place of the best row among `rows` for a question, or -1. Rows outside the comparison (the harness, files without a
// table format) bound the others and cannot be the best.
function bestOf(rows, question) {
  let best = -1, value = 0;
  for (const { row, place } of rows) {
    const cell = cellOf(row, question);
    if (row.outside || !hasValue(cell)) continue;
    if (best < 0 || (question.better === "higher" ? cell.value > value : cell.value < value)) [best, value] = [place, cell.value];
  }
  return best;
}

// How a cell compares with the best: {state, ratio, low, high}. States: "best", "only" (no other value to compare with),
// "alike" (all values are equal, so none is the best), "apart", "tied" (not distinguishable from the best), "open" (no
// interval, so neither is known), "outside", "unknown".
function standing(group, rows, question, place, best) {
  const { row } = rows.find(each => each.place === place);
  if (row.outside) return { state: "outside", why: row.outside };
  const values = rows.filter(each => !each.row.outside && hasValue(cellOf(each.row, question))).map(each => cellOf(each.row, question).value);
  if (values.length > 1 && new Set(values).size === 1) return { state: "alike" };
  if (place === best) return { state: values.length > 1 ? "best" : "only" };
  const found = group.ratios[question.key]?.[place]?.[best];
  if (!found) return { state: "unknown" };
  const [ratio, low, high] = found, same = question.signed ? 0 : 1;
  if (low === null || high === null) return { state: "open", ratio, low: null, high: null };
  return { state: low <= same && same <= high ? "tied" : "apart", ratio, low, high };
}

// A change can be zero or negative and has no ratio: its tint is its share of the column's largest difference.
function tint(question, { state, ratio }, largest) {
  if (state === "best" || state === "only" || state === "alike") return 0;
  if (ratio === undefined || ratio === null) return null;
  if (!question.signed) {
    const step = TINTS.findIndex(limit => ratio <= limit);
    return step < 0 ? MOST_TINT : step;
  }
  // Differences that are not distinguishable from zero get no tint, not even the largest.
  return state === "tied" || largest <= 0 ? 0 : Math.min(MOST_TINT, Math.ceil(Math.max(0, ratio) / largest * MOST_TINT - 1e-9));
}

// The column to sort by: the chosen one, or the first shown one if that is hidden.
function sortColumn(columns) {
  if (Object.hasOwn(TEXTS, view.sort)) return view.sort;
  return (columns.find(question => question.key === view.sort) ?? columns[0] ?? { key: "system" }).key;
}

// Best first, or A to Z. In both directions, rows without a value follow those with one, and outside rows are last.
function sorted(rows, columns) {
  const by = sortColumn(columns), question = columns.find(each => each.key === by), turn = view.reversed ? -1 : 1;
  const value = ({ row }) => hasValue(cellOf(row, question)) ? cellOf(row, question).value : null;
  const order = (one, other) => {
    const outside = ({ row }) => Number(row.outside !== "");
    if (outside(one) !== outside(other)) return outside(one) - outside(other);
    if (!question) {
      const [a, b] = by === "system" ? [one.row.title, other.row.title] : [one.row.durability, other.row.durability];
      return turn * a.localeCompare(b, "en") || one.place - other.place;
    }
    const a = value(one), b = value(other);
    if (a === null || b === null) return Number(a === null) - Number(b === null) || one.place - other.place;
    return turn * (question.better === "higher" ? b - a : a - b) || one.place - other.place;
  };
  return [...rows].sort(order);
}
