// The view: the systems, modes, stacks, columns and runs shown, their order, and the open verdicts. The address's
// fragment holds all of it, so that a link shows the sender's view; the default view has no fragment.
"use strict";

const valuesOf = (rows, of) => [...new Set(rows.flatMap(of))].filter(value => value !== "" && value !== undefined && value !== null);
const stacks = valuesOf(MATRIX.groups, group => group.stack);
// In a report with several stacks, a series' title ends with its stack.
const stackOf = series => series.stack ?? stacks.find(stack => series.title.endsWith(`, stack ${stack}`)) ?? stacks[0];
// Values without a control, such as a mode of another study, are always shown.
const allows = (key, value) => !CHOICES[key].items.includes(value) || view[key].has(value);

// Every system, in the order of the matrix; the harness, which stores nothing, is last.
function everySystem() {
  const found = new Map();
  for (const row of MATRIX.groups.flatMap(group => group.rows)) found.has(row.system) || found.set(row.system, { ...row, name: row.system });
  for (const system of REPORT.systems ?? []) found.has(system.name) || found.set(system.name, system);
  return [...found.values()].sort((a, b) => Number(a.harness) - Number(b.harness));
}

const SYSTEMS = everySystem();
const colourOf = Object.fromEntries(SYSTEMS.map(system => [system.name, system.colour]));
const markerOf = Object.fromEntries((REPORT.systems ?? []).map(system => [system.name, system.marker]));
// Columns of one mode stand together.
const QUESTIONS = [...Object.keys(MODES), null].flatMap(mode =>
  MATRIX.questions.filter(question => (question.mode ?? null) === mode));
const VERDICTS = ["not reproduced", "inconclusive", "reproduced", "not tested yet", "not testable here"]; // surprises first

// Each choice has a title, its items, and the items chosen by default. The harness is off by default: it is up to a
// thousand times as fast as the systems, which would share a tenth of each axis with it.
const CHOICES = {
  systems: { title: "Systems", items: SYSTEMS.map(system => system.name), preset: SYSTEMS.filter(system => !system.harness).map(system => system.name) },
  modes: { title: "Modes", items: Object.keys(MODES).filter(mode => [...MATRIX.questions, ...SERIES].some(each => each.mode === mode)) },
  stacks: { title: "Software stacks", items: stacks },
  archives: { title: "Results", items: valuesOf(MATRIX.groups, group => group.source) },
  columns: { title: "Columns", items: QUESTIONS.map(question => question.key), preset: QUESTIONS.filter(question => question.shown).map(question => question.key) },
  runs: {
    title: "Runs in plots",
    items: valuesOf(SERIES, series => series.runs.map(run => run.number)).sort((a, b) => a - b).map(String),
  },
  verdicts: { title: "Claims", items: REPORT.claims ? VERDICTS.map(slug) : [], preset: VERDICTS.slice(0, 3).map(slug) },
};
const TEXTS = { system: "System", durability: "Durable when a write returns" }; // columns of words that can be sorted by
const FIRST_SORT = (QUESTIONS.find(question => question.shown) ?? { key: "system" }).key;

const preset = key => new Set(CHOICES[key].preset ?? CHOICES[key].items);
const presets = () => ({ ...Object.fromEntries(Object.keys(CHOICES).map(key => [key, preset(key)])), sort: FIRST_SORT, reversed: false });
const view = presets();
const changed = []; // called with the key that changed, or with null for all of them

const same = (one, other) => one.size === other.size && [...one].every(value => other.has(value));

function fragment() {
  const parts = [];
  for (const [key, { items }] of Object.entries(CHOICES))
    if (!same(view[key], preset(key))) parts.push(`${key}=${items.filter(item => view[key].has(item)).map(encodeURIComponent).join(",")}`);
  if (view.sort !== FIRST_SORT || view.reversed) parts.push(`sort=${encodeURIComponent(view.sort)}${view.reversed ? ",reversed" : ""}`);
  return parts.join("&");
}

const decoded = text => {
  try { return decodeURIComponent(text); } catch { return text; }
};

// Set the view from a fragment and return its unknown parts. A choice with only unknown names keeps its default; a choice
// without any name is empty on purpose.
function parse(text) {
  const unknown = [], found = presets();
  for (const part of text.split("&").filter(each => each)) {
    const [key, ...rest] = part.split("="), words = rest.join("=").split(",").filter(each => each).map(decoded);
    if (key === "sort" && rest.length) {
      const [column, order, ...more] = words;
      if (Object.hasOwn(TEXTS, column ?? "") || CHOICES.columns.items.includes(column)) {
        found.sort = column;
        found.reversed = order === "reversed";
        unknown.push(...(found.reversed || order === undefined ? [] : [`sort ${order}`]), ...more.map(each => `sort ${each}`));
      } else unknown.push(`sort ${column ?? ""}`.trim());
    } else if (Object.hasOwn(CHOICES, key) && rest.length) {
      const known = words.filter(word => CHOICES[key].items.includes(word));
      unknown.push(...words.filter(word => !known.includes(word)).map(word => `${key} ${word}`));
      if (known.length || !words.length) found[key] = new Set(known);
    } else unknown.push(decoded(part));
  }
  Object.assign(view, found);
  return unknown;
}

const href = () => location.href.split("#")[0] + (fragment() ? `#${fragment()}` : "");

function keep() {
  // Fails in a frame without its own address; the page still works there, but its link does not change.
  try { history.replaceState(null, "", href()); } catch { /* see above */ }
}

// Change the view and update the address, the controls and the content. All changes of the view go through here.
function change(key, alter) {
  alter(view);
  byId("view-note").hidden = true;
  byId("link").hidden = true;
  keep();
  for (const tell of changed) tell(key);
}

function choose(key, value, chosen) {
  change(key, () => { view[key][chosen ? "add" : "delete"](value); });
}

// A fragment from an older link may be a place on the page: "#claims".
function readAddress() {
  const text = location.hash.slice(1), place = text && !text.includes("=") ? byId(decoded(text)) : null;
  const unknown = parse(place ? "" : text);
  const note = byId("view-note");
  note.hidden = !unknown.length;
  note.textContent = unknown.length ? `Ignored parts of the link, which this page does not have: ${unknown.map(shortened).join("; ")}.` : "";
  if (!place) keep();
  for (const tell of changed) tell(null);
  if (place) goTo(place);
}

const shortened = words => words.length > 60 ? `${words.slice(0, 59)}…` : words;

// Scroll to a place and move the focus to it, without changing the address.
function goTo(place) {
  for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  const head = place.matches("section") ? place.querySelector("h2") ?? place : place;
  if (!head.hasAttribute("tabindex") && !head.matches("summary, a, button")) head.tabIndex = -1;
  place.scrollIntoView();
  head.focus({ preventScroll: true });
}

async function copyLink() {
  const field = byId("link"), button = byId("copy-link");
  let copied = false;
  try {
    await navigator.clipboard.writeText(href());
    copied = true;
  } catch { /* not allowed here: the reader copies the selected text */ }
  if (!copied) {
    field.hidden = false;
    field.value = href();
    field.focus();
    field.select();
  }
  announce(copied ? "The link was copied." : "The link is selected: copy it.");
  const words = button.textContent;
  if (copied && !button.dataset.told) {
    button.dataset.told = "yes";
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = words; delete button.dataset.told; }, 1500);
  }
}
