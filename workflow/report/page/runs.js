// The runs with their records, and the reasons of series without runs.
"use strict";

function facts(pairs) {
  return make("dl", pairs.flatMap(([name, value]) => [make("dt", name), make("dd", value)]), { class: "facts" });
}

// A page with many runs links to the manifest files instead of including them.
function manifest(run) {
  if (run.manifest) return make("pre", JSON.stringify(run.manifest, null, 1), { tabindex: "0" });
  const place = `${run.place}/run.json`;
  return make("p", make("a", place, { href: place.split("/").map(encodeURIComponent).join("/") }));
}

function runSections() {
  byId("runs").hidden = !SERIES.length;
  for (const series of SERIES) {
    const kind = `${series.mode_title}${series.sweep === "main" ? "" : `, sweep ${series.sweep}`}`;
    const tags = run => ({ "data-system": series.system, "data-mode": series.mode, "data-stack": stackOf(series) ?? "", "data-run": run });
    if (!series.runs.length) byId("run-list").append(make("p", [swatch(series.system), make("b", series.title), `, ${kind}: ${series.status}: ${series.reason}`], tags("")));
    for (const line of series.attempts) byId("run-list").append(make("p", [swatch(series.system), make("b", series.title), `, ${kind}: ${line}`], { class: "attempts", ...tags("") }));
    for (const run of series.runs) {
      const marked = run.disturbed ? `; DISTURBED: ${run.disturbed}` : "";
      const cells = [[swatch(series.system), make("b", series.title)], kind, `${run.title}, ${run.state}`,
        `${run.events.toLocaleString("en")} events`, run.facts.Oracle + marked];
      const detail = make("details", make("summary", cells.map(cell => make("span", cell))), { id: `run-${run.label.replaceAll("/", "-")}`, ...tags(String(run.number)) });
      detail.addEventListener("toggle", () => {
        if (detail.children.length > 1) return;
        detail.append(facts(Object.entries(run.facts)), make("h3", "Manifest (run.json)"), manifest(run));
      });
      byId("run-list").append(detail);
    }
  }
  changed.push(showRuns);
}

function showRuns() {
  for (const entry of document.querySelectorAll("#run-list [data-system]")) {
    const { system, mode, stack, run } = entry.dataset;
    entry.hidden = !(view.systems.has(system) && allows("modes", mode) && allows("stacks", stack) && allows("runs", run));
  }
}
