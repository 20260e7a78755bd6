// Asks, sends answers, and keeps what is known in sight.
import { at, h } from "./dom.js";
import { showDone, showKnown } from "./known.js";
import { showGiven, showQuestion, showTogether } from "./question.js";

const CALM = 300; // milliseconds in which a second press is taken for a slip
const kept = {
  get: (name, other) => sessionStorage.getItem(`review.${name}`) ?? localStorage.getItem(`review.${name}`) ?? other,
  set: (name, value) => {
    sessionStorage.setItem(`review.${name}`, value);
    localStorage.setItem(`review.${name}`, value);
  },
};
const settings = { name: "", given: false, keys: true, theme: "auto" };
let about = null;
let question = null;
let shownAt = 0;
let sending = false;
let timer = 0;
let keyOf = new Map();

const request = () => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

async function call(path, body) {
  const options = body ? { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) } : {};
  const query = body ? "" : `?reviewer=${encodeURIComponent(settings.name)}`;
  let response;
  try {
    response = await fetch(`api/${path}${query}`, options);
  } catch {
    throw Object.assign(new Error("floral review cannot be reached. Is it still running?"), { status: 0 });
  }
  const found = await response.json().catch(() => ({ error: "floral review gave no answer" }));
  if (!response.ok) throw Object.assign(new Error(found.error), { status: response.status });
  return found;
}

function trouble(text, again) {
  at("trouble").replaceChildren(...(text ? [h("span", {}, text)] : []),
    ...(again ? [h("button", { type: "button", id: "again", onclick: again }, "Try again")] : []));
}

async function ask() {
  question = null;
  press(false);
  try {
    const next = await call("question");
    trouble("");
    show(next);
  } catch (error) {
    trouble(error.message, ask);
  }
}

function show(next) {
  question = { ...next, seen: false, alone: false };
  const over = next.row < 0;
  at("bar").hidden = false;
  if (over) {
    at("ask").textContent = "Every row has been answered.";
    at("fields").replaceChildren(h("p", {}, "There is nothing left to ask. Finish to write the files."));
    at("given").hidden = at("near").hidden = at("alike").hidden = at("reason").hidden = true;
  } else {
    showQuestion(question, settings.given);
  }
  shownAt = performance.now();
  at("slip").replaceChildren();
  at("search").value = "";
  search();
  press(true);
  document.documentElement.dataset.row = next.row;
  window.scrollTo(0, 0);
  at("ask").focus({ preventScroll: true });
}

function press(allowed) {
  for (const button of document.querySelectorAll("#bar button")) {
    button.disabled = !allowed || (question !== null && question.row < 0 && button.id !== "undo");
    button.classList.remove("chosen");
  }
}

async function answer(kind, label = null, button = null) {
  if (sending || !question || performance.now() - shownAt < CALM) {
    if (question === null || question.row >= 0) at("slip").replaceChildren("Ignored: that came within 0.3 seconds of this question. Answer again if you meant it.");
    return;
  }
  if (question.row < 0) return;
  const asked = question;
  const said = { reviewer: settings.name, request: request(), row: asked.row, kind, label, seen: asked.seen, alone: asked.alone };
  press(false);
  button?.classList.add("chosen");
  await send(() => call("answer", said), (saved) => tellSaved(asked, kind, label, saved.along));
}

async function send(post, then) {
  sending = true;
  try {
    const saved = await post();
    trouble("");
    then(saved);
    await ask();
  } catch (error) {
    if (error.status === 409) {
      await ask();
      trouble(error.message);
    } else {
      // The same request goes out again: were it stored already, it would not be stored twice.
      trouble(`Not saved. ${error.message}`, () => send(post, then));
    }
  } finally {
    sending = false;
    soon(50);
  }
}

function together() {
  if (!question || !question.along?.length) return;
  question.alone = !question.alone;
  showTogether(question);
}

