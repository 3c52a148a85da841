"use strict";

(() => {
  class Slider {
    constructor(element) {
      this.range = element.querySelector("input[type=range]");
      this.output = element.querySelector("output");
      this.steps = [...element.querySelectorAll("button[data-step]")];
      this.figure = element.querySelector("figure[data-figure]");
      this.frames = [...element.querySelectorAll(".frame")].map((frame) => ({
        element: frame,
        label: frame.dataset.label,
        x: frame.dataset.x === undefined ? null : Number(frame.dataset.x),
      }));
      this.shown = this.frames.findIndex((frame) => frame.element.classList.contains("current"));
      this.range.addEventListener("input", () => this.show());
      for (const button of this.steps) {
        button.addEventListener("click", () => this.go(this.shown + Number(button.dataset.step)));
      }
      this.figure?.addEventListener("pick", (event) => this.pick(event.detail));
      this.show();
    }

    go(place) {
      this.range.value = place;
      this.show();
    }

    show() {
      const place = Number(this.range.value);
      const frame = this.frames[place];
      this.frames[this.shown].element.classList.remove("current");
      frame.element.classList.add("current");
      this.shown = place;
      this.range.setAttribute("aria-valuetext", frame.label);
      this.output.value = frame.label;
      for (const button of this.steps) {
        const beyond = this.frames[place + Number(button.dataset.step)] === undefined;
        button.setAttribute("aria-disabled", String(beyond)); // not disabled: that would take the focus away
      }
      // However fast it moves, lines are drawn once for each picture on the screen.
      this.waiting ??= requestAnimationFrame(() => this.mark());
    }

    mark() {
      this.waiting = undefined;
      this.figure?.dispatchEvent(new CustomEvent("mark", { detail: this.frames[this.shown].x }));
    }

    // The frame nearest to a point of the figure, as the eye sees it on that axis.
    pick({ x, log }) {
      const seen = (value) => (log ? Math.log(value) : value);
      const drawn = (frame) => frame.x !== null && (frame.x > 0 || !log);
      const distances = this.frames.map((frame) => (drawn(frame) ? Math.abs(seen(frame.x) - seen(x)) : Infinity));
      const least = Math.min(...distances);
      if (Number.isFinite(least)) this.go(distances.indexOf(least));
    }
  }

  for (const element of document.querySelectorAll("[data-slider]")) new Slider(element);
})();
