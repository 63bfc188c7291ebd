// The forms of a connection's page stand in the live part. One that somebody writes in is never replaced: the page says
// that the connection changed, and the server holds what is sent against that.
(function () {
  "use strict";

  const byId = (id) => document.getElementById(id);
  let open = [];
  let focused = "";

  function isChanged(field) {
    if (field.type === "hidden" || field.type === "submit") return false;
    if (field.type === "radio" || field.type === "checkbox") return field.checked !== field.defaultChecked;
    if (field.tagName !== "SELECT") return field.value !== field.defaultValue;
    const options = Array.from(field.options);
    const initial = options.findIndex((option) => option.defaultSelected);
    return field.selectedIndex !== Math.max(initial, 0);
  }

  function isTouched(acts) {
    const inside = acts.contains(document.activeElement) ? document.activeElement : null;
    if (inside && inside.matches("input, textarea, select, button")) return true;
    return Array.from(acts.querySelectorAll("input, textarea, select")).some(isChanged);
  }

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const acts = event.detail.target;
    if (acts.id !== "r-acts") return;
    if (isTouched(acts)) {
      event.detail.shouldSwap = false;
      acts.querySelector("[data-acts-old]").hidden = false;
      return;
    }
    open = Array.from(acts.querySelectorAll("details[open]"), (one) => one.id);
    focused = acts.contains(document.activeElement) ? document.activeElement.id : "";
  });

  document.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target.id !== "r-acts") return;
    for (const id of open) if (byId(id)) byId(id).open = true;
    if (focused && byId(focused)) byId(focused).focus();
  });

  // A link to a form opens it here, without asking the server again.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href*='act=']");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const asked = new URLSearchParams(link.search);
    const details = byId(`d-${asked.get("act")}`);
    if (!details) return;
    const windows = details.querySelector("select[name='window']");
    const name = asked.get("window");
    if (name && windows && Array.from(windows.options).some((option) => option.value === name)) windows.value = name;
    event.preventDefault();
    details.open = true;
    details.querySelector("select, textarea, input:not([type='hidden'])").focus();
  });

  document.addEventListener("DOMContentLoaded", () => {
    const wrong = document.querySelector("#r-acts .errorlist, #r-acts .banner-bad");
    if (wrong) wrong.scrollIntoView({ block: "center" });
  });
})();
