// A zoomable plot on a canvas. A layer is {label, name, colour, marker, style: "points" | "line" | "intervals", points:
// [[x, y, note]...]}; intervals have points [value, row, note, low, high]. Coordinates are plain numbers; log axes take
// their logarithms. Lines have their names at their ends, one for all lines of a name, and some points have markers. A plot
// is drawn while it is near the screen, or on paper.
"use strict";

const PAD = { right: 14, top: 10, bottom: 40 };
const MOST_MARKERS = 12; // of a line or of the points of a run
const NAME = { height: 13, gap: 15, share: 0.3 }; // of a line, in pixels; the share of a plot's width that names may take
// A canvas has no style: its colours are read from the page when it is drawn.
const ofStyle = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

class Plot {
  constructor(canvas, options) {
    this.canvas = canvas;
    this.options = options;
    this.near = false;
    this.show([]);
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    const on = (name, handle, more) => canvas.addEventListener(name, handle.bind(this), more);
    on("pointermove", this.hover);
    on("pointerleave", () => this.tell(null));
    on("pointerdown", this.grab);
    on("pointerup", this.release);
    on("dblclick", () => this.reset());
    on("wheel", this.wheel, { passive: false });
    on("keydown", this.key);
    on("focus", () => this.approach(true));
    on("blur", () => this.tell(null));
    new ResizeObserver(() => this.draw()).observe(canvas);
    new IntersectionObserver(seen => this.approach(seen.at(-1).isIntersecting), { rootMargin: "50%" }).observe(canvas);
  }

  approach(near) {
    this.near = near;
    this.draw();
  }

  show(layers) {
    const { canvas, options } = this, count = layers.reduce((sum, layer) => sum + layer.points.length, 0);
    this.layers = layers;
    this.points = null;
    this.picked = -1;
    canvas.setAttribute("aria-label", `${options.title}: ${count} marks of ${layers.length} runs or systems. ${options.x.title} against ${options.y.title}.`);
    this.reset();
  }

  // Both are made when they are first asked for: a report has up to 240,000 points.
  get marks() { return this.points ??= this.layers.flatMap(layer => layer.points.map(point => ({ layer, point }))); }
  get view() { return this.ranges ??= { x: this.range("x"), y: this.range("y") }; }

  to(axis, value) { return this.options[axis].log ? Math.log10(Math.max(value, 1e-12)) : value; }
  from(axis, value) { return this.options[axis].log ? 10 ** value : value; }

  reset() {
    this.ranges = null;
    this.draw();
  }

  range(axis) {
    const { log, rows, free } = this.options[axis], place = axis === "x" ? 0 : 1;
    let low = Infinity, high = -Infinity;
    for (const { point } of this.marks) {
      for (const value of axis === "x" && point.length > 3 ? [point[0], point[3] ?? point[0], point[4] ?? point[0]] : [point[place]]) {
        if (log && value <= 0) continue;
        const at = this.to(axis, value);
        low = Math.min(low, at); high = Math.max(high, at);
      }
    }
    if (low === Infinity) return [0, 1];
    if (rows) return [-0.6, rows.length - 0.4];
    if (!log && !free) low = Math.min(low, 0);
    const margin = (high - low || Math.abs(high) || 1) * 0.04;
    return [low === 0 ? 0 : low - margin, high + margin];
  }

  pixel(axis, value) {
    const [low, high] = this.view[axis], share = (this.to(axis, value) - low) / (high - low);
    const flip = axis === "y" && !this.options.y.rows;
    return axis === "x" ? this.left + share * this.inner.width
      : PAD.top + (flip ? 1 - share : share) * this.inner.height;
  }

