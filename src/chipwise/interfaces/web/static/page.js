"use strict";
// Asks again as inputs change, moves sliders, sifts tables, draws when a drawing is first shown.
// Every page works without it: forms are sent, links lead on.

const form = document.getElementById("ask");
const answer = document.getElementById("answer");
const WAIT_MS = 120;
// What the address last showed, and whether the next answer gets an entry of its own in the history.
let shown = location.search;
let entry = true;
let asking = null;
let timer = 0;

function said() {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (String(value).trim()) query.append(name, String(value).trim());
  }
  return query;
}

async function short(query) {
  const config = query.get("config");
  if (!config || !config.startsWith("{") || typeof CompressionStream === "undefined") return query;
  const stream = new Blob([config]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  query.set("config", btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, ""));
  return query;
}

async function ask() {
  if (asking) asking.abort();
  const mine = new AbortController();
  asking = mine;
  const query = await short(said());
  if (query.get("config") && query.get("model")) query.delete("model");
  answer.classList.add("busy");
  try {
    const response = await fetch("/answer?" + query, { signal: mine.signal });
    if (!response.ok) throw new Error("the server answers " + response.status);
    renew(await response.text());
    remember("?" + query);
    fill();
    point();
  } catch (error) {
    if (error.name !== "AbortError") {
      const told = document.createElement("p");
      told.className = "error";
      told.textContent = "No answer: " + error.message;
      answer.replaceChildren(told);
    }
  } finally {
    if (asking === mine) answer.classList.remove("busy");
  }
}

// A new answer in the place of the old one: what was unfolded stays so, and the rows stay sifted.
function renew(text) {
  const told = (one) => one.firstElementChild.textContent.split(":")[0];
  const before = new Map(Array.from(answer.querySelectorAll("details"), (one) => [told(one), one.open]));
  const sifted = answer.querySelector("[data-sifts]")?.value;
  answer.innerHTML = text;
  for (const one of answer.querySelectorAll("details")) one.open = before.get(told(one)) ?? one.open;
  arm(answer);
  const sieve = answer.querySelector("[data-sifts]");
  if (!sieve || !sifted) return;
  sieve.value = sifted;
  sieve.dispatchEvent(new Event("input"));
}

// One entry for each input that was changed, however often it moved: Back takes the change back.
function remember(search) {
  if (search !== shown) history[entry ? "pushState" : "replaceState"](null, "", "/" + search);
  entry = entry && search === shown;
  shown = search;
}

// A slider asks at once, a text when the typing rests.
function soon(event) {
  clearTimeout(timer);
  timer = setTimeout(ask, event.target.type === "range" ? 0 : WAIT_MS);
}

// On a narrow sheet the answer lies below the form: a line at the foot says what it is and leads there.
function point() {
  const said = answer.querySelector(".verdict, .error b, h2");
  const jump = document.getElementById("jump");
  jump.hidden = !said;
  if (said) jump.textContent = said.textContent + " \u2193";
}

// What the answer used stands in the fields that were left empty.
function fill() {
  const used = document.getElementById("used");
  if (!used) return;
  for (const [name, value] of Object.entries(used.dataset)) {
    const field = document.getElementById("f-" + name.replace(/[A-Z]/g, (one) => "-" + one.toLowerCase()));
    if (!field) continue;
    if (field.tagName === "SELECT") field.options[0].textContent = value ? value + " (preset)" : "not stated";
    else field.placeholder = value;
  }
  for (const slider of form.querySelectorAll(".slider")) slider.dispatchEvent(new Event("follow"));
}

// A text such as 8k, 500ms or 1.5M as a number, to find the nearest stop of a slider; times in seconds.
function amount(text) {
  const found = /^([0-9.]+)\s*([a-zA-Z]*)$/.exec(text.trim());
  if (!found) return NaN;
  const scale = { k: 1e3, K: 1e3, M: 1e6, B: 1e9, T: 1e12, ms: 1e-3, d: 86400, h: 3600, w: 604800 };
  return Number(found[1]) * (scale[found[2]] || 1);
}

function nearest(steps, text) {
  const value = Math.log(amount(text) || 1);
  let best = 0;
  steps.forEach((step, at) => {
    if (Math.abs(Math.log(amount(step)) - value) < Math.abs(Math.log(amount(steps[best])) - value)) best = at;
  });
  return best;
}

function slide(slider) {
  const steps = slider.dataset.steps.split(",");
  const field = document.getElementById(slider.dataset.for);
  const place = () => {
    const text = field.value || field.placeholder;
    slider.value = String(text ? nearest(steps, text) : 0);
    slider.classList.toggle("unset", !field.value);
    slider.setAttribute("aria-valuetext", text || "not stated");
  };
  slider.addEventListener("input", () => {
    field.value = steps[Number(slider.value)];
    place();
  });
  field.addEventListener("input", place);
  slider.addEventListener("follow", place);
  place();
}

function sift(field) {
  const rows = document.querySelectorAll("#" + field.dataset.sifts + " tbody tr");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}

async function draw(place) {
  if (place.dataset.drawn) return;
  place.dataset.drawn = "1";
  try {
    const response = await fetch(place.dataset.src);
    if (response.ok) place.innerHTML = await response.text();
  } catch {
    delete place.dataset.drawn;
  }
}

function arm(root) {
  for (const field of root.querySelectorAll("[data-sifts]")) sift(field);
  for (const place of root.querySelectorAll(".curves")) {
    const option = place.closest("details");
    if (!option || option.open) draw(place);
    else option.addEventListener("toggle", () => draw(place), { once: true });
  }
}

function dropped(event) {
  const [file] = event.dataTransfer ? event.dataTransfer.files : [];
  if (!file) return;
  event.preventDefault();
  file.text().then((text) => {
    const field = document.getElementById("f-config");
    field.closest("details").open = true;
    field.value = text;
    document.getElementById("f-model").value = "";
    ask();
  });
}

if (form) {
  form.addEventListener("input", soon);
  form.addEventListener("focusin", () => { entry = true; });
  window.addEventListener("popstate", () => {
    if (location.search !== shown) location.replace(location.pathname + location.search);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", dropped);
  for (const slider of form.querySelectorAll(".slider")) slide(slider);
  point();
}
arm(document);
