// What is known so far, in words and in small pictures.
import { at, h, percent, svg } from "./dom.js";
import { SAID } from "./question.js";

export function showKnown(state, open) {
  const known = state.known;
  at("answered").textContent = answered(state);
  const { answered: done, about } = state.progress;
  const glance = [h("b", {}, `${done.toLocaleString("en")} of about ${about.toLocaleString("en")} answers`)];
  at("progress").replaceChildren(progress(done, about));
  at("progress").setAttribute("aria-label", `${done} of about ${about} answers`);
  if (known.estimate) {
    const sure = known.estimate.known;
    const range = `${percent(known.estimate.low)} to ${percent(known.estimate.high)}`;
    at("share").textContent = sure ? range : "Not known yet";
    at("share").classList.toggle("unknown", !sure);
    at("estimate").textContent = known.estimate.under;
    at("guarantee").textContent = known.guarantee.words;
    if (sure) glance.push(" · ", h("b", {}, range), " of the labels wrong");
  }
  at("ten").textContent = known.ten ? known.ten.words : "";
  if (known.stop) at("stop").textContent = known.stop.words;
  at("finish").classList.toggle("main", Boolean(known.stop?.now));
  at("glance").firstElementChild.replaceChildren(...glance);
  at("busy").textContent = known.trouble || "";
  if (known.judges) at("judges").replaceChildren(judges(known.judges));
  answers(state, open);
  if (state.reviewers) people(state);
  const { files } = state;
  at("files").textContent = files.state !== "written" ? "" : files.answers === state.answers ? `Written into ${state.folder}.`
    : `Written into ${state.folder} after ${plural(files.answers, "answer")}. Finish again to take the later ones in.`;
}

const plural = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

function answered(state) {
  let text = `${plural(state.answers, "answer")} on ${plural(state.rows, "row")}`;
  if (state.along) text += ` and ${plural(state.along, "row")} like them`;
  if (state.unsure) text += `, ${state.unsure} not sure`;
  if (state.known.changed) text += `. ${plural(state.known.changed, "label")} corrected so far`;
  return `${text}.`;
}

function progress(done, about) {
  return svg("svg", { class: "meter", "aria-hidden": "true" },
    svg("rect", { class: "back", width: "100%", height: 6, rx: 3 }),
    svg("rect", { class: "done", width: `${(100 * Math.min(done, about)) / Math.max(about, 1)}%`, height: 6, rx: 3 }));
}

function judges(rows) {
  return h("ul", { class: "plain judges" }, ...rows.map((row) => h("li", {}, `${row.judge}: `, h("b", {}, `${percent(row.low)} to ${percent(row.high)}`),
    svg("svg", { class: "meter", "aria-hidden": "true" },
      svg("rect", { class: "full", x: `${100 * row.low}%`, width: `${Math.max(100 * (row.high - row.low), 1)}%`, height: 6, rx: 3 })))));
}

// A button for each answer; the one that has the focus keeps it.
function answers({ last, later }, open) {
  const list = (said) => said.map((one) => h("li", {}, h("button", { type: "button", class: "quiet said", "data-row": one.row, onclick: () => open(one.row) },
    h("span", {}, one.along ? `${one.name} +${one.along}` : one.name), h("span", { class: "label" }, one.label ?? SAID[one.kind]))));
  for (const [section, place, said] of [["recent", "answers", last], ["aside", "set-aside", later]]) {
    const now = JSON.stringify(said);
    if (at(place).dataset.now === now) continue;
    const focus = at(place).contains(document.activeElement) ? document.activeElement.dataset.row : null;
    at(place).dataset.now = now;
    at(section).hidden = !said.length;
    at(place).replaceChildren(...list(said));
    if (focus !== null) at(place).querySelector(`[data-row="${focus}"]`)?.focus();
  }
}

function people(state) {
  at("people").hidden = state.reviewers.length < 2 && !state.disagreements.length;
  at("reviewers").replaceChildren(...state.reviewers.map((r) => h("li", {}, h("b", {}, r.name), `: ${plural(r.answers, "answer")}`)));
  const list = state.disagreements.map((d) => h("li", {}, h("b", {}, d.name), ` ${d.line}: `,
    d.answers.map((a) => `${a.reviewer} says ${a.label}`).join(", ")));
  const head = h("p", {}, `You disagree on ${plural(list.length, "row")}; each is asked again, and until you agree it counts as unclear.`);
  at("disagreements").replaceChildren(...(list.length ? [head, h("ul", { class: "plain" }, ...list)] : []));
}

function command({ about, command }) {
  const code = h("code", {}, command);
  const copy = h("button", { type: "button", class: "quiet", onclick: () => {
    // without a secure address there is no clipboard: the command is marked, and the browser's own keys copy it
    if (navigator.clipboard) navigator.clipboard.writeText(command).then(() => { copy.textContent = "Copied"; }, () => {});
    else getSelection().selectAllChildren(code);
  } }, "Copy");
  return h("li", {}, about, h("span", { class: "command" }, code, copy));
}

// What was written and what to do next, in front of everything.
export function showDone({ state, error, files, commands = [], words }) {
  const list = files.map((f) => h("li", {}, h("a", { href: `file/${encodeURIComponent(f.name)}`, download: f.name }, f.name), ` ${f.about}`));
  at("done-title").textContent = state === "written" ? "The files are written" : "Nothing was written";
  const next = commands.length ? [h("h3", {}, "What to do next"), h("ul", { class: "plain" }, command(commands[0]))] : [];
  const more = h("details", {}, h("summary", {}, "Other commands"), h("ul", { class: "plain" }, ...commands.slice(1).map(command)));
  at("written").replaceChildren(...(state === "written" ? [h("ul", { class: "plain" }, ...list), ...(words ? [h("p", { class: "small" }, words)] : []),
    ...next, ...(commands.length > 1 ? [more] : [])] : [h("p", {}, `${error}. Answers are safe; try again.`)]));
  at("done").showModal();
}
