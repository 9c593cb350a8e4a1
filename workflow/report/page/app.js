// Puts the data of the report onto the page: claims, filters, plots, and a section for each run.
"use strict";

const REPORT = JSON.parse(document.getElementById("data").textContent);
const byId = name => document.getElementById(name);
const colourOf = Object.fromEntries(REPORT.systems.map(system => [system.name, system.colour]));
document.body.dataset.errors = "0";
window.addEventListener("error", () => { document.body.dataset.errors = String(Number(document.body.dataset.errors) + 1); });

function make(tag, content, attributes = {}) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of [content].flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}
const slug = words => words.replaceAll(" ", "-");
const swatch = colour => make("span", "", { class: "swatch", style: `background:${colour}` });

// Claims

const hiddenVerdicts = new Set(); // of one stack each: "0 reproduced"

function claims() {
  const { stacks, labelled } = REPORT.claims;
  stacks.forEach(({ stack, counts }, place) => {
    const group = make("div", labelled ? `With the software stack ${stack}: ` : [], { role: "group" });
    for (const [verdict, count] of Object.entries(counts)) {
      const chip = make("button", `${verdict}: ${count}`, { type: "button", class: slug(verdict), "aria-pressed": "true" });
      chip.addEventListener("click", () => {
        const pressed = chip.getAttribute("aria-pressed") === "true";
        chip.setAttribute("aria-pressed", String(!pressed));
        hiddenVerdicts[pressed ? "add" : "delete"](`${place} ${verdict}`);
        for (const row of document.querySelectorAll("#ledger tbody tr")) {
          row.hidden = JSON.parse(row.dataset.verdicts).some((each, which) => hiddenVerdicts.has(`${which} ${each}`));
        }
      });
      group.append(chip);
    }
    byId("verdicts").append(group);
  });
  const heads = stacks.flatMap(({ stack }) => ["Ours [95 %]", "Verdict"].map(head => labelled ? `${head}, stack ${stack}` : head));
  document.querySelector("#ledger thead tr").append(...heads.map(head => make("th", head)));
  const body = document.querySelector("#ledger tbody");
  for (const claim of REPORT.claims.claims) {
    const judged = [claim, ...claim.others];
    const why = judged.map(each => (labelled ? `With ${each.stack}: ` : "") + `${each.why}.`).join(" ");
    const links = claim.shown.flatMap((name, place) => {
      const href = name.startsWith("figure-") ? `figures/${claim.study}/${name}.svg` : `tables/${claim.study}/${name}.md`;
      return [place ? ", " : "", make("a", name, { href })];
    });
    const more = make("details", [
      make("summary", make("code", claim.id, { class: "id" })),
      make("p", `Asked: ${claim.criterion}. ${why}`),
      make("p", ["Measure: ", make("code", claim.measure)]),
      make("p", ["Shown in (beside this file): ", ...links]),
      make("p", ["Test it alone: ", make("code", claim.retest.command),
        ` (about ${duration(claim.retest.seconds)}, ${(claim.retest.disk_bytes / 1e9).toFixed(1)} GB of disk)`]),
    ], { id: `claim-${claim.id}` });
    const plain = claim.published.value !== null ? `${claim.published_text} (${claim.published.text})` : claim.published_text;
    body.append(make("tr", [
      make("td", [claim.statement, more]),
      make("td", claim.section, { "data-label": "Section" }),
      make("td", plain, { "data-label": "Published, another machine" }),
      ...judged.flatMap(each => [
        make("td", each.ours_text || each.why, { "data-label": labelled ? `Ours, stack ${each.stack}` : "Ours" }),
        make("td", each.verdict, { class: `verdict ${slug(each.verdict)}`, ...(labelled ? { "data-label": each.stack } : {}) }),
      ]),
    ], { "data-verdicts": JSON.stringify(judged.map(each => each.verdict)) }));
  }
}

