// Keeps the page as the bridge is. Without this script the page says so, and "Refresh" does the same by hand.
"use strict";

const live = document.getElementById("live");
const pause = document.getElementById("pause");
const news = document.getElementById("news");
const events = document.getElementById("events");

// A screen reader hears of what came at most this often, in one sentence.
const SPEAK_EVERY = 15000;

let seen = live.dataset.seen;
let stream = null;
let came = { all: 0, warn: 0, last: "" };

// The server's own rendering; the page's policy lets nothing in it run.
function parse(markup) {
  const box = document.createElement("template");
  box.innerHTML = markup;
  return [...box.content.children];
}

// Makes `old` what `now` is, and leaves alone what is the same already: the focus, a selection and the place where a
// table was scrolled to stay.
function become(old, now) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName || old.id !== now.id) {
    old.replaceWith(now);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return;
  }
  for (const { name } of [...old.attributes]) if (!now.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const stays = new Set([...now.children].map((child) => child.id).filter(Boolean));
  const known = new Map();
  for (const child of [...old.children]) {
    if (!child.id) continue;
    if (stays.has(child.id)) known.set(child.id, child);
    else child.remove();
  }
  let at = old.firstChild;
  for (const child of [...now.childNodes]) {
    const same = known.get(child.id);
    if (same && same !== at) old.insertBefore(same, at);
    if (same) {
      at = same.nextSibling;
      become(same, child);
    } else if (!at || at.id) {
      old.insertBefore(child, at);
    } else {
      const next = at.nextSibling;
      become(at, child);
      at = next;
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function show(row) {
  if (document.getElementById(row.id)) return;
  row.classList.add("fresh");
  events.prepend(row);
  while (events.children.length > Number(events.dataset.most)) events.lastElementChild.remove();
  document.getElementById("events-empty").hidden = true;
  came.all += 1;
  if (row.classList.contains("warn")) {
    came.warn += 1;
    came.last = row.querySelector(".kind").textContent;
  }
}

function speak() {
  if (came.all === 0) return;
  const warnings = came.warn ? `, ${came.warn} of them warnings, the latest ${came.last}` : "";
  news.textContent = came.all === 1 ? `1 new event${warnings && `, a warning: ${came.last}`}` : `${came.all} new events${warnings}`;
  came = { all: 0, warn: 0, last: "" };
}

function open() {
  if (stream || document.hidden || pause.getAttribute("aria-pressed") === "true") return;
  const address = new URL(live.dataset.events, location.href);
  address.searchParams.set("after", seen);
  stream = new EventSource(address);
  stream.onopen = () => say("Live");
  stream.onerror = () => {
    // An answer that is no stream ends it for good: the session is over, or too many pages look.
    if (stream.readyState === EventSource.CLOSED) close("Not live: refresh to go on");
    else say("Reconnecting…");
  };
  stream.addEventListener("panels", ({ data }) => {
    for (const part of parse(data)) become(document.getElementById(part.id), part);
  });
  stream.addEventListener("row", ({ data, lastEventId }) => {
    seen = lastEventId;
    show(parse(data)[0]);
  });
}

function close(words) {
  if (stream) stream.close();
  stream = null;
  say(words);
}

function say(words) {
  live.textContent = words;
  live.classList.toggle("on", words === "Live");
}

pause.hidden = false;
pause.addEventListener("click", () => {
  const on = pause.getAttribute("aria-pressed") !== "true";
  pause.setAttribute("aria-pressed", String(on));
  if (on) close("Paused");
  else open();
});
// A page that nobody sees asks for nothing, and lets its session grow old.
document.addEventListener("visibilitychange", () => (document.hidden ? close("Waiting") : open()));
setInterval(speak, SPEAK_EVERY);
open();
