// Light, dark or as the system has it; kept in this browser under the key that the admin's own switch uses.
// Runs in the head, before anything is painted.
(function () {
  "use strict";
  const KEY = "theme";

  function read() {
    try {
      return localStorage.getItem(KEY) || "auto";
    } catch {
      return "auto"; // storage may be forbidden; then the system decides
    }
  }

  function write(theme) {
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // the choice then holds for this page only
    }
  }

  function apply(theme) {
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  }

  apply(read());
  window.addEventListener("storage", (event) => {
    if (event.key === KEY) apply(read());
  });
  document.addEventListener("DOMContentLoaded", () => {
    const select = document.querySelector("[data-theme-switch]");
    if (!select) return;
    select.value = read();
    select.closest("[hidden]").hidden = false;
    select.addEventListener("change", () => {
      write(select.value);
      apply(select.value);
    });
  });
})();
