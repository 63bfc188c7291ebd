// Keeps a budget's amount and its kind together: who writes an amount means it, who chooses another kind does not.
(function () {
  "use strict";

  document.addEventListener("input", (event) => {
    const parts = /^(\w+)_(amount|kind)$/.exec(event.target.name || "");
    if (!parts) return;
    const inputs = event.target.form.elements;
    const amount = inputs[`${parts[1]}_amount`];
    if (parts[2] === "kind") {
      if (event.target.value !== "amount") amount.value = amount.defaultValue;
    } else if (amount.value.trim()) inputs[`${parts[1]}_kind`].value = "amount";
  });
})();
