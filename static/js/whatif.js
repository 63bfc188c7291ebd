// Says so where a preview fails, and takes it back with the next one that does not. What would move is decided by the
// server alone.
(function () {
  "use strict";

  const asks = (event) => event.detail.elt && event.detail.elt.matches("[data-whatif]");

  function show(which) {
    const banner = document.getElementById("whatif-failed");
    if (!banner) return;
    banner.hidden = !which;
    for (const part of banner.querySelectorAll("[data-when]")) part.hidden = part.dataset.when !== which;
  }

  // Where the preview comes by itself, the button that asks for it is in the way.
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("show-whatif");
    if (window.htmx && button) button.parentElement.hidden = true;
  });

  // A request that a newer one has replaced is aborted, which is no failure.
  for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
    document.addEventListener(name, (event) => {
      if (!asks(event)) return;
      const status = event.detail.xhr ? event.detail.xhr.status : 0;
      show(status === 401 || status === 403 ? "signed-out" : "failed");
    });
  }

  document.addEventListener("htmx:afterOnLoad", (event) => {
    if (asks(event) && event.detail.successful) show("");
  });
})();
