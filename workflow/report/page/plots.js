// The plots, and the data of the chosen series that each of them shows.
"use strict";

// Every mode of a series with its name; modes of studies without a choice of modes are always shown.
const PLOTTED = new Map(SERIES.map(series => [series.mode, MODES[series.mode] ?? series.mode_title])
  .sort(([one], [other]) => Number(!MODES[one]) - Number(!MODES[other])
    || (MODES[one] ? Object.keys(MODES).indexOf(one) - Object.keys(MODES).indexOf(other) : one.localeCompare(other, "en", { numeric: true }))));
const visible = mode => SERIES.filter(series => series.sweep === "main" && series.mode === mode
  && allows("modes", mode) && view.systems.has(series.system) && allows("stacks", stackOf(series)));
const runsOf = series => series.runs.filter(run => view.runs.has(String(run.number)));

// The name of a series at the end of its line, and how its system looks.
const looks = series => ({ name: series.title, colour: colourOf[series.system], marker: markerOf[series.system] });

const plots = [];
const ms = value => `${shownNumber(value)} ms`;
const isCold = run => run.number === 0;

function perRun(key, style) {
  return mode => visible(mode).flatMap(series => runsOf(series).filter(run => run[key].length).map(run => ({
    ...looks(series), label: `${series.title}, ${run.title}`, style, faint: isCold(run),
    dash: isCold(run) ? [4, 3] : [], points: run[key],
  })));
}

function perSeries(key, style) {
  return mode => visible(mode).filter(series => series[key]?.length).map(series => ({
    ...looks(series), label: series.title, style, points: series[key],
  }));
}

// `of` returns the value of a series and both ends of its interval, or nothing.
function estimates(of) {
  return mode => visible(mode).map((series, row) => {
    const found = of(series);
    return {
      ...looks(series), label: series.title, style: "intervals",
      points: found ? [[found[0], row, "hot runs", found[1], found[2]]] : [],
    };
  });
}

function estimatesOfRuns(key) {
  return mode => visible(mode).flatMap((series, row) => runsOf(series).map((run, place, all) => {
    const found = run.estimates[key];
    return {
      ...looks(series), label: `${series.title}, ${run.title}`, style: "intervals", faint: isCold(run),
      points: found ? [[found[0], row + (place - (all.length - 1) / 2) * Math.min(0.2, 0.8 / all.length), run.state, found[1], found[2]]] : [],
    };
  }));
}

// The quantities that the studies compare; those that can be zero or negative have no log scale.
const ofRuns = (REPORT.quantities ?? []).filter(quantity => REPORT.of_runs.includes(quantity.key)).map(quantity => ({
  title: `${quantity.title} of each run`, x: { title: `${quantity.unit}, log scale`, log: true }, y: { rows: [] },
  layers: estimatesOfRuns(quantity.key), read: point => `${shownNumber(point[0])} ${quantity.unit}`,
}));
const ofSeries = (REPORT.quantities ?? []).filter(quantity => !REPORT.of_runs.includes(quantity.key)).map(quantity => ({
  title: `${quantity.title}, hot runs`, y: { rows: [] },
  x: quantity.signed ? { title: quantity.unit, free: true } : { title: `${quantity.unit}, log scale`, log: true },
  layers: estimates(series => series.estimates[quantity.key]), ...(quantity.signed ? { reference: 0 } : {}),
  read: point => `${shownNumber(point[0])} ${quantity.unit}`,
}));

