// Pages opened from disk may not start workers. There, a hidden frame runs the script of the search instead.
if (location.protocol === "file:") {
  window.Worker = class FrameWorker {
    constructor(address) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      // What the script says to itself is meant for the page.
      inside.postMessage = (data) => this.later(() => this.onmessage?.({ data: structuredClone(data) }));
      inside.addEventListener("error", (problem) => this.onerror?.(problem));
      const script = inside.document.createElement("script");
      script.src = new URL(address, location.href).href;
      script.onload = () => this.deliver();
      script.onerror = (problem) => this.onerror?.(problem);
      inside.document.head.append(script);
    }

    postMessage(data) {
      this.waiting?.push(data) ?? this.hand(data);
    }

    deliver() {
      const waiting = this.waiting;
      this.waiting = null;
      waiting.forEach((data) => this.hand(data));
    }

    hand(data) {
      const inside = this.frame.contentWindow;
      const message = new inside.MessageEvent("message", { data: inside.structuredClone(data) });
      this.later(() => inside.dispatchEvent(message));
    }

    later(action) {
      setTimeout(() => this.frame.isConnected && action());
    }

    terminate() {
      this.frame.remove();
    }
  };
}
