// Shared by all parts of the page: the data, elements, number formats, and tooltips ("bubbles").
"use strict";

const REPORT = JSON.parse(document.getElementById("data").textContent);
document.body.dataset.errors = "0";
window.addEventListener("error", () => { document.body.dataset.errors = String(Number(document.body.dataset.errors) + 1); });

const byId = name => document.getElementById(name);
const MODES = { single: "one by one", batch: "in batches" };
const MATRIX = REPORT.matrix ?? { questions: [], groups: [] };
const SERIES = REPORT.series ?? [];

function make(tag, content, attributes = {}) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  for (const child of [content].flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

const slug = words => words.replaceAll(" ", "-");
const unseen = words => make("span", words, { class: "unseen" });
const upperFirst = words => words.charAt(0).toUpperCase() + words.slice(1);
const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const announce = words => { byId("announce").textContent = words; };

// At least `digits` significant digits; large numbers without decimals, from a million on with M or G.
function shownNumber(value, digits = 2) {
  if (value < 0) return `−${shownNumber(-value, digits)}`;
  const size = value;
  if (size === 0) return "0";
  for (const [least, sign] of [[999_500_000, " G"], [999_500, " M"]])
    if (size >= least) return `${Number((value / (sign === " G" ? 1e9 : 1e6)).toPrecision(3))}${sign}`;
  if (size >= 999.5) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(size >= 99.5 ? 3 : digits)));
}

// Bubbles show an element's `data-tip` while the pointer or the focus is on it. Screen readers get the same text from
// the element itself.

function showBubble(element) {
  const bubble = byId("bubble"), box = element.getBoundingClientRect();
  bubble.textContent = element.dataset.tip;
  bubble.hidden = false;
  const below = box.bottom + 6, above = box.top - bubble.offsetHeight - 6;
  bubble.style.left = `${Math.max(4, Math.min(box.left, document.documentElement.clientWidth - bubble.offsetWidth - 8))}px`;
  bubble.style.top = `${below + bubble.offsetHeight < window.innerHeight || above < 0 ? below : above}px`;
}

function bubbles() {
  let of = null;
  const hide = () => {
    of = null;
    byId("bubble").hidden = true;
  };
  const tell = event => {
    of = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    if (of) showBubble(of); else hide();
  };
  document.addEventListener("pointerover", tell);
  document.addEventListener("focusin", tell);
  document.addEventListener("focusout", hide);
  // Focusing an element scrolls it into view: its bubble must follow.
  document.addEventListener("scroll", () => { if (of?.contains(document.activeElement)) showBubble(of); else hide(); }, { capture: true, passive: true });
  document.addEventListener("keydown", event => { if (event.key === "Escape") hide(); });
}
