"use strict";
// What is known, and the stream that it comes from.
const KEPT = { decision: 300, batch: 3000 };
const store = { status: null, policies: [], decision: [], batch: [], fresh: [], live: false };

const now = () => Date.now() / 1000;
const byId = (id) => document.getElementById(id);

function connect(changed) {
  const stream = new EventSource("/events");
  const lost = () => { store.live = false; changed(); };
  stream.addEventListener("hello", (event) => {
    store.policies = JSON.parse(event.data).policies;
    store.decision = []; store.batch = []; store.fresh = [];  // it is told again from the start
    byId("log").replaceChildren();
  });
  stream.addEventListener("happened", (event) => {
    for (const entry of JSON.parse(event.data)) {
      store[entry.kind].push(entry);
      if (entry.kind === "decision") store.fresh.push(entry);
    }
    for (const kind in KEPT) store[kind].splice(0, store[kind].length - KEPT[kind]);
  });
  stream.addEventListener("status", (event) => {
    store.status = JSON.parse(event.data);
    store.live = true;
    changed();
  });
  stream.onerror = lost;  // the browser tries again by itself
}

// Text goes in as text: names of queries are not ours.
function make(tag, text, kind) {
  const found = document.createElement(tag);
  if (text !== undefined) found.textContent = text;
  if (kind) found.className = kind;
  return found;
}

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const figure = (value, digits) => value === null || value === undefined ? "" : value.toFixed(digits);
const signed = (value) => value === null || value === undefined ? "" : (value < 0 ? "−" : "+") + Math.abs(value).toFixed(1) + " s";
const percent = (value) => value === null || value === undefined ? "" : Math.round(value * 100) + " %";
const whole = (value) => value === null || value === undefined ? "" : Math.round(value).toLocaleString("en");

function moment(at) {
  const date = new Date(at * 1000);
  return date.toTimeString().slice(0, 8) + "." + String(date.getMilliseconds()).padStart(3, "0");
}
