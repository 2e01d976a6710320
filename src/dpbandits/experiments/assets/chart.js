"use strict";
// Line charts with a legend that toggles and a readout that follows the pointer. No library, no network.
(() => {
  const { colours, panels } = JSON.parse(document.getElementById("data").textContent);
  const W = 560, H = 340, L = 62, R = 14, T = 10, B = 42;
  const NS = "http://www.w3.org/2000/svg";

  const make = (name, attributes, parent) => {
    const node = document.createElementNS(NS, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
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

  function curves(svg, shown, panel, x, y, floor) {
    for (const line of shown) {
      if (line.style === "points") {
        line.x.forEach((v, i) => {
          const px = x.at(v);
          if (line.low) make("path", { stroke: line.colour, d: `M${px} ${y.at(Math.max(line.low[i], floor))}V${y.at(line.high[i])}` }, svg);
          make("circle", { cx: px, cy: y.at(line.y[i]), r: 4, fill: line.colour }, svg);
        });
        continue;
      }
      const area = band(line, x, y, floor);
      if (area) make("path", { d: area, fill: line.colour, opacity: 0.16, "clip-path": `url(#${panel.clip})` }, svg);
      make("path", {
        d: path(line, x, y, panel.logY), fill: "none", stroke: line.colour, "stroke-width": 1.8,
        "stroke-dasharray": line.style === "dashed" ? "6 4" : "none",
      }, svg);
    }
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

  function readout(out, shown, panel, hit) {
    out.replaceChildren();
    if (!hit) { out.textContent = panel.band ? `bands: ${panel.band}` : ""; return; }
    const bold = document.createElement("b");
    bold.textContent = `${panel.x} ${spell(hit.v)}`;
    out.append(bold);
    const lines = hit.line.style === "points" ? [hit.line] : shown.filter((line) => line.style !== "points");
    for (const line of lines) {
      let i = hit.i;
      if (line !== hit.line) line.x.forEach((v, j) => { if (Math.abs(Math.log(v / hit.v)) < Math.abs(Math.log(line.x[i] / hit.v)) || line.x[i] === undefined) i = j; });
      if (line.y[i] === null || line.y[i] === undefined) continue;
      const item = document.createElement("span");
      item.style.color = line.colour;
      item.textContent = ` · ${line.names ? line.names[i] + ", " : ""}${line.label}: ${spell(line.y[i])}`;
      out.append(item);
    }
  }

  function chart(figure, panel, number) {
    const lines = panel.lines.map((line, i) => ({ ...line, colour: colours[i % colours.length], on: true }));
    panel.clip = `clip${number}`;
    const title = document.createElement("figcaption"), legend = document.createElement("div"), out = document.createElement("div");
    title.textContent = panel.title; legend.className = "legend"; out.className = "readout";
    const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
    svg.setAttribute("aria-label", panel.title);
    figure.append(title, svg, out, legend);

    function redraw() {
      const shown = lines.filter((line) => line.on);
      svg.replaceChildren();
      const [x0, x1] = limits(shown, "x", panel.logX), [y0, y1] = limits(shown, "y", panel.logY);
      const x = scale(x0, x1, L, W - R, panel.logX), y = scale(y0, y1, H - B, T, panel.logY);
      const clip = make("clipPath", { id: panel.clip }, make("defs", {}, svg));
      make("rect", { x: L, y: T, width: W - R - L, height: H - B - T }, clip);
      axes(svg, panel, x, y);
      curves(svg, shown, panel, x, y, panel.logY ? y0 : -Infinity);
      const rule = make("line", { class: "axis", y1: T, y2: H - B, visibility: "hidden" }, svg);
      readout(out, shown, panel, null);
      svg.onpointermove = (event) => {
        const box = svg.getBoundingClientRect();
        const px = ((event.clientX - box.left) / box.width) * W, py = ((event.clientY - box.top) / box.height) * H;
        const hit = nearest(shown, x, px, py, y);
        if (!hit) return;
        rule.setAttribute("x1", x.at(hit.v)); rule.setAttribute("x2", x.at(hit.v));
        rule.setAttribute("visibility", "visible");
        readout(out, shown, panel, hit);
      };
      svg.onpointerleave = () => { rule.setAttribute("visibility", "hidden"); readout(out, shown, panel, null); };
    }

    for (const line of lines) {
      const button = document.createElement("button"), mark = document.createElement("i");
      mark.className = line.style;
      mark.style[line.style === "points" ? "background" : "borderColor"] = line.colour;
      button.setAttribute("aria-pressed", "true");
      button.append(mark, line.label);
      button.onclick = () => { line.on = !line.on; button.setAttribute("aria-pressed", String(line.on)); redraw(); };
      legend.append(button);
    }
    redraw();
  }

  document.querySelectorAll("[data-panel]").forEach((figure) => chart(figure, panels[+figure.dataset.panel], figure.dataset.panel));
})();
