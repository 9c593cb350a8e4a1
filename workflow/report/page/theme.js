// Light and dark theme: the choice, and system colours that are visible on both.
"use strict";

const KEPT = "tidemark-theme";
const asked = matchMedia("(prefers-color-scheme: dark)");
const repaint = []; // called when the theme has changed
const theme = () => document.documentElement.dataset.theme;

// A page in a frame or on a disk may have no storage; then the choice holds until the page is closed.
function keptTheme() {
  try { return localStorage.getItem(KEPT); } catch { return null; }
}

function keepTheme(name) {
  try { localStorage.setItem(KEPT, name); } catch { /* see above */ }
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").setAttribute("aria-pressed", String(name === "dark"));
  for (const paint of repaint) paint();
}

// Red, green and blue from the data's "#rrggbb".
const channels = colour => [1, 3, 5].map(place => parseInt(colour.slice(place, place + 2), 16));

function luminance(parts) {
  const [red, green, blue] = parts.map(part => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// A system has one colour in all figures; it is mixed with black on a white page, and with white on a dark one, until the
// contrast is at least 3 to 1.
function seen(colour) {
  if (!/^#[0-9a-f]{6}$/i.test(colour)) return colour;
  const dark = theme() === "dark", paper = luminance(channels(dark ? "#14181b" : "#ffffff")), towards = dark ? 255 : 0;
  const contrast = ([one, other]) => (one + 0.05) / (other + 0.05);
  let parts = channels(colour);
  while (contrast([luminance(parts), paper].sort((a, b) => b - a)) < (dark ? 3.5 : 3)) parts = parts.map(part => part + (towards - part) * 0.12);
  return `rgb(${parts.map(Math.round).join(" ")})`;
}

function themes() {
  const kept = keptTheme();
  setTheme(kept === "dark" || kept === "light" ? kept : asked.matches ? "dark" : "light");
  repaint.push(() => {
    for (const each of document.querySelectorAll("[data-colour]")) each.style.background = seen(each.dataset.colour);
  });
  byId("theme").addEventListener("click", () => {
    const other = theme() === "dark" ? "light" : "dark";
    keepTheme(other);
    setTheme(other);
  });
  asked.addEventListener("change", () => { if (!keptTheme()) setTheme(asked.matches ? "dark" : "light"); });
  // Paper is white: canvases keep their pixels, so they are drawn again before and after printing.
  let before = null;
  window.addEventListener("beforeprint", () => {
    before ??= theme();
    setTheme("light");
  });
  window.addEventListener("afterprint", () => {
    if (before) setTheme(before);
    before = null;
  });
}
