// The matrix: a row per system, a column per question; a cell has the ratio to the best, its value and its interval.
"use strict";

// Format a ratio to the best, with enough digits to differ from 1.
function times(ratio) {
  if (ratio < 1.1) return `${ratio.toFixed(2)}×`;
  return `${ratio >= 9.95 ? Math.round(ratio).toLocaleString("en") : ratio.toFixed(1)}×`;
}

const difference = (value, unit) => `${value < 0 ? "" : "+"}${shownNumber(value)}${unit ? ` ${unit}` : ""}`;
const intervalOf = ({ low, high }) => `[${shownNumber(low, 3)}, ${shownNumber(high, 3)}]`;

// The content of a cell as text, for the bubble and for screen readers.
function inWords(question, cell, found, bestTitle) {
  const words = [];
  const interval = found.low === null || found.low === undefined ? "" : question.signed
    ? ` (95 % interval ${difference(found.low, "")} to ${difference(found.high, question.unit)})`
    : ` (95 % interval ${times(found.low)} to ${times(found.high)})`;
  const far = () => question.signed ? `${difference(found.ratio, question.unit)} against the best, ${bestTitle}${interval}`
    : `${times(found.ratio)} the best, ${bestTitle}${interval}`;
  if (found.state === "best") words.push("The best of the systems shown");
  if (found.state === "only") words.push("The only value of the systems shown");
  if (found.state === "alike") words.push("All systems shown have this value");
  if (found.state === "apart") words.push(far());
  if (found.state === "tied") words.push(far(), "cannot be distinguished from the best");
  if (found.state === "open") words.push(far(), "no interval is known, so it is open whether they differ");
  if (found.state === "unknown") words.push("not compared with the best");
  if (found.state === "outside") words.push(`${found.why} and is not compared`);
  if (cell.note) words.push(cell.note);
  return `${words.join("; ")}.`;
}

const SIGNS = { best: "★ best", only: "only value", alike: "all alike", tied: "≈ best", open: "no interval", outside: "not compared", unknown: "not compared" };

function valueCell(question, cell, found, shade, bestTitle) {
  const far = found.ratio === undefined ? "" : question.signed ? difference(found.ratio, "") : times(found.ratio);
  const words = inWords(question, cell, found, bestTitle);
  return make("td", [
    make("span", [far ? make("b", far) : null, far && SIGNS[found.state] ? " " : null,
      SIGNS[found.state] ? make("span", SIGNS[found.state], { class: "sign" }) : null], { class: "far", "aria-hidden": "true" }), // the unseen words repeat it
    make("span", [shownNumber(cell.value, 3), cell.note ? make("span", " †", { "aria-hidden": "true" }) : null], { class: "value" }),
    make("span", (cell.low ?? cell.high ?? null) === null ? (found.state === "open" ? "" : "no interval") : intervalOf(cell), { class: "interval" }),
    unseen(` ${words}`),
  ], { class: `cell ${found.state}${shade === null ? "" : ` tint-${shade}`}`, "data-tip": words });
}

function missingCell(cell, wide) {
  const place = { class: "cell missing", ...(wide > 1 ? { colspan: wide } : {}) };
  if (!cell) return make("td", [make("span", "–", { "aria-hidden": "true" }), unseen("not measured")], place);
  return make("td", make("span", cell.missing, { class: "why" }), place);
}

// Number of columns of one mode, from `at` on, that lack a value for the same reason: they share one cell.
function alike(row, columns, at) {
  const reason = question => cellOf(row, question)?.missing;
  let wide = 1;
  while (at + wide < columns.length && columns[at + wide].mode === columns[at].mode && reason(columns[at]) !== undefined
    && reason(columns[at + wide]) === reason(columns[at])) wide += 1;
  return wide;
}

function rowHead(row) {
  const level = row.durability_level ? make("span", row.durability_level, { class: "level" }) : null;
  const marks = (row.marks ?? []).join("; ");
  return make("th", [
    make("span", [swatch(row.system), row.title], { class: "name" }),
    make("span", [row.outside ? `${row.outside} ` : null, level, marks
      ? make("button", `⚠ ${counted(row.marks.length, "mark")}`, { type: "button", class: "marks", "data-tip": marks, "aria-label": `Marks: ${marks}` }) : null],
    { class: "under" }),
  ], { scope: "row" });
}

// A column's head sorts. `aria-sort` gives the order of the values; `announce` reports whether the best comes first.
function columnHead(key, title, unit, hint, sorting, rising, number) {
  const on = key === sorting, up = rising !== view.reversed;
  const name = `hint-${number}-${key}`;
  const button = make("button", [make("span", [title, make("span", on ? (up ? "\u00a0▲" : "\u00a0▼") : "", { class: "arrow", "aria-hidden": "true" })]),
    unit ? make("span", unit, { class: "unit" }) : null],
  { type: "button", "data-column": key, ...(hint ? { "aria-describedby": name, "data-tip": hint } : {}) });
  button.addEventListener("click", () => sortBy(key, title, number, on));
  return make("th", [button, hint ? make("span", hint, { id: name, hidden: "" }) : null],
    { scope: "col", "aria-sort": on ? (up ? "ascending" : "descending") : "none" });
}

// `on`: the table is sorted by this column already, so the order is reversed.
function sortBy(key, title, number, on) {
  const reversed = on && !view.reversed;
  change("sort", () => Object.assign(view, { sort: key, reversed }));
  const text = Object.hasOwn(TEXTS, key);
  announce(`Sorted by ${title}, ${text ? (reversed ? "Z to A" : "A to Z") : reversed ? "worst first" : "best first"}.`);
  // The table was rebuilt: return the focus to the head that was pressed.
  document.querySelector(`#group-${number} [data-column="${CSS.escape(key)}"]`)?.focus();
}

