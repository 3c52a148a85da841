"use strict";

(() => {
  const contents = JSON.parse(document.getElementById("figures").textContent);
  const buttons = ["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"];
  const config = { responsive: true, displaylogo: false, plotlyServerURL: "", modeBarButtons: [buttons] };
  const cursor = { type: "line", yref: "paper", y0: 0, y1: 1, line: { color: "#1d2025", width: 1.5, dash: "5px,3px" } };
  const isPressed = (button) => button.getAttribute("aria-pressed") === "true";

  // plotly's script is compressed, so that the page stays small enough to be sent.
  async function loadPlotly() {
    const bytes = Uint8Array.from(atob(document.getElementById("plotly").textContent), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(unpacked).text();
    document.head.append(script);
  }

  class Figure {
    constructor(div) {
      this.div = div;
      for (const button of div.closest("figure").querySelectorAll("button")) {
        button.addEventListener("click", () => (button.dataset.axis ? this.rescale(button) : this.toggle(button)));
      }
    }

    async draw() {
      const { data, layout } = contents[this.div.dataset.figure];
      // The page has titles and legends of its own, which wrap and which the keyboard reaches.
      Object.assign(layout, { title: undefined, showlegend: false, autosize: true });
      for (const axis of [layout.xaxis, layout.yaxis]) axis.title = undefined;
      layout.margin = { l: 40, r: 12, t: 24, b: 36 };
      // Where fingers scroll, a drag must not zoom.
      if (window.matchMedia("(pointer: coarse)").matches) layout.dragmode = false;
      await Plotly.newPlot(this.div, data, layout, config);
      this.drawn = true;
      this.div.on("plotly_click", ({ points }) => this.onpick?.(points[0].x));
      this.mark(this.x);
    }

    isLog() {
      return this.div.layout.xaxis.type === "log";
    }

    // A line at the slider's level, where the axis has a place for it.
    mark(x) {
      this.x = x;
      if (!this.drawn || x === undefined) return;
      const drawable = x > 0 || !this.isLog();
      Plotly.relayout(this.div, { shapes: drawable ? [{ ...cursor, x0: x, x1: x }] : [] });
    }

    toggle(button) {
      const visible = !isPressed(button);
      button.setAttribute("aria-pressed", String(visible));
      const traces = this.div.data.flatMap(({ name }, i) => (name === button.textContent ? [i] : []));
      Plotly.restyle(this.div, { visible }, traces);
    }

    rescale(button) {
      const type = isPressed(button) ? "linear" : "log";
      button.setAttribute("aria-pressed", String(type === "log"));
      const axis = `${button.dataset.axis}axis`;
      // Without the line, which must not stretch the axes.
      Plotly.relayout(this.div, { [`${axis}.type`]: type, [`${axis}.autorange`]: true, shapes: [] });
      this.mark(this.x);
    }

    fit(isPrinting) {
      const { clientWidth, clientHeight } = this.div;
      const size = isPrinting ? { width: clientWidth, height: clientHeight } : { width: null, height: null };
      if (this.drawn) Plotly.relayout(this.div, { ...size, autosize: !isPrinting });
    }
  }

  class Slider {
    constructor(element, figures) {
      this.figures = figures;
      this.range = element.querySelector("input[type=range]");
      this.output = element.querySelector("output");
      this.steps = [...element.querySelectorAll("button[data-step]")];
      this.frames = [...element.querySelectorAll(".frame")];
      this.shown = Number(this.range.defaultValue);
      this.range.addEventListener("input", () => this.show(Number(this.range.value)));
      for (const button of this.steps) {
        button.addEventListener("click", () => this.show(this.shown + Number(button.dataset.step)));
      }
      for (const figure of figures) figure.onpick = (x) => this.pick(x, figure.isLog());
      this.show(Number(this.range.value));
    }

    show(place) {
      if (this.frames[place] === undefined) return;
      this.range.value = place;
      this.frames[this.shown].classList.remove("current");
      this.frames[place].classList.add("current");
      this.shown = place;
      const { label } = this.frames[place].dataset;
      this.range.setAttribute("aria-valuetext", label);
      this.output.value = label;
      for (const button of this.steps) {
        const beyond = this.frames[place + Number(button.dataset.step)] === undefined;
        button.setAttribute("aria-disabled", String(beyond)); // not disabled: that would take the focus away
      }
      // However fast it moves, lines are drawn once for each picture on the screen.
      this.waiting ??= requestAnimationFrame(() => {
        this.waiting = undefined;
        for (const figure of this.figures) figure.mark(Number(this.frames[this.shown].dataset.x));
      });
    }

    // The frame nearest to a point of the figure, as the eye sees it on that axis.
    pick(x, log) {
      const seen = (value) => (log ? Math.log(value) : value);
      const distances = this.frames.map((frame) => Math.abs(seen(Number(frame.dataset.x)) - seen(x)));
      this.show(distances.indexOf(Math.min(...distances)));
    }
  }

  // Pages opened from a disk may lack the clipboard of secure pages; what is selected can be copied anywhere.
  async function copy(code) {
    const fill = (event) => {
      event.clipboardData.setData("text/plain", code.textContent); // a selection would lose the last line break
      event.preventDefault();
    };
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      window.getSelection().selectAllChildren(code);
      document.addEventListener("copy", fill);
      return document.execCommand("copy");
    } finally {
      document.removeEventListener("copy", fill);
    }
  }

  for (const button of document.querySelectorAll("button[data-copy]")) {
    let timer;
    button.addEventListener("click", async () => {
      const done = await copy(button.closest(".code").querySelector("code"));
      button.textContent = done ? "Copied" : "Selected: press Ctrl+C";
      clearTimeout(timer);
      timer = setTimeout(() => (button.textContent = "Copy"), 1600);
    });
  }

  const figures = [...document.querySelectorAll(".plot")].map((div) => new Figure(div));
  for (const element of document.querySelectorAll(".explorer")) {
    new Slider(element, figures.filter((figure) => element.contains(figure.div)));
  }

  async function drawAll() {
    if (figures.length) await loadPlotly();
    for (const figure of figures) {
      await figure.draw();
      await new Promise((resume) => setTimeout(resume));
    }
    document.documentElement.dataset.ready = "true";
  }

  for (const event of ["beforeprint", "afterprint"]) {
    window.addEventListener(event, () => {
      document.documentElement.classList.toggle("printing", event === "beforeprint");
      for (const figure of figures) figure.fit(event === "beforeprint");
    });
  }
  drawAll();
})();
