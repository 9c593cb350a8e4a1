// The first part of the page: warnings and facts to read before any number, the answers, and the archives that the results are from.
"use strict";

const LONG = 200; // characters: longer texts are folded, so that the answers stay in sight

function folded(text) {
  if (text.length <= LONG) return make("div", text);
  return make("details", [make("summary", `${text.slice(0, text.lastIndexOf(" ", LONG - 60))} …`), make("p", text)]);
}

function warning({ label, text }) {
  const made = folded(`${label}: ${text}`);
  made.classList.add("warning");
  return made;
}

// Highlight the words that a reader must not miss.
const alarmed = text => text.split(/(SYNTHETIC)/).map((part, place) => place % 2 ? make("b", part, { class: "alarm" }) : part);

function readFirst() {
  const facts = REPORT.read_first ?? [];
  byId("read-first").hidden = !facts.length;
  byId("warnings").append(...facts.filter(each => each.warning).map(warning));
  const plain = facts.filter(each => !each.warning);
  byId("facts").hidden = !plain.length;
  byId("facts").querySelector("summary").textContent = plain.map(({ label }, place) => place ? label.charAt(0).toLowerCase() + label.slice(1) : label).join(", ");
  byId("facts").querySelector("dl").append(...plain.map(({ label, text }) => make("div", [make("dt", label), make("dd", text)])));
  byId("facts").open = matchMedia("(min-width: 641px)").matches;
}

// Folded parts cannot be opened on paper, so they are opened for printing.
function unfoldOnPaper() {
  const folds = [];
  window.addEventListener("beforeprint", () => {
    folds.push(...document.querySelectorAll("#read-first details:not([open]), #archives details:not([open])"));
    for (const fold of folds) fold.open = true;
  });
  window.addEventListener("afterprint", () => { for (const fold of folds.splice(0)) fold.open = false; });
}

// An interval stays on one line.
const unbroken = text => text.split(/(\[[^\]]*\])/).map((part, place) => place % 2 ? make("span", part, { class: "whole" }) : part);

function answers() {
  const found = REPORT.answers ?? [];
  byId("answers").hidden = !found.length;
  byId("answers").querySelector("ul").append(...found.map(({ key, title, text, apart }) => make("li", [
    make("h3", title), make("p", unbroken(text)), apart ? make("p", unbroken(upperFirst(apart)), { class: "apart" }) : null,
  ], { "data-key": key })));
}

// Say in the title what is in the page: its results, or the archives.
function title() {
  const found = REPORT.gallery ?? [];
  const name = found.length > 1 ? "several archives" : found[0]?.name ?? REPORT.title;
  if (!name) return;
  document.title = `Tidemark: ${name}`;
  byId("title").append(`: ${name}`);
}

function downloads() {
  const found = REPORT.downloads ?? [];
  byId("downloads").hidden = !found.length;
  byId("downloads").querySelector("ul").append(...found.map(([place, what]) => make("li", [make("a", place, { href: place }), `: ${what}`])));
}

function archives() {
  const found = REPORT.gallery ?? [];
  byId("archives").hidden = !found.length;
  if (!found.length) return;
  const columns = [
    ["Results", each => [make("b", each.title || each.name), " ", make("code", [each.title && each.title !== each.name ? each.name : "", " ", each.sha256.slice(0, 12)], { title: `sha256 ${each.sha256}` })]],
    ["Machine", each => each.machine],
    ["Dataset", each => alarmed(each.synthetic && !each.dataset.includes("SYNTHETIC") ? `SYNTHETIC. ${each.dataset}` : each.dataset)],
    ["Protocol", each => each.protocol],
    ["Version", each => [each.version, each.harness ? make("code", ` ${each.harness}`) : null]],
    ["Runs", each => typeof each.runs === "number" ? each.runs.toLocaleString("en") : each.runs],
    ["Marks", each => folded(each.marks.join("; ") || "none")],
    ["Failures", each => folded(each.failures.join("; ") || "none")],
  ];
  const table = byId("archives").querySelector("table");
  table.className = "cards";
  table.append(make("thead", make("tr", columns.map(([title]) => make("th", title, { scope: "col" })))),
    make("tbody", found.map(each => make("tr", columns.map(([title, of], place) =>
      place ? make("td", of(each), { "data-label": title }) : make("th", of(each), { scope: "row" }))))));
}

function durability() {
  const found = REPORT.durability ?? [];
  byId("about-systems").hidden = !found.length;
  byId("durability").className = "cards";
  document.querySelector("#durability tbody").append(...found.map(each => make("tr", [
    make("th", each.system, { scope: "row" }), make("td", each.format, { "data-label": "Format" }), make("td", each.client, { "data-label": "Client" }),
    make("td", each.catalog, { "data-label": "Commit held by" }), make("td", each.level, { "data-label": "Durability" }),
    make("td", each.durability, { "data-label": "Durable when a write returns" }),
  ])));
}
