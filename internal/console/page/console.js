"use strict";
// The page sends its buttons as forms and shows what the server sends. It knows nothing else.

const message = document.getElementById("message");
const link = document.getElementById("link");

function say(text, failed) {
  message.textContent = text;
  message.className = failed ? "bad" : "good";
}

// What the reader has opened, or is waiting for: the server does not know it.
const ofTheReader = ["open", "aria-busy"];

// morph makes a part of the page like another. What is alike stays the same element, so what the
// reader has opened, scrolled, focused or selected stays as it is.
function morph(part, like) {
  if (part.isEqualNode(like)) return;
  if (part.nodeType !== Node.ELEMENT_NODE) {
    part.nodeValue = like.nodeValue;
    return;
  }
  for (const name of new Set([...part.getAttributeNames(), ...like.getAttributeNames()])) {
    if (ofTheReader.includes(name) || part.getAttribute(name) === like.getAttribute(name)) continue;
    if (like.hasAttribute(name)) part.setAttribute(name, like.getAttribute(name));
    else part.removeAttribute(name);
  }
  let at = part.firstChild;
  for (const child of [...like.childNodes]) {
    const isTwin = child.id ? (e) => e.id === child.id : (e) => e === at && !e.id && e.nodeName === child.nodeName;
    const twin = [...part.childNodes].find(isTwin);
    if (!twin) {
      part.insertBefore(child, at);
      continue;
    }
    if (twin === at) at = at.nextSibling;
    else part.insertBefore(twin, at);
    morph(twin, child);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

const events = new EventSource("/events");
events.onopen = () => {
  link.textContent = "live";
  link.className = "pill good";
};
events.onerror = () => { link.textContent = "connecting"; link.className = "pill wait"; };
events.onmessage = (e) => morph(document.getElementById("main"), document.createRange().createContextualFragment(JSON.parse(e.data)).firstElementChild);
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
