// Markers of systems, which differ in shape as well as in colour; the letters are those of the figures.
"use strict";

// Corners of a regular polygon, with the middle at 0 and the farthest corners 1 from it; `inner` makes a star of it.
const regular = (count, turn = 0, inner = 1) => Array.from({ length: count }, (_, place) => {
  const angle = 2 * Math.PI * place / count - Math.PI / 2 + turn, far = place % 2 ? inner : 1;
  return [far * Math.cos(angle), far * Math.sin(angle)];
});
const PLUS = [[-0.4, -1], [0.4, -1], [0.4, -0.4], [1, -0.4], [1, 0.4], [0.4, 0.4], [0.4, 1], [-0.4, 1], [-0.4, 0.4], [-1, 0.4], [-1, -0.4], [-0.4, -0.4]];
const SHAPES = {
  o: regular(24), s: regular(4, Math.PI / 4), D: regular(4), d: regular(4).map(([x, y]) => [0.6 * x, y]),
  "^": regular(3), v: regular(3, Math.PI), "<": regular(3, -Math.PI / 2), ">": regular(3, Math.PI / 2),
  P: PLUS, X: PLUS.map(([x, y]) => [(x - y) / Math.SQRT2, (x + y) / Math.SQRT2]),
  p: regular(5), h: regular(6), H: regular(6, Math.PI / 6), 8: regular(8, Math.PI / 8), "*": regular(10, 0, 0.45),
};
const cornersOf = marker => SHAPES[marker] ?? SHAPES.o;
const percent = share => `${(50 + 50 * share).toFixed(1)}%`;

// The colour and the marker of a system, beside its name.
function swatch(system) {
  const colour = colourOf[system], corners = cornersOf(markerOf[system]).map(corner => corner.map(percent).join(" "));
  return make("span", "", { class: "swatch", style: `background:${seen(colour)};clip-path:polygon(${corners.join()})`, "data-colour": colour });
}