// A title that is its unit ("Events/s") does not repeat it.
const unitOf = question => question.unit && question.title.toLowerCase() !== question.unit.toLowerCase() ? question.unit : "";

function heads(columns, number) {
  const sorting = sortColumn(columns), spans = [];
  for (const { mode } of columns) {
    const title = mode ? upperFirst(MODES[mode]) : columns.some(each => each.mode) ? "Both modes" : "";
    if (spans.at(-1)?.title === title) spans.at(-1).count += 1; else spans.push({ title, count: 1 });
  }
  const text = key => columnHead(key, TEXTS[key], "", "", sorting, true, number);
  return make("thead", [
    make("tr", [make("td", "", { class: "corner" }), ...spans.map(({ title, count }) => make("th", title, { scope: "colgroup", colspan: count })),
      make("td", "")]),
    make("tr", [text("system"),
      ...columns.map(each => columnHead(each.key, each.title, unitOf(each), each.hint, sorting, each.better !== "higher", number)), text("durability")]),
  ]);
}

function groupTable(group, number) {
  const columns = chosenColumns(group), rows = chosenRows(group), best = {}, largest = {}, standings = {};
  for (const question of columns) {
    const { key } = question;
    best[key] = bestOf(rows, question);
    standings[key] = Object.fromEntries(rows.filter(({ row }) => hasValue(cellOf(row, question)))
      .map(({ place }) => [place, standing(group, rows, question, place, best[key])]));
    largest[key] = Math.max(0, ...Object.values(standings[key]).map(each => each.ratio ?? 0));
  }
  const cellsOf = (row, place) => {
    const made = [];
    for (let at = 0, wide = 1; at < columns.length; at += wide) {
      const question = columns[at], { key } = question, cell = cellOf(row, question), found = standings[key][place];
      wide = hasValue(cell) ? 1 : alike(row, columns, at);
      made.push(hasValue(cell) ? valueCell(question, cell, found, tint(question, found, largest[key]), group.rows[best[key]]?.title) : missingCell(cell, wide));
      if (at && columns[at - 1].mode !== question.mode) made.at(-1).classList.add("first");
    }
    return made;
  };
  const body = sorted(rows, columns).map(({ row, place }) => make("tr", [
    rowHead(row), ...cellsOf(row, place),
    make("td", make("span", row.durability, { class: "why" }), { class: "durability" }),
  ], { "data-system": row.system, ...(row.outside ? { class: "outside" } : {}) }));
  const title = [group.source && !group.title.includes(group.source) ? `${group.source}: ` : "", group.title];
  const empty = !rows.length ? "No system is chosen." : !columns.length ? "No column is chosen." : "";
  if (empty) body.splice(0, body.length, make("tr", make("td", empty, { colspan: columns.length + 2 })));
  // A single comparison needs no title: the section above has it.
  const caption = make("caption", [make("span", title, MATRIX.groups.length > 1 ? {} : { class: "unseen" }), unseen(". Each cell: how far from the best of the systems shown, the value and its 95 % interval.")]);
  const table = make("table", [caption, heads(columns, number), make("tbody", body)], { class: "matrix", id: `group-${number}`, "data-group": group.key });
  return make("div", table, { class: "scroll", role: "region", "aria-label": `Comparison: ${title.join("")}`, tabindex: "0" });
}

function matrix() {
  const places = [...document.querySelectorAll("#groups .scroll")].map(box => box.scrollLeft);
  const tables = chosenGroups().map(groupTable);
  byId("groups").replaceChildren(...(tables.length ? tables : [make("p", "Nothing is chosen: choose a software stack or a result above.")]));
  document.querySelectorAll("#groups .scroll").forEach((box, place) => { box.scrollLeft = places[place] ?? 0; });
}

function legend() {
  const steps = [...TINTS.map(limit => `≤ ${limit}×`), `> ${TINTS.at(-1)}×`];
  const keys = steps.flatMap((words, step) => [make("span", words, { class: `key tint-${step}` }), " "]);
  const signed = QUESTIONS.some(question => question.signed);
  byId("legend").append(
    make("b", "Times the best: "), ...keys, "(2×: twice the time, files or bytes, or half the rate) ", make("b", "★ best"), " of those shown ",
    make("b", "≈ best"), " not distinguishable from it ", ...(signed ? [make("b", "+"), " a change: its difference to the best "] : []),
    make("b", "[ ]"), " 95 % interval ", make("b", "†"), " has a note",
  );
}

// The matrix as it is shown, as CSV: a line per system, and of each question the value, its interval, and why it is missing.
function asCsv() {
  const quoted = cell => /[",\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell ?? "";
  const lines = chosenGroups().flatMap(group => {
    const columns = chosenColumns(group);
    const headings = columns.flatMap(({ key, unit }) => [unit ? `${key} [${unit}]` : key, `${key}_low`, `${key}_high`, `${key}_missing`]);
    const cells = row => columns.flatMap(question => (({ value, low, high, missing }) => [value, low, high, missing])(cellOf(row, question) ?? {}));
    return [["results", "system", "durability", ...headings],
      ...sorted(chosenRows(group), columns).map(({ row }) => [group.title, row.title, row.durability_level, ...cells(row)])];
  });
  return lines.map(line => `${line.map(quoted).join()}\n`).join("");
}

function saveCsv() {
  const link = make("a", "", { href: URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" })), download: "matrix.csv" });
  link.click();
  URL.revokeObjectURL(link.href);
  announce("The matrix was saved as matrix.csv.");
}