function tellSaved({ before, given, name: own }, kind, label, along) {
  const name = along ? `${own} and ${along} like it` : own;
  const is = along ? "are" : "is";
  const label_ = (text) => h("span", { class: "label" }, text);
  const tell = (...parts) => at("last").replaceChildren(...parts);
  if (kind === "skip") tell(before ? `Left ${name} as it was.` : `Skipped ${name}; it comes back ten questions later.`);
  else if (kind === "later") tell(`Set ${name} aside; it stands under “To come back to”.`);
  else if (kind === "out") tell(`Left out ${name}: nothing is trained on ${along ? "them" : "it"}.`);
  else if (kind === "unsure" && (about.blind || along)) tell(`Saved: not sure about ${name}.`);
  else if (kind === "unsure") tell(`Saved: not sure about ${name}. The file says`, label_(given));
  else if (about.blind || along) tell(`Saved: ${name} ${is}`, label_(label));
  else if (label === given) tell(`Saved: ${name} is`, label_(label), "as the file says.");
  else tell(`Saved: ${name} is`, label_(label), "while the file says", label_(given));
}

async function undo() {
  if (sending) return;
  const sent = { reviewer: settings.name, request: request() };
  press(false);
  await send(() => call("undo", sent), () => at("last").replaceChildren("Taken back. Here is the question again."));
}

async function open(row) {
  if (sending) return;
  press(false);
  await send(() => call("again", { reviewer: settings.name, row }), () => at("last").replaceChildren());
}

async function finish() {
  at("finish").disabled = true;
  at("files").textContent = "Training the model and writing the files…";
  try {
    showDone(await call("finish", { reviewer: settings.name }));
  } catch (error) {
    trouble(error.message);
  }
  at("finish").disabled = false;
  soon(0);
}

async function look() {
  try {
    const state = await call("state");
    showKnown(state, open);
    document.documentElement.dataset.answers = state.answers;
    if (state.broken) trouble(state.broken);
  } catch {
    document.documentElement.dataset.answers = "unknown";
  } finally {
    soon(4000);
  }
}

function soon(milliseconds) {
  clearTimeout(timer);
  timer = setTimeout(look, milliseconds);
}

function keys(event) {
  const plain = !(event.ctrlKey || event.metaKey || event.altKey || event.repeat);
  if (!settings.keys || !plain || document.querySelector("dialog[open]") || event.target.matches("input, select, textarea")) return;
  const list = document.activeElement.closest?.("#answers, #set-aside");
  const found = keyOf.get(event.key);
  const name = typeof found === "string" ? found : null;
  if (found instanceof Element) answer("label", found.dataset.label, found);
  else if (about.kinds.includes(name)) answer(name, null, at(name));
  else if (name === "undo") undo();
  else if (name === "together") together();
  else if (name === "change") at("answers").querySelector("button")?.focus();
  else if (list && (event.key === "ArrowDown" || event.key === "ArrowUp")) move(list, event.key === "ArrowDown" ? 1 : -1);
  else if (event.key === "+") document.querySelector("#fields img")?.classList.toggle("zoomed");
  else if (event.key === "/" && !at("search-line").hidden) at("search").focus();
  else return;
  event.preventDefault();
}

function move(list, by) {
  const buttons = [...list.querySelectorAll("button")];
  buttons[Math.min(Math.max(buttons.indexOf(document.activeElement) + by, 0), buttons.length - 1)]?.focus();
}

