"use strict";

(() => {
  const stored = JSON.parse(document.getElementById("numbers").textContent);
  const arrays = stored.arrays.map((text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  });
  const config = {
    responsive: true,
    displaylogo: false,
    plotlyServerURL: "",
    modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
  };
  const cursor = { color: "#1d2025", width: 1.5, dash: "5px,3px" };
  // Where fingers scroll, a drag must not zoom.
  const touch = window.matchMedia("(pointer: coarse)").matches;

  function smallestPositive(traces) {
    let smallest = Infinity;
    for (const trace of traces) {
      for (const place of [trace.y, trace.low, trace.high]) {
        if (place === undefined) continue;
        for (const value of arrays[place]) if (value > 0 && value < smallest) smallest = value;
      }
    }
    return smallest;
  }

  // The outline of a band, one loop for each stretch without gaps; what lies below the floor is cut off there.
  function outline(trace, floor) {
    const [x, low, high] = [arrays[trace.x], arrays[trace.low], arrays[trace.high]];
    const drawable = (i) => i < x.length && Number.isFinite(x[i] + low[i] + high[i]) && high[i] > floor;
    const outer = { x: [], y: [] };
    const add = (across, up) => {
      outer.x.push(across);
      outer.y.push(up);
    };
    let start = 0;
    for (let end = 0; end <= x.length; end += 1) {
      if (drawable(end)) continue;
      for (let i = start; i < end; i += 1) add(x[i], high[i]);
      for (let i = end - 1; i >= start; i -= 1) add(x[i], Math.max(low[i], floor));
      if (end > start) add(null, null);
      start = end + 1;
    }
    return outer;
  }

  // Points have an interval each; curves have a band.
  function apart(trace) {
    return trace.mode === "markers";
  }

  function band(trace, floor) {
    return {
      ...outline(trace, floor),
      type: "scatter",
      mode: "lines",
      line: { width: 0 },
      fill: "toself",
      fillcolor: trace.line.color + "2e",
      hoverinfo: "skip",
      xaxis: trace.xaxis,
      yaxis: trace.yaxis,
      meta: trace.key,
    };
  }

  function line(trace) {
    const { key, x, y, low, high, ...look } = trace;
    const drawn = { ...look, meta: key, x: arrays[x], y: arrays[y] };
    if (low === undefined) return drawn;
    drawn.customdata = Array.from(arrays[low], (value, i) => [value, arrays[high][i]]);
    if (apart(trace)) {
      const above = Array.from(arrays[high], (value, i) => value - arrays[y][i]);
      const below = Array.from(arrays[low], (value, i) => arrays[y][i] - value);
      drawn.error_y = { type: "data", symmetric: false, array: above, arrayminus: below, thickness: 1.5, width: 4 };
    }
    return drawn;
  }

  function isLog(axis) {
    return axis.type === "log";
  }

  class Figure {
    constructor(element, panels) {
      this.element = element;
      this.plots = [...element.querySelectorAll(".plot")].map((div, i) => ({ div, ...panels[i], waiting: {} }));
      this.hidden = new Set();
      for (const button of element.querySelectorAll("button[data-key]")) {
        button.addEventListener("click", () => this.toggle(button));
      }
      for (const button of element.querySelectorAll("button[data-axis]")) {
        button.addEventListener("click", () => this.rescale(button));
      }
      element.addEventListener("mark", (event) => this.mark(event.detail));
    }

    async draw(plot) {
      plot.banded = plot.traces.filter((trace) => trace.low !== undefined && !apart(trace));
      const floor = plot.layout.yaxis.type === "log" ? smallestPositive(plot.traces) : -Infinity;
      const traces = [...plot.banded.map((trace) => band(trace, floor)), ...plot.traces.map(line)];
      for (const trace of traces) trace.visible = this.shows(plot, trace);
      if (touch) plot.layout.dragmode = false;
      await Plotly.newPlot(plot.div, traces, plot.layout, { ...config, ...plot.config });
      plot.drawn = true;
      for (const [axis, scale] of Object.entries(plot.waiting)) this.setScale(plot, axis, scale);
      if (plot.scales) plot.div.on("plotly_click", ({ points }) => this.pick(plot, points[0].x));
      this.cross(plot);
    }

    // A slider says where it stands: a line at that x in every panel, or none.
    mark(x) {
      this.x = x;
      for (const plot of this.drawn()) this.cross(plot);
    }

    cross(plot) {
      if (this.x === undefined || !plot.scales) return;
      const drawable = this.x !== null && (this.x > 0 || !isLog(plot.div.layout.xaxis));
      const place = { xref: "x", x0: this.x, x1: this.x, yref: "paper", y0: 0, y1: 1 };
      Plotly.relayout(plot.div, { shapes: drawable ? [{ type: "line", ...place, line: cursor, layer: "between" }] : [] });
    }

    // What was clicked, for whoever listens.
    pick(plot, x) {
      const detail = { x, log: isLog(plot.div.layout.xaxis) };
      this.element.dispatchEvent(new CustomEvent("pick", { detail }));
    }

    toggle(button) {
      const key = Number(button.dataset.key);
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      if (shown) this.hidden.delete(key);
      else this.hidden.add(key);
      for (const plot of this.drawn()) this.show(plot, (trace) => trace.meta === key);
    }

    drawn() {
      return this.plots.filter((plot) => plot.drawn);
    }

    shows(plot, trace) {
      return !this.hidden.has(trace.meta) && !(plot.cornerless && trace.xaxis === "x2");
    }

    show(plot, concerns) {
      const places = plot.div.data.flatMap((trace, i) => (concerns(trace) ? [i] : []));
      const visible = places.map((place) => this.shows(plot, plot.div.data[place]));
      if (places.length) Plotly.restyle(plot.div, { visible }, places);
    }

    rescale(button) {
      const axis = button.dataset.axis;
      const scale = button.getAttribute("aria-pressed") === "true" ? "linear" : "log";
      button.setAttribute("aria-pressed", String(scale === "log"));
      for (const plot of this.plots.filter((each) => each.scales)) {
        if (plot.drawn) this.setScale(plot, axis, scale);
        else plot.waiting[axis] = scale;
      }
    }

    setScale(plot, axis, scale) {
      const changes = plot.scales[axis][scale];
      // Without the line, which must not stretch the axes.
      Plotly.relayout(plot.div, { ...changes, shapes: [] });
      this.cross(plot);
      if ("xaxis2.visible" in changes) {
        plot.cornerless = !changes["xaxis2.visible"];
        this.show(plot, (trace) => trace.xaxis === "x2");
      }
      if (axis === "x" || !plot.banded.length) return;
      const floor = scale === "log" ? smallestPositive(plot.traces) : -Infinity;
      const outlines = plot.banded.map((trace) => outline(trace, floor));
      const points = { x: outlines.map((each) => each.x), y: outlines.map((each) => each.y) };
      Plotly.restyle(plot.div, points, [...outlines.keys()]);
    }

    fit() {
      for (const { div } of this.drawn()) Plotly.relayout(div, { width: div.clientWidth, height: div.clientHeight });
    }

    release() {
      for (const { div } of this.drawn()) Plotly.relayout(div, { width: null, height: null, autosize: true });
    }
  }

  const elements = [...document.querySelectorAll("figure[data-figure]")];
  const figures = elements.map((element, i) => new Figure(element, stored.figures[i]));

  async function drawAll() {
    for (const figure of figures) {
      for (const plot of figure.plots) await figure.draw(plot);
      await new Promise((resume) => setTimeout(resume));
    }
    document.documentElement.dataset.ready = "true";
  }

  window.addEventListener("beforeprint", () => {
    document.documentElement.classList.add("printing");
    for (const figure of figures) figure.fit();
  });
  window.addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    for (const figure of figures) figure.release();
  });
  drawAll();
})();
