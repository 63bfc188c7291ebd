/* The button that copies a key just made. Without this script the field is there to be selected by hand. */
(() => {
  "use strict";
  for (const button of document.querySelectorAll("[data-copies]")) {
    const field = document.getElementById(button.dataset.copies);
    const told = document.getElementById("copied");
    button.hidden = false;
    button.addEventListener("click", async () => {
      field.focus();
      field.select();
      try {
        await navigator.clipboard.writeText(field.value);
        told.textContent = "Copied.";
      } catch {
        // No clipboard where the page came without TLS, or where the browser forbids it.
        told.textContent = document.execCommand("copy") ? "Copied." : "Not copied: the text is selected, copy it by hand.";
      }
    });
  }
})();