function apply() {
  document.documentElement.classList.toggle("no-keys", !settings.keys);
  if (settings.theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = settings.theme;
}

function openSettings() {
  at("name").value = settings.name;
  at("show-given").checked = settings.given;
  at("use-keys").checked = settings.keys;
  at("theme").value = settings.theme;
  at("settings").showModal();
}

async function closeSettings() {
  const name = at("name").value.trim() || settings.name;
  const other = name !== settings.name;
  Object.assign(settings, { name, given: at("show-given").checked, keys: at("use-keys").checked, theme: at("theme").value });
  for (const [key, value] of Object.entries(settings)) kept.set(key, String(value));
  apply();
  if (other) {
    at("last").replaceChildren(`Answers are now stored under ${name}.`);
    await ask();
    soon(0);
  } else if (question && question.row >= 0) {
    if (question.given !== undefined) showGiven(question, settings.given || question.seen);
  }
}

function search() {
  const wanted = at("search").value.trim().toLowerCase();
  for (const button of at("classes").children) button.hidden = !button.dataset.label.toLowerCase().includes(wanted);
}

function searchKey(event) {
  if (event.key === "Escape") {
    at("search").value = "";
    search();
    at("ask").focus({ preventScroll: true });
  } else if (event.key === "Enter") {
    event.preventDefault();
    const first = [...at("classes").children].find((button) => !button.hidden);
    if (first) answer("label", first.dataset.label, first);
  }
}

const COMMANDS = { unsure: "u", skip: "s", later: "f", out: "x", undo: "z", change: "c", together: "a" };

function classButtons({ classes: names, keys: own = {}, kinds }) {
  // Classes called 0 and 1 have these keys, not 1 and 2; own keys come before all others.
  const digits = names.every((name) => /^[0-9]$/.test(name));
  const taken = new Set(Object.values(own));
  const standard = (name, i) => (digits ? name : i < 10 ? String((i + 1) % 10) : null);
  keyOf = new Map();
  at("classes").classList.toggle("short", names.every((name) => name.length <= 4) && names.length > 3);
  at("classes").replaceChildren(...names.map((name, i) => {
    const key = own[name] ?? (taken.has(standard(name, i)) ? null : standard(name, i));
    const button = h("button", { type: "button", "data-label": name }, h("span", {}, name), key === null || key === name ? null : h("kbd", {}, key));
    button.addEventListener("click", () => answer("label", name, button));
    if (key !== null) keyOf.set(key, button);
    return button;
  }));
  for (const [name, key] of Object.entries(COMMANDS)) {
    const free = taken.has(key) ? key.toUpperCase() : key; // a command whose key a class has takes the capital
    if (!taken.has(free)) keyOf.set(free, name);
    const place = at(name)?.querySelector("kbd") ?? at("recent").querySelector("kbd");
    place.textContent = taken.has(free) ? "" : free;
    if (at(name)) at(name).hidden = !["undo", "together"].includes(name) && !kinds.includes(name);
  }
  at("search-line").hidden = names.length <= 10;
}

// Titles, lists and paragraphs of the guidelines; everything else stays as it was written.
function guidelines(text) {
  at("rules").hidden = !text;
  const line = (one) => (/^#/.test(one) ? h("p", { class: "title" }, one.replace(/^#+\s*/, ""))
    : /^\s*[-*]\s/.test(one) ? h("p", { class: "item" }, one.replace(/^\s*[-*]\s+/, "")) : h("p", {}, one));
  at("guidelines").replaceChildren(...(text || "").split("\n").filter((one) => one.trim()).map(line));
}

async function start() {
  try {
    about = await call("about");
  } catch (error) {
    trouble(error.message, start);
    return;
  }
  settings.name = new URLSearchParams(location.search).get("as") || kept.get("name", about.reviewer);
  settings.given = kept.get("given", "false") === "true";
  settings.keys = kept.get("keys", "true") === "true";
  settings.theme = kept.get("theme", "auto");
  apply();
  at("title").textContent = about.title;
  document.title = `${about.title}: label review`;
  classButtons(about);
  guidelines(about.guidelines);
  at("wrong").hidden = at("given").hidden = about.blind;
  at("judged").hidden = !about.blind;
  if (about.blind) at("aim").textContent = "You label a few rows without seeing what the judges say of them.";
  await ask();
  soon(0);
}

for (const kind of ["unsure", "skip", "later", "out"]) at(kind).addEventListener("click", () => answer(kind, null, at(kind)));
at("undo").addEventListener("click", undo);
at("together").addEventListener("click", together);
at("search").addEventListener("input", search);
at("search").addEventListener("keydown", searchKey);
at("finish").addEventListener("click", finish);
at("open-settings").addEventListener("click", openSettings);
at("settings").addEventListener("close", closeSettings);
document.addEventListener("keydown", keys);
start();