const seconds = { title: "seconds since the run began" };
const KINDS = [
  { title: "Time of a commit by the commits in the table", x: { title: "commits in the table, log scale", log: true },
    y: { title: "ms, log scale", log: true }, layers: perSeries("ages", "line"), read: point => `${ms(point[1])} at commit ${shownNumber(point[0])}` },
  ...ofRuns,
  ...ofSeries,
  { title: `Run 0 over hot runs, ${REPORT.leading}`, x: { title: "ratio", free: true }, y: { rows: [] }, layers: estimates(series => series.cold),
    reference: 1, read: point => `${point[0].toFixed(3)} times` },
  { title: "Times of operations over the run", x: seconds, y: { title: "ms, log scale", log: true }, layers: perRun("write", "points"),
    read: point => `${ms(point[1])} at ${point[0].toFixed(2)} s` },
  { title: "Operations slower than a time", x: { title: "time of an operation in ms, log scale", log: true }, y: { title: "% slower, log scale", log: true },
    layers: perRun("tail", "line"), read: point => `${shownNumber(point[1])} % take longer than ${ms(point[0])}` },
  { title: "Read times over the run", x: seconds, y: { title: "ms per read, log scale", log: true }, layers: perRun("read", "points"),
    read: point => `${ms(point[1])} at ${point[0].toFixed(2)} s` },
  { title: "CPU of the machine", x: seconds, y: { title: "%" }, layers: perRun("cpu", "line"),
    read: point => `${shownNumber(point[1])} % at ${point[0].toFixed(1)} s` },
  { title: "Bytes that reached the disk in each second", x: seconds, y: { title: "MB" }, layers: perRun("disk", "line"),
    read: point => `${shownNumber(point[1])} MB at ${point[0].toFixed(1)} s` },
];

// Parts of a bar keep the figures' colours in both themes.
const partSwatch = colour => make("span", "", { class: "swatch", style: `background:${colour}` });

function buildPlots() {
  byId("plots").hidden = !SERIES.length;
  if (!SERIES.length) return;
  byId("sampling").textContent = REPORT.sampling;
  for (const [part, colour] of Object.entries(REPORT.parts)) byId("budget-legend").append(make("span", [partSwatch(colour), part.replaceAll("_", " ")]));
  for (const kind of KINDS) for (const [mode, called] of PLOTTED) {
    const title = `${kind.title}, ${called}`;
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
  changed.push(key => { if (key !== "sort" && key !== "columns" && key !== "verdicts") showPlots(); });
  repaint.push(() => { for (const { plot } of plots) plot.draw(); });
  window.addEventListener("beforeprint", () => { for (const { plot } of plots) plot.approach(true); });
}

function showPlots() {
  for (const { plot, kind, mode, figure } of plots) {
    const layers = kind.layers(mode);
    figure.hidden = !layers.some(layer => layer.points.length); // no empty frames
    if (figure.hidden) continue;
    if (plot.options.y.rows) plot.options.y.rows = visible(mode).map(series => series.title);
    plot.show(layers);
  }
  const named = new Map([...PLOTTED.keys()].flatMap(visible).map(series => [series.title, series.system]));
  byId("plot-legend").replaceChildren(...[...named].map(([name, system]) => make("span", [swatch(system), name])));
  byId("no-plots").hidden = plots.some(({ figure }) => !figure.hidden);
  budgets();
}

// A bar per system and mode: where the time of all chosen runs went.
function budgets() {
  const rows = [];
  for (const mode of PLOTTED.keys()) for (const series of visible(mode)) {
    const spent = {};
    for (const run of runsOf(series)) for (const [part, time] of Object.entries(run.budget)) spent[part] = (spent[part] ?? 0) + time;
    const total = Object.values(spent).reduce((sum, time) => sum + time, 0);
    if (!total) continue; // its study divides the time into other parts
    const words = Object.entries(spent).map(([part, time]) => `${part.replaceAll("_", " ")} ${(100 * time / total).toFixed(1)} %`).join(", ");
    const parts = Object.entries(spent).map(([part, time]) => make("i", [], { style: `width:${100 * time / total}%;background:${REPORT.parts[part] || "#999"}` }));
    const name = `${series.title}, ${series.mode_title}`;
    rows.push(make("div", [make("span", [swatch(series.system), name]), make("div", parts, { role: "img", title: words, "aria-label": `${name}: ${words}` })], { class: "bar" }));
  }
  byId("budget").replaceChildren(...rows);
  byId("budgets").hidden = !rows.length;
}
