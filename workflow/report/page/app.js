// Start the page: build its parts in order, link to those with content, and read the view from the address.
"use strict";

const JUMPS = [["archives", "Results"], ["answers", "Answers"], ["matrix", "Matrix"], ["plots", "Plots"], ["claims", "Claims"], ["runs", "Runs"], ["downloads", "Downloads"]];

// The address's fragment holds the view, so links inside the page scroll without changing it.
function jump(link) {
  link.addEventListener("click", event => {
    event.preventDefault();
    goTo(document.querySelector(link.getAttribute("href")));
  });
}

function jumps() {
  if (REPORT.back) byId("jumps").append(make("a", "Back to the site", { href: REPORT.back }), " ");
  for (const [name, title] of JUMPS) if (!byId(name).hidden) byId("jumps").append(make("a", title, { href: `#${name}` }), " ");
  document.querySelectorAll("#jumps a[href^='#'], .skip").forEach(jump);
}

// The first screen is built first; what is below it, once that was painted. A page that is not shown has no frames.
let begun = false;
function below() {
  if (begun) return;
  begun = true;
  buildPlots();
  claims();
  runSections();
  downloads();
  jumps();
  window.addEventListener("hashchange", readAddress);
  readAddress();
  document.body.dataset.ready = "yes";
}

bubbles();
themes();
title();
readFirst();
unfoldOnPaper();
answers();
archives();
durability();
filters();
byId("matrix").hidden = !MATRIX.groups.length;
legend();
changed.push(key => { if (key !== "runs" && key !== "verdicts") matrix(); });
byId("view").hidden = !MATRIX.groups.length && !SERIES.length;
parse(location.hash.includes("=") ? location.hash.slice(1) : "");
for (const tell of changed) tell(null);
requestAnimationFrame(() => setTimeout(below));
setTimeout(below, 500);