  ticks(axis) {
    const [low, high] = this.view[axis], wanted = axis === "x" ? 6 : 5;
    if (this.options[axis].rows) return this.options[axis].rows.map((name, row) => [row, name]);
    const found = [];
    if (this.options[axis].log && high - low > 1) {
      const step = Math.max(1, Math.ceil((high - low) / wanted));
      for (let power = Math.floor(low); power <= high; power += step)
        for (const factor of high - low < 2.5 ? [1, 2, 5] : [1]) {
          const at = factor * 10 ** power;
          if (at >= 10 ** low && at <= 10 ** high) found.push([at, shownNumber(at)]);
        }
      return found;
    }
    const from = this.from(axis, low), to = this.from(axis, high);
    const rough = (to - from) / wanted, unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(factor => factor * unit).find(size => size >= rough);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-6; at += step)
      found.push([at, Math.abs(at) >= 1000 ? Math.round(at).toLocaleString("en") : at.toFixed(digits)]);
    return found;
  }

  draw() {
    if (!this.near) return;
    const { canvas, options } = this, scale = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !height) return;
    canvas.width = width * scale; canvas.height = height * scale;
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "12px system-ui, sans-serif";
    const left = options.y.rows ? Math.min(width * 0.42, 205) : 64;
    this.left = left;
    const names = [...new Set(this.layers.filter(layer => layer.style === "line").map(layer => layer.name))];
    const longest = Math.max(0, ...names.map(name => pen.measureText(name).width));
    const right = names.length ? Math.min(longest + NAME.gap + 2, width * NAME.share) : PAD.right;
    this.inner = { width: width - left - right, height: height - PAD.top - PAD.bottom };
    pen.strokeStyle = ofStyle("grid"); pen.fillStyle = ofStyle("ink");
    pen.textAlign = "center";
    let free = 0;
    for (const [at, name] of this.ticks("x")) {
      const x = this.pixel("x", at);
      if (x < left - 1 || x > width - right + 1) continue;
      pen.beginPath(); pen.moveTo(x, PAD.top); pen.lineTo(x, PAD.top + this.inner.height); pen.stroke();
      const half = pen.measureText(name).width / 2, middle = Math.min(x, width - half - 1);
      if (middle - half < free) continue;
      pen.fillText(name, middle, height - PAD.bottom + 15);
      free = middle + half + 6;
    }
    pen.textAlign = "right";
    for (const [at, name] of this.ticks("y")) {
      const y = this.pixel("y", at);
      if (y < PAD.top - 1 || y > PAD.top + this.inner.height + 1) continue;
      pen.beginPath(); pen.moveTo(left, y); pen.lineTo(width - right, y); pen.stroke();
      const short = name.length > 34 ? `${name.slice(0, 33)}…` : name;
      pen.fillText(short, left - 6, y + 4, left - 8);
    }
    pen.textAlign = "center";
    pen.fillText(options.x.title, left + this.inner.width / 2, height - 6);
    if (!options.y.rows) {
      pen.save(); pen.translate(12, PAD.top + this.inner.height / 2); pen.rotate(-Math.PI / 2);
      pen.fillText(options.y.title, 0, 0); pen.restore();
    }
    if (options.y.rows) {
      pen.textAlign = "left";
      const full = new Set(this.marks.map(({ point }) => Math.round(point[1])));
      options.y.rows.forEach((_, row) => { if (!full.has(row)) pen.fillText("no value", left + 6, this.pixel("y", row) + 4); });
      pen.textAlign = "center";
    }
    if (!this.marks.length) pen.fillText("no data: nothing is selected, or nothing was measured", left + this.inner.width / 2, height / 2);
    pen.save();
    pen.beginPath(); pen.rect(left, PAD.top - 4, this.inner.width + 2, this.inner.height + 8); pen.clip();
    if (options.reference !== undefined) {
      const x = this.pixel("x", options.reference);
      pen.strokeStyle = ofStyle("faint"); pen.beginPath(); pen.moveTo(x, PAD.top); pen.lineTo(x, PAD.top + this.inner.height); pen.stroke();
    }
    let drawn = 0;
    for (const layer of this.layers) drawn += this.paint(pen, layer);
    pen.restore();
    this.label(pen, right);
    if (this.picked >= 0) this.ring(pen, this.marks[this.picked]);
    canvas.dataset.drawn = drawn;
  }

  paint(pen, layer) {
    pen.fillStyle = pen.strokeStyle = seen(layer.colour);
    pen.globalAlpha = layer.faint ? 0.55 : 0.9;
    if (layer.style === "line") {
      pen.lineWidth = 1.4;
      pen.setLineDash(layer.dash || []);
      pen.beginPath();
      layer.points.forEach((point, place) => {
        const x = this.pixel("x", point[0]), y = this.pixel("y", point[1]);
        if (place) pen.lineTo(x, y); else pen.moveTo(x, y);
      });
      pen.stroke();
      pen.setLineDash([]);
      pen.lineWidth = 1;
    }
    for (const point of layer.style === "line" ? [] : layer.points) {
      const x = this.pixel("x", point[0]), y = this.pixel("y", point[1]);
      if (layer.style === "intervals") {
        if (point[3] !== null && point[3] !== undefined) pen.fillRect(this.pixel("x", point[3]), y - 1, Math.max(1, this.pixel("x", point[4]) - this.pixel("x", point[3])), 2);
        this.mark(pen, layer, x, y, 5);
      } else pen.fillRect(x - 1, y - 1, 2.4, 2.4);
    }
    const stride = Math.ceil(layer.points.length / MOST_MARKERS);
    for (let at = stride >> 1; layer.style !== "intervals" && at < layer.points.length; at += stride)
      this.mark(pen, layer, this.pixel("x", layer.points[at][0]), this.pixel("y", layer.points[at][1]), 4);
    pen.globalAlpha = 1;
    return layer.points.length;
  }

  mark(pen, { marker }, x, y, size) {
    pen.beginPath();
    for (const [right, down] of cornersOf(marker)) pen.lineTo(x + size * right, y + size * down);
    pen.fill();
  }

  // Write each name beside the end of its first line, where it does not cover another.
  label(pen, right) {
    const edge = this.left + this.inner.width, ends = new Map();
    for (const layer of this.layers) {
      const inside = layer.style === "line" ? layer.points.filter(point => this.pixel("x", point[0]) <= edge + 1) : [];
      if (!inside.length || ends.has(layer.name)) continue;
      const [x, y] = inside.at(-1);
      ends.set(layer.name, { layer, x: this.pixel("x", x), y: this.pixel("y", y) });
    }
    const least = PAD.top + NAME.height / 2, most = PAD.top + this.inner.height;
    const shown = [...ends.values()].filter(end => end.y >= PAD.top - 1 && end.y <= most + 1).sort((one, other) => one.y - other.y);
    shown.forEach((end, place) => { end.at = Math.max(end.y, place ? shown[place - 1].at + NAME.height : least); });
    shown.reverse().forEach((end, place) => { end.at = Math.min(end.at, place ? shown[place - 1].at - NAME.height : most); });
    this.named = shown;
    pen.textAlign = "left";
    for (const { layer, x, y, at } of shown) {
      pen.fillStyle = pen.strokeStyle = seen(layer.colour);
      pen.globalAlpha = 0.5;
      pen.beginPath(); pen.moveTo(x, y); pen.lineTo(edge + NAME.gap / 2 - 2, at); pen.stroke();
      pen.globalAlpha = 1;
      this.mark(pen, layer, edge + NAME.gap / 2, at, 4);
      pen.fillText(layer.name, edge + NAME.gap, at + 4, right - NAME.gap);
    }
    pen.textAlign = "center";
  }

  ring(pen, { point }) {
    pen.strokeStyle = ofStyle("ink"); pen.lineWidth = 2;
    pen.beginPath(); pen.arc(this.pixel("x", point[0]), this.pixel("y", point[1]), 6, 0, 7); pen.stroke();
    pen.lineWidth = 1;
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  hover(event) {
    if (!this.inner) return;
    const [x, y] = this.at(event);
    if (this.held) {
      this.pan((this.held[0] - x) / this.inner.width, (y - this.held[1]) / this.inner.height);
      this.held = [x, y];
      return;
    }
    let best = null, nearest = 400;
    this.marks.forEach(({ point }, place) => {
      const away = (this.pixel("x", point[0]) - x) ** 2 + (this.pixel("y", point[1]) - y) ** 2;
      if (away < nearest) { nearest = away; best = place; }
    });
    this.tell(best, event.clientX, event.clientY);
  }

  tell(place, x, y) {
    const tip = document.getElementById("tip");
    this.picked = place ?? -1;
    this.draw();
    tip.hidden = place === null;
    if (place === null) return;
    const { layer, point } = this.marks[place];
    tip.textContent = `${layer.label}: ${this.options.read(point)}${point[2] ? ` (${point[2]})` : ""}`;
    const box = this.canvas.getBoundingClientRect();
    x ??= box.left + this.pixel("x", point[0]); y ??= box.top + this.pixel("y", point[1]);
    tip.style.left = `${Math.max(4, Math.min(x + 12, window.innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, y - tip.offsetHeight - 12)}px`;
  }

  grab(event) { if (event.pointerType !== "touch") { this.held = this.at(event); this.canvas.setPointerCapture(event.pointerId); } }
  release() { this.held = null; }

  wheel(event) {
    // The wheel scrolls the page unless the plot has the focus.
    if (!this.inner || !(event.ctrlKey || document.activeElement === this.canvas)) return;
    event.preventDefault();
    const [x, y] = this.at(event);
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, (x - this.left) / this.inner.width, 1 - (y - PAD.top) / this.inner.height);
  }

  zoom(factor, x = 0.5, y = 0.5) {
    const apply = ([low, high], share) => {
      const at = low + (high - low) * share;
      return [at - (at - low) * factor, at + (high - at) * factor];
    };
    this.view.x = apply(this.view.x, x);
    if (!this.options.y.rows) this.view.y = apply(this.view.y, y);
    this.draw();
  }

  pan(x, y) {
    const shift = ([low, high], share) => [low + (high - low) * share, high + (high - low) * share];
    this.view.x = shift(this.view.x, x);
    if (!this.options.y.rows) this.view.y = shift(this.view.y, y);
    this.draw();
  }

  key(event) {
    const moves = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] };
    const step = { n: 1, p: -1 }[event.key.toLowerCase()];
    if (moves[event.key]) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(0.8);
    else if (event.key === "-") this.zoom(1.25);
    else if (event.key === "0" || event.key === "Home") this.reset();
    else if (event.key === "Escape") this.tell(null);
    else if (step && this.marks.length) this.tell((this.picked + step + this.marks.length) % this.marks.length);
    else return;
    event.preventDefault();
  }
}
