// The controls of the view: one set for the matrix, the plots and the runs.
"use strict";

// Name of a choice on the page, the system that it is, and its bubble text.
function named(key, item) {
  if (key === "systems") {
    const system = SYSTEMS.find(each => each.name === item);
    const hint = "Stores nothing: its time is the benchmark's own share. Never the best of a column.";
    return { name: system.harness ? `${system.title} (the harness)` : system.title, system: item, hint: system.harness ? hint : "" };
  }
  if (key === "modes") return { name: upperFirst(MODES[item]), hint: item === "single" ? "One event per write" : "Many events per write" };
  if (key === "runs") return { name: item === "0" ? "0 (the first)" : `${item} (hot)` };
  if (key === "columns") {
    const question = QUESTIONS.find(each => each.key === item);
    return { name: `${question.title}${unitOf(question) ? ` (${unitOf(question)})` : ""}`, hint: question.hint };
  }
  return { name: item };
}

function boxes(key, items) {
  return items.map(item => {
    const { name, system, hint } = named(key, item);
    const box = make("input", [], { type: "checkbox", name: key, value: item, ...(hint ? { "aria-description": hint } : {}) });
    box.addEventListener("change", () => choose(key, item, box.checked));
    return make("label", [box, system ? swatch(system) : " ", name], hint ? { "data-tip": hint } : {});
  });
}

// Buttons that set all boxes of a choice at once.
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
  byId("save-csv").addEventListener("click", saveCsv);
  byId("reset-view").addEventListener("click", () => {
    change(null, () => Object.assign(view, presets()));
    announce("The view is the default again.");
  });
  byId("link").addEventListener("focus", () => byId("link").select());
  changed.push(showChoices);
  // The target of a jump must not end up under the bar, which stays at the top of the screen.
  new ResizeObserver(() => {
    document.documentElement.style.setProperty("--bar", `${byId("view").offsetHeight}px`);
  }).observe(byId("view"));
}

// Set the boxes from the view, which may come from the address; the line above them summarises it.
function showChoices(key) {
  for (const box of document.querySelectorAll("#filters input")) box.checked = view[box.name].has(box.value);
  const of = name => `${view[name].size} of ${CHOICES[name].items.length} ${CHOICES[name].title.toLowerCase()}`;
  const words = ["systems", "modes", "stacks", "archives", "columns"].filter(name => CHOICES[name].items.length > 1).map(of);
  byId("view-state").textContent = words.join(", ");
  if (key && key !== "sort") announce(`Shown: ${words.join(", ")}.`);
  byId("reset-view").disabled = fragment() === "";
}
