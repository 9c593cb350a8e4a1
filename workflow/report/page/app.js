// Starts the page: builds its parts in their order, links to those that have content, and takes the view from the address.
"use strict";

const JUMPS = [["archives", "Results"], ["answers", "Answers"], ["matrix", "Matrix"], ["plots", "Plots"], ["claims", "Claims"], ["runs", "Runs"]];

// The address holds the view: a link inside the page scrolls, and leaves the fragment alone.
function jump(link) {
  link.addEventListener("click", event => {
    event.preventDefault();
    goTo(document.querySelector(link.getAttribute("href")));
  });
}

function jumps() {
  for (const [name, title] of JUMPS) if (!byId(name).hidden) byId("jumps").append(make("a", title, { href: `#${name}` }), " ");
  document.querySelectorAll("#jumps a, .skip").forEach(jump);
}

bubbles();
themes();
readFirst();
unfoldOnPaper();
answers();
archives();
durability();
filters();
byId("matrix").hidden = !MATRIX.groups.length;
legend();
changed.push(key => { if (key !== "runs" && key !== "verdicts") matrix(); });
buildPlots();
claims();
runSections();
byId("view").hidden = !MATRIX.groups.length && !SERIES.length;
jumps();
window.addEventListener("hashchange", readAddress);
readAddress();
document.body.dataset.ready = "yes";
