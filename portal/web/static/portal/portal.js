// Comforts on top of pages that work without them: copying texts, and saying so when a preview can't be had.
"use strict";
(() => {
  const addCopyButtons = (root) => {
    for (const box of root.querySelectorAll("[data-copy]")) {
      if (box.dataset.ready || !navigator.clipboard) continue;
      box.dataset.ready = "yes";
      const text = box.textContent;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      box.prepend(button);
    }
  };
  const noPreview = () => {
    const told = document.getElementById("preview-status");
    if (told) told.textContent = "The preview is not available now. You can still send the form.";
  };
  addCopyButtons(document);
  document.addEventListener("htmx:load", (event) => addCopyButtons(event.detail.elt));
  document.addEventListener("htmx:responseError", noPreview);
  document.addEventListener("htmx:sendError", noPreview);
})();
