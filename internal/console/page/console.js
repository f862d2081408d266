"use strict";
// The page sends its buttons as forms and shows what the server sends. It knows nothing else.

const message = document.getElementById("message");
const link = document.getElementById("link");

function say(text, failed) {
  message.textContent = text;
  message.className = failed ? "bad" : "good";
}

const focusable = "button, summary, [tabindex]";

// patch replaces a section, removes it, or puts a new one at the top of its list. What the reader has
// opened, scrolled or focused stays as it is.
function patch({ id, html, into }) {
  const old = document.getElementById(id);
  const made = document.createRange().createContextualFragment(html).firstElementChild;
  if (!made) {
    old?.remove();
    return;
  }
  if (!old) {
    document.getElementById(into)?.prepend(made);
    return;
  }
  const opened = old.querySelector("details");
  if (opened) made.querySelector("details").open = opened.open;
  const scrolled = old.querySelector(".scroll")?.scrollLeft;
  const focused = [...old.querySelectorAll(focusable)].indexOf(document.activeElement);
  old.replaceWith(made);
  if (scrolled) made.querySelector(".scroll").scrollLeft = scrolled;
  if (focused >= 0) made.querySelectorAll(focusable)[focused]?.focus({ preventScroll: true });
}

const events = new EventSource("/events");
events.onopen = () => {
  document.querySelectorAll(".attempts").forEach((list) => list.replaceChildren()); // of a server that was restarted
  link.textContent = "live";
  link.className = "pill good";
};
events.onerror = () => { link.textContent = "connecting"; link.className = "pill wait"; };
events.onmessage = (e) => patch(JSON.parse(e.data));
addEventListener("pagehide", () => events.close());

document.addEventListener("submit", async (e) => {
  e.preventDefault();
  const button = e.submitter;
  if (button.getAttribute("aria-busy")) return;
  button.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(e.target.action, { method: "POST", body: new URLSearchParams(new FormData(e.target, button)) });
    say((await answer.text()).trim(), !answer.ok);
    if (answer.ok && button.name === "demo") document.getElementById("story").scrollIntoView({ block: "start" });
  } catch {
    say("The console does not answer.", true);
  }
  button.removeAttribute("aria-busy");
});

document.addEventListener("click", async (e) => {
  const button = e.target.closest("[data-copy]");
  if (!button) return;
  const command = button.dataset.copy;
  try {
    await navigator.clipboard.writeText(command);
    say("Copied: " + command);
  } catch {
    say("Copy it by hand: " + command, true);
  }
});
