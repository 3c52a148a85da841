"use strict";

(() => {
  const shown = 1600; // milliseconds

  // Pages opened from a disk may lack the clipboard of secure pages; what is selected can be copied anywhere.
  async function copied(code) {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      window.getSelection().selectAllChildren(code);
      return exactly(code.textContent);
    }
  }

  // A selection alone would lose the last line break.
  function exactly(text) {
    const fill = (event) => {
      event.clipboardData.setData("text/plain", text);
      event.preventDefault();
    };
    document.addEventListener("copy", fill);
    try {
      return document.execCommand("copy");
    } finally {
      document.removeEventListener("copy", fill);
    }
  }

  for (const button of document.querySelectorAll("button[data-copy]")) {
    const name = button.textContent;
    let timer;
    button.addEventListener("click", async () => {
      const done = await copied(button.closest(".code").querySelector("code"));
      button.textContent = done ? "Copied" : "Selected: press Ctrl+C";
      clearTimeout(timer);
      timer = setTimeout(() => (button.textContent = name), shown);
    });
  }
})();
