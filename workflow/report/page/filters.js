// The controls of the view: one set for the matrix, the plots and the runs.
"use strict";

// What a choice is called on the page, its colour, and what is said of it in a bubble.
function named(key, item) {
  if (key === "systems") {
    const system = SYSTEMS.find(each => each.name === item);
    const hint = "Stores nothing: what it takes is the benchmark's own part. Never the best of a column.";
    return { name: system.harness ? `${system.title} (the harness)` : system.title, colour: system.colour, hint: system.harness ? hint : "" };
  }
  if (key === "modes") return { name: upperFirst(MODES[item]), hint: item === "single" ? "One event a write" : "Many events a write" };
  if (key === "runs") return { name: item === "0" ? "0 (the first)" : `${item} (hot)` };
  if (key === "columns") {
    const question = QUESTIONS.find(each => each.key === item);
    return { name: `${question.title}${unitOf(question) ? ` (${unitOf(question)})` : ""}`, hint: question.hint };
  }
  return { name: item };
}

function boxes(key, items) {
  return items.map(item => {
    const { name, colour, hint } = named(key, item);
    const box = make("input", [], { type: "checkbox", name: key, value: item, ...(hint ? { "aria-description": hint } : {}) });
    box.addEventListener("change", () => choose(key, item, box.checked));
    return make("label", [box, colour ? swatch(colour) : " ", name], hint ? { "data-tip": hint } : {});
  });
}

// Of many boxes, somebody who wants two takes out all others first.
function allOrNone(key) {
  const button = (name, items) => {
    const made = make("button", [name, unseen(` ${CHOICES[key].title.toLowerCase()}`)], { type: "button", class: "small" });
    made.addEventListener("click", () => change(key, () => { view[key] = new Set(items()); }));
    return made;
  };
  return make("span", [button("all", () => CHOICES[key].items), button("none", () => []), button("default", () => preset(key))], { class: "quick" });
}

function columnChoice() {
  const groups = [...Object.keys(MODES), null].map(mode => {
    const items = QUESTIONS.filter(question => (question.mode ?? null) === mode).map(question => question.key);
    const title = mode ? upperFirst(MODES[mode]) : "Both modes";
    return items.length ? make("fieldset", [make("legend", title), ...boxes("columns", items)]) : null;
  });
  return make("details", [make("summary", "Columns of the matrix"), allOrNone("columns"), ...groups], { id: "columns" });
}

function filters() {
  for (const key of ["systems", "modes", "stacks", "archives", "runs"]) {
    const { title, items } = CHOICES[key];
    if (items.length < 2) continue; // there is nothing to choose
    const set = make("fieldset", [make("legend", title), ...boxes(key, items), items.length > 3 ? allOrNone(key) : ""]);
    byId("filters").append(set);
  }
  if (CHOICES.columns.items.length > 1) byId("filters").append(columnChoice());
  byId("filters").addEventListener("submit", event => event.preventDefault());
  byId("copy-link").addEventListener("click", copyLink);
  byId("reset-view").addEventListener("click", () => {
    change(null, () => Object.assign(view, presets()));
    announce("The view is the default again.");
  });
  byId("link").addEventListener("focus", () => byId("link").select());
  changed.push(showChoices);
  // What is jumped to must not end up below the bar, which stays at the top of the screen.
  new ResizeObserver(() => {
    document.documentElement.style.setProperty("--bar", `${byId("view").offsetHeight}px`);
  }).observe(byId("view"));
}

// The boxes follow the view, which may have come from the address; the line above them says it in short.
function showChoices(key) {
  for (const box of document.querySelectorAll("#filters input")) box.checked = view[box.name].has(box.value);
  const of = name => `${view[name].size} of ${CHOICES[name].items.length} ${CHOICES[name].title.toLowerCase()}`;
  const words = ["systems", "modes", "stacks", "archives", "columns"].filter(name => CHOICES[name].items.length > 1).map(of);
  byId("view-state").textContent = words.join(", ");
  if (key && key !== "sort") announce(`Shown: ${words.join(", ")}.`);
  byId("reset-view").disabled = fragment() === "";
}
