// Helps with forms. All of them work without it.

// A form is sent once, however often its button is pressed.
addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  if (form.method === "post") {
    form.dataset.sent = "yes";
    event.submitter?.setAttribute("aria-busy", "true");
  }
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    form.querySelector("[aria-busy]")?.removeAttribute("aria-busy");
  }
});

// A button with data-copy copies the text of the element with that id.
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) { // as on plain http
    continue;
  }
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

// A menu closes on Escape and on a click elsewhere.
addEventListener("keydown", (event) => {
  const open = document.querySelector("details.menu[open]");
  if (event.key === "Escape" && open) {
    open.open = false;
    open.querySelector("summary").focus();
  }
});
addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) {
      menu.open = false;
    }
  }
});
