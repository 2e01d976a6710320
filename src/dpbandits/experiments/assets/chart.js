"use strict";
// Line charts: a legend that toggles, a linear switch, a readout for pointer and arrow keys. No library, no network.
(() => {
  const { panels } = JSON.parse(document.getElementById("data").textContent);
  const DASHES = ["none", "7 3", "2 2.5", "10 3 2 3"];
  // Markers around 0 0, in the order of the figures' own: none, circle, square, triangle, diamond, triangle down, plus.
  const MARKERS = ["", "M-3 0A3 3 0 1 0 3 0A3 3 0 1 0-3 0Z", "M-3-3H3V3H-3Z", "M-3.5 3L0-3.5L3.5 3Z", "M-4 0L0-4L4 0L0 4Z",
    "M-3.5-3L0 3.5L3.5-3Z", "M-1.2-3.5H1.2V-1.2H3.5V1.2H1.2V3.5H-1.2V1.2H-3.5V-1.2H-1.2Z"];
  const W = 560, H = 340, L = 62, R = 14, T = 10, B = 42;
  const NS = "http://www.w3.org/2000/svg";

  const make = (name, attributes, parent) => {
    const node = document.createElementNS(NS, name);
    for (const key in attributes) if (attributes[key] !== "") node.setAttribute(key, attributes[key]);
    if (parent) parent.append(node);
    return node;
  };
  const label = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e4 || size < 1e-2) {
      const power = Math.floor(Math.log10(size) + 1e-9), head = +(value / 10 ** power).toPrecision(3);
      const raised = String(power).replace(/./g, (c) => ({ "-": "⁻" }[c] || "⁰¹²³⁴⁵⁶⁷⁸⁹"[+c]));
      return (head === 1 ? "" : head + "·") + "10" + raised;
    }
    return String(+value.toPrecision(4));
  };
  const spell = (value) => value.toLocaleString("en", { maximumSignificantDigits: 5 });

  function scale(low, high, from, to, log) {
    const f = log ? Math.log10 : (v) => v;
    const a = f(low), b = f(high), span = b - a || 1;
    const at = (v) => from + ((f(v) - a) / span) * (to - from);
    const ticks = [];
    if (log) {
      const step = Math.max(1, Math.ceil(span / 7));
      for (let p = Math.ceil(a - 1e-9); p <= b + 1e-9; p += step) ticks.push(10 ** p);
      if (ticks.length < 2) for (const m of [2, 5, 20, 50]) {
        const v = m * 10 ** Math.floor(a);
        if (v >= low && v <= high) ticks.push(v);
      }
    } else {
      const rough = span / 5, unit = 10 ** Math.floor(Math.log10(rough));
      const step = unit * [1, 2, 5, 10].find((m) => m * unit >= rough);
      for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) ticks.push(v);
    }
    return { at, ticks };
  }

  function limits(lines, key, log) {
    let low = Infinity, high = -Infinity;
    for (const line of lines) for (const v of line[key]) {
      if (v === null || (log && v <= 0)) continue;
      low = Math.min(low, v); high = Math.max(high, v);
    }
    if (!(low < Infinity)) return log ? [1, 10] : [0, 1];
    if (!log) return [Math.min(0, low), high * 1.04];
    return low === high ? [low / 2, high * 2] : key === "y" ? [low / 1.15, high * 1.15] : [low, high];
  }

  function path(line, x, y, log) {
    let d = "", pen = "M";
    line.x.forEach((v, i) => {
      const w = line.y[i];
      if (w === null || (log && w <= 0)) { pen = "M"; return; }
      d += `${pen}${x.at(v).toFixed(1)} ${y.at(w).toFixed(1)}`; pen = "L";
    });
    return d;
  }

  function band(line, x, y, floor) {
    if (!line.low || line.style === "points") return "";
    const points = line.x.map((v, i) => [x.at(v), line.low[i], line.high[i]]).filter((p) => p[1] !== null && p[2] !== null);
    const at = (v) => y.at(Math.max(v, floor)).toFixed(1);
    const up = points.map((p) => `${p[0].toFixed(1)} ${at(p[2])}`);
    const down = points.map((p) => `${p[0].toFixed(1)} ${at(p[1])}`).reverse();
    return up.length ? `M${up.concat(down).join("L")}Z` : "";
  }

  function axes(svg, panel, x, y) {
    for (const v of x.ticks) {
      make("line", { class: "grid", x1: x.at(v), x2: x.at(v), y1: T, y2: H - B }, svg);
      make("text", { x: x.at(v), y: H - B + 15, "text-anchor": "middle" }, svg).textContent = label(v);
    }
    for (const v of y.ticks) {
      make("line", { class: "grid", x1: L, x2: W - R, y1: y.at(v), y2: y.at(v) }, svg);
      make("text", { x: L - 6, y: y.at(v) + 4, "text-anchor": "end" }, svg).textContent = label(v);
    }
    make("path", { class: "axis", fill: "none", d: `M${L} ${T}V${H - B}H${W - R}` }, svg);
    make("text", { x: (L + W - R) / 2, y: H - 8, "text-anchor": "middle" }, svg).textContent = panel.x;
    make("text", { x: -(T + H - B) / 2, y: 12, transform: "rotate(-90)", "text-anchor": "middle" }, svg).textContent = panel.y;
  }

  // A number is one of the page's colours, which differ between light and dark; a text is a colour of its own.
  const colour = (line) => (typeof line.colour === "number" ? `var(--c${line.colour})` : line.colour);
  const dashes = (line) => (line.style === "dashed" ? "6 4" : DASHES[line.dashes]);

  function curves(svg, shown, view, x, y, floor) {
    for (const line of shown) {
      const stroke = `stroke: ${colour(line)}`, fill = `fill: ${colour(line)}`;
      if (line.style === "points") {
        line.x.forEach((v, i) => {
          if (line.y[i] === null || (view.logY && line.y[i] <= 0)) return;
          const px = x.at(v);
          if (line.low) make("path", { style: stroke, d: `M${px} ${y.at(Math.max(line.low[i], floor))}V${y.at(line.high[i])}` }, svg);
          make("circle", { cx: px, cy: y.at(line.y[i]), r: 4, style: fill }, svg);
        });
        continue;
      }
      const area = band(line, x, y, floor);
      if (area) make("path", { d: area, style: fill, opacity: 0.16, "clip-path": `url(#${view.clip})` }, svg);
      make("path", { d: path(line, x, y, view.logY), fill: "none", style: stroke, "stroke-width": 1.8, "stroke-dasharray": dashes(line) }, svg);
      if (line.marker) marks(svg, line, view, x, y, fill);
    }
  }

  function marks(svg, line, view, x, y, fill) {
    const every = Math.max(1, Math.floor(line.x.length / 8));
    line.x.forEach((v, i) => {
      if (i % every || line.y[i] === null || (view.logY && line.y[i] <= 0)) return;
      make("path", { d: MARKERS[line.marker], style: fill, transform: `translate(${x.at(v)} ${y.at(line.y[i])})` }, svg);
    });
  }

  function nearest(shown, x, px, py, y) {
    let best = null;
    for (const line of shown) line.x.forEach((v, i) => {
      if (line.y[i] === null) return;
      const far = Math.hypot(x.at(v) - px, line.style === "points" ? y.at(line.y[i]) - py : 0);
      if (!best || far < best.far - 1e-9) best = { far, line, i, v };
    });
    return best;
  }

  // What a line looks like, as a small picture for the legend and the readout.
  function swatch(line) {
    const svg = make("svg", { class: "swatch", viewBox: "0 0 26 10", "aria-hidden": "true" });
    if (line.style === "points") {
      make("circle", { cx: 13, cy: 5, r: 4, style: `fill: ${colour(line)}` }, svg);
      return svg;
    }
    make("path", { d: "M1 5H25", fill: "none", "stroke-width": 2.4, "stroke-dasharray": dashes(line), style: `stroke: ${colour(line)}` }, svg);
    if (line.marker) make("path", { d: MARKERS[line.marker], transform: "translate(13 5)", style: `fill: ${colour(line)}` }, svg);
    return svg;
  }

  function readout(out, shown, panel, hit, x) {
    out.replaceChildren();
    if (!hit) { out.textContent = panel.band ? `bands: ${panel.band}` : ""; return; }
    const bold = document.createElement("b");
    bold.textContent = `${panel.x} ${spell(hit.v)}`;
    out.append(bold);
    const lines = hit.line.style === "points" ? [hit.line] : shown.filter((line) => line.style !== "points");
    for (const line of lines) {
      const far = (i) => Math.abs(x.at(line.x[i]) - x.at(hit.v));
      let i = line === hit.line ? hit.i : 0;
      if (line !== hit.line) line.x.forEach((v, j) => { if (far(j) < far(i)) i = j; });
      if (line.y[i] === null || line.y[i] === undefined) continue;
      const item = document.createElement("span");
      item.append(swatch(line), `${line.names ? line.names[i] + ", " : ""}${line.label}: ${spell(line.y[i])}`);
      out.append(item);
    }
  }

  function chart(figure, panel, number) {
    const lines = panel.lines.map((line) => ({ ...line, on: true }));
    const view = { logX: panel.logX, logY: panel.logY, clip: `clip${number}` };
    const title = document.createElement("figcaption"), legend = document.createElement("div"), out = document.createElement("div");
    title.textContent = panel.title; legend.className = "legend"; out.className = "readout"; out.setAttribute("aria-live", "polite");
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "application", tabindex: 0 });
    svg.setAttribute("aria-label", `${panel.title}: chart. Left and right arrow keys read the values.`);
    figure.append(title, svg, out, legend);

    function redraw() {
      const shown = lines.filter((line) => line.on);
      svg.replaceChildren();
      const [x0, x1] = limits(shown, "x", view.logX), [y0, y1] = limits(shown, "y", view.logY);
      const x = scale(x0, x1, L, W - R, view.logX), y = scale(y0, y1, H - B, T, view.logY);
      const clip = make("clipPath", { id: view.clip }, make("defs", {}, svg));
      make("rect", { x: L, y: T, width: W - R - L, height: H - B - T }, clip);
      axes(svg, panel, x, y);
      curves(svg, shown, view, x, y, view.logY ? y0 : -Infinity);
      const rule = make("line", { class: "axis", y1: T, y2: H - B, visibility: "hidden" }, svg);
      const show = (hit) => {
        rule.setAttribute("visibility", hit ? "visible" : "hidden");
        if (hit) { rule.setAttribute("x1", x.at(hit.v)); rule.setAttribute("x2", x.at(hit.v)); }
        readout(out, shown, panel, hit, x);
      };
      show(null);
      svg.onpointermove = (event) => {
        const box = svg.getBoundingClientRect();
        const px = ((event.clientX - box.left) / box.width) * W, py = ((event.clientY - box.top) / box.height) * H;
        const hit = nearest(shown, x, px, py, y);
        if (hit) show(hit);
      };
      svg.onpointerleave = svg.onblur = () => show(null);
      const stops = shown.flatMap((line) => line.x.map((v, i) => ({ line, i, v })).filter((stop) => line.y[stop.i] !== null));
      stops.sort((a, b) => a.v - b.v);
      let at = -1;
      svg.onkeydown = (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (event.key === "Escape") { at = -1; show(null); return; }
        if (!stops.length || (!step && event.key !== "Home" && event.key !== "End")) return;
        event.preventDefault();
        if (event.key === "Home") at = 0;
        else if (event.key === "End") at = stops.length - 1;
        else {
          const from = at < 0 ? (step > 0 ? -1 : stops.length) : at;
          let to = Math.min(Math.max(from + step, 0), stops.length - 1);
          // Lines are read together: go on to the next x.
          while (at >= 0 && stops[to].line.style !== "points" && stops[to].v === stops[at].v && to + step >= 0 && to + step < stops.length) to += step;
          at = to;
        }
        show(stops[at]);
      };
    }

    const button = (parent, text, pressed, press) => {
      const made = document.createElement("button");
      made.type = "button";
      made.setAttribute("aria-pressed", String(pressed));
      made.append(text);
      made.onclick = () => { made.setAttribute("aria-pressed", String(press())); redraw(); };
      parent.append(made);
      return made;
    };
    for (const line of lines) button(legend, line.label, true, () => (line.on = !line.on)).prepend(swatch(line));
    if (panel.logX || panel.logY) {
      const tools = document.createElement("div");
      tools.className = "tools";
      button(tools, "linear axes", false, () => {
        const linear = view.logX === panel.logX && view.logY === panel.logY;
        view.logX = panel.logX && !linear; view.logY = panel.logY && !linear;
        return linear;
      });
      title.after(tools);
    }
    redraw();
  }

  document.querySelectorAll("[data-panel]").forEach((figure) => chart(figure, panels[+figure.dataset.panel], figure.dataset.panel));
})();