function duration(seconds) {
  const minutes = Math.round(seconds / 60);
  return seconds < 90 ? `${Math.round(seconds)} s` : minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

// Filters

const chosen = { system: new Set(), mode: new Set(), run: new Set() };

function filters() {
  const numbers = [...new Set(REPORT.series.flatMap(series => series.runs.map(run => run.number)))].sort((a, b) => a - b);
  const groups = [
    ["system", "Systems", REPORT.systems.map(system => [system.name, system.title, system.colour, system.harness])],
    ["mode", "Modes", [["single", "one by one"], ["batch", "in batches"]]],
    ["run", "Runs", numbers.map(number => [String(number), number === 0 ? "0 (the first)" : `${number} (hot)`])],
  ];
  for (const [key, title, items] of groups) {
    const set = make("fieldset", make("legend", title));
    for (const [value, name, colour, hidden] of items) {
      const box = make("input", [], { type: "checkbox", name: key, value });
      // The system that stores nothing is a thousand times as fast as others, which would share a tenth of each axis.
      box.checked = !hidden;
      if (!hidden) chosen[key].add(value);
      box.addEventListener("change", () => {
        chosen[key][box.checked ? "add" : "delete"](value);
        refresh();
      });
      set.append(make("label", [box, colour ? swatch(colour) : " ", name]));
    }
    byId("filters").append(set);
  }
}

const visible = mode => REPORT.series.filter(series => series.sweep === "main" && series.mode === mode
  && chosen.system.has(series.system) && chosen.mode.has(mode));
const runsOf = series => series.runs.filter(run => chosen.run.has(String(run.number)));

// Plots

const plots = [];
const MODES = { single: "one by one", batch: "in batches" };
const ms = value => `${shownNumber(value)} ms`;
const isCold = run => run.number === 0;

function perRun(key, style) {
  return mode => visible(mode).flatMap(series => runsOf(series).filter(run => run[key].length).map(run => ({
    label: `${series.title}, ${run.title}`, colour: colourOf[series.system], style, faint: isCold(run),
    dash: isCold(run) ? [4, 3] : [], points: run[key],
  })));
}

// `of` gives what is shown of a series: the value and both ends of its interval, or nothing.
function estimates(of) {
  return mode => visible(mode).map((series, row) => {
    const found = of(series);
    return {
      label: series.title, colour: colourOf[series.system], style: "intervals",
      points: found ? [[found[0], row, "hot runs", found[1], found[2]]] : [],
    };
  });
}

function estimatesOfRuns(key) {
  return mode => visible(mode).flatMap((series, row) => runsOf(series).map((run, place) => {
    const found = run.estimates[key];
    return {
      label: `${series.title}, ${run.title}`, colour: colourOf[series.system], style: "intervals", faint: isCold(run),
      points: found ? [[found[0], row + (place - 1) * 0.2, run.state, found[1], found[2]]] : [],
    };
  }));
}

// The quantities that the studies set side by side: those that may be zero or less have no logarithm.
const ofRuns = REPORT.quantities.filter(quantity => REPORT.of_runs.includes(quantity.key)).map(quantity => ({
  title: `${quantity.title} of each run`, x: { title: `${quantity.unit}, log scale`, log: true }, y: { rows: [] },
  layers: estimatesOfRuns(quantity.key), read: point => `${shownNumber(point[0])} ${quantity.unit}`,
}));
const ofSeries = REPORT.quantities.filter(quantity => !REPORT.of_runs.includes(quantity.key)).map(quantity => ({
  title: `${quantity.title}, hot runs`, y: { rows: [] },
  x: quantity.signed ? { title: quantity.unit, free: true } : { title: `${quantity.unit}, log scale`, log: true },
  layers: estimates(series => series.estimates[quantity.key]), ...(quantity.signed ? { reference: 0 } : {}),
  read: point => `${shownNumber(point[0])} ${quantity.unit}`,
}));

const seconds = { title: "seconds since the run began" };
const KINDS = [
  ...ofRuns,
  ...ofSeries,
  { title: `Run 0 over hot runs, ${REPORT.leading}`, x: { title: "ratio", free: true }, y: { rows: [] }, layers: estimates(series => series.cold),
    reference: 1, read: point => `${point[0].toFixed(3)} times` },
  { title: "Write times over the run", x: seconds, y: { title: "ms, log scale", log: true }, layers: perRun("write", "points"),
    read: point => `${ms(point[1])} at ${point[0].toFixed(2)} s` },
  { title: "Writes slower than a time", x: { title: "write time in ms, log scale", log: true }, y: { title: "% slower, log scale", log: true },
    layers: perRun("tail", "line"), read: point => `${shownNumber(point[1])} % take longer than ${ms(point[0])}` },
  { title: "Read times over the run", x: seconds, y: { title: "ms a read, log scale", log: true }, layers: perRun("read", "points"),
    read: point => `${ms(point[1])} at ${point[0].toFixed(2)} s` },
  { title: "CPU of the machine", x: seconds, y: { title: "%" }, layers: perRun("cpu", "line"),
    read: point => `${shownNumber(point[1])} % at ${point[0].toFixed(1)} s` },
  { title: "Bytes that reached the disk in each second", x: seconds, y: { title: "MB" }, layers: perRun("disk", "line"),
    read: point => `${shownNumber(point[1])} MB at ${point[0].toFixed(1)} s` },
];

function buildPlots() {
  for (const kind of KINDS) for (const mode of Object.keys(MODES)) {
    const title = `${kind.title}, ${MODES[mode]}`;
    const canvas = make("canvas", []);
    const options = { ...kind, title, x: { ...kind.x }, y: { ...kind.y } };
    const plot = new Plot(canvas, options);
    const button = (name, label, act) => {
      const made = make("button", name, { type: "button", "aria-label": `${label}: ${title}` });
      made.addEventListener("click", act);
      return made;
    };
    const tools = make("span", [button("+", "Zoom in", () => plot.zoom(0.8)), button("−", "Zoom out", () => plot.zoom(1.25)),
      button("reset", "Reset", () => plot.reset())]);
    const figure = make("figure", [make("figcaption", [title, tools]), canvas]);
    byId("canvases").append(figure);
    plots.push({ plot, kind, mode, figure });
  }
}

function refresh() {
  for (const { plot, kind, mode, figure } of plots) {
    const layers = chosen.mode.has(mode) ? kind.layers(mode) : [];
    figure.hidden = !layers.some(layer => layer.points.length); // an empty frame would say nothing
    if (figure.hidden) continue;
    if (plot.options.y.rows) plot.options.y.rows = visible(mode).map(series => series.title);
    plot.show(layers);
  }
  budgets();
  for (const entry of document.querySelectorAll("#run-list [data-system]"))
    entry.hidden = !(chosen.system.has(entry.dataset.system) && chosen.mode.has(entry.dataset.mode)
      && (entry.dataset.run === "" || chosen.run.has(entry.dataset.run)));
}

function budgets() {
  const rows = [];
  for (const mode of Object.keys(MODES)) for (const series of visible(mode)) for (const run of runsOf(series)) {
    const total = Object.values(run.budget).reduce((sum, part) => sum + part, 0);
    const words = Object.entries(run.budget).map(([part, time]) => `${part.replaceAll("_", " ")} ${(100 * time / total).toFixed(1)} %`).join(", ");
    const parts = Object.entries(run.budget).map(([part, time]) => make("i", [], { style: `width:${100 * time / total}%;background:${REPORT.parts[part] || "#999"}` }));
    const name = `${series.title}, ${series.mode_title}, ${run.title}`;
    rows.push(make("div", [make("span", name), make("div", parts, { role: "img", title: words, "aria-label": `${name}: ${words}` })], { class: "bar" }));
  }
  byId("budget").replaceChildren(...rows);
}

// Runs

function facts(pairs) {
  return make("dl", pairs.flatMap(([name, value]) => [make("dt", name), make("dd", value)]), { class: "facts" });
}

function runSections() {
  for (const series of REPORT.series) {
    const kind = `${series.mode_title}${series.sweep === "main" ? "" : `, sweep ${series.sweep}`}`;
    const tags = run => ({ "data-system": series.system, "data-mode": series.mode, "data-run": run });
    if (!series.runs.length) byId("run-list").append(make("p", [swatch(colourOf[series.system]), make("b", series.title), `, ${kind}: ${series.status}: ${series.reason}`], tags("")));
    for (const line of series.attempts) byId("run-list").append(make("p", [swatch(colourOf[series.system]), make("b", series.title), `, ${kind}: ${line}`], { class: "attempts", ...tags("") }));
    for (const run of series.runs) {
      const marked = run.disturbed ? `, DISTURBED: ${run.disturbed}` : "";
      const head = [swatch(colourOf[series.system]), make("b", series.title), `, ${kind}, ${run.title} `,
        `(${run.state}): ${run.events.toLocaleString("en")} events, ${run.facts.Oracle}${marked}`];
      const detail = make("details", make("summary", head), { id: `run-${run.label.replaceAll("/", "-")}`, ...tags(String(run.number)) });
      detail.addEventListener("toggle", () => {
        if (detail.children.length > 1) return;
        detail.append(facts(Object.entries(run.facts)), make("h3", "Manifest (run.json)"), make("pre", JSON.stringify(run.manifest, null, 1), { tabindex: "0" }));
      });
      byId("run-list").append(detail);
    }
  }
}

byId("about").textContent = REPORT.about;
for (const warning of REPORT.warnings) byId("warnings").append(make("p", warning, { class: "warning" }));
for (const each of REPORT.durability) document.querySelector("#durability tbody").append(make("tr", [
  make("td", each.system), make("td", each.format, { "data-label": "Format" }), make("td", each.client, { "data-label": "Client" }),
  make("td", each.catalog, { "data-label": "Commit held by" }), make("td", each.level, { "data-label": "Durability" }),
  make("td", each.durability, { "data-label": "Durable when a write returns" }),
]));
byId("synthetic").hidden = !REPORT.synthetic;
byId("sampling").textContent = REPORT.sampling;
for (const [part, colour] of Object.entries(REPORT.parts)) byId("budget-legend").append(make("span", [swatch(colour), part.replaceAll("_", " ")]));
claims();
filters();
buildPlots();
runSections();
refresh();
document.body.dataset.ready = "yes";
