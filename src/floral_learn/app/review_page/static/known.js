// What is known so far, in words and in small pictures.
import { at, h, percent, svg } from "./dom.js";

export function showKnown(state) {
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
    at("intervals").replaceChildren(...(sure ? [intervals(known)] : []));
    at("estimate").textContent = known.estimate.under;
    at("guarantee").textContent = known.guarantee.words;
    if (sure) glance.push(" · ", h("b", {}, range), " of the labels wrong");
  }
  at("place").hidden = !known.estimate?.known;
  if (known.where) at("where").replaceChildren(where(known.where));
  at("gained").hidden = !known.accuracy;
  if (known.accuracy) {
    at("bars").replaceChildren(bars(known.accuracy));
    at("accuracy").textContent = known.accuracy.words;
  }
  at("ten").textContent = known.ten ? known.ten.words : "";
  if (known.stop) at("stop").textContent = known.stop.words;
  at("finish").classList.toggle("main", Boolean(known.stop?.now));
  at("glance").firstElementChild.replaceChildren(...glance);
  at("busy").textContent = state.busy ? "Working out what the last answer changes." : known.trouble || "";
  people(state);
  files(state);
}

const plural = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

function answered(state) {
  let text = `${plural(state.answers, "answer")} on ${plural(state.rows, "row")}`;
  if (state.unsure) text += `, ${state.unsure} not sure`;
  if (state.known.changed) text += `. ${plural(state.known.changed, "label")} corrected so far`;
  return `${text}.`;
}

function progress(done, about) {
  return svg("svg", { class: "meter", "aria-hidden": "true" },
    svg("rect", { class: "back", width: "100%", height: 6, rx: 3 }),
    svg("rect", { class: "done", width: `${(100 * Math.min(done, about)) / Math.max(about, 1)}%`, height: 6, rx: 3 }));
}

function intervals(known) {
  const { estimate: e, guarantee: g } = known;
  const most = Math.min(1, Math.max(0.2, Math.ceil(10 * Math.max(g.high, e.high)) / 10));
  const x = (share) => `${(100 * share) / most}%`;
  const band = (low, high, y, kind) => svg("rect", { class: kind, x: x(low), width: x(Math.max(high - low, 0.004)), y, height: 10, rx: 5 });
  const name = `Model’s estimate ${percent(e.low)} to ${percent(e.high)}; guaranteed ${percent(g.low)} to ${percent(g.high)}`;
  return svg("svg", { class: "scale", role: "img", "aria-label": name },
    svg("text", { x: 0, y: 11 }, `model’s estimate: ${percent(e.low)} to ${percent(e.high)}`), band(e.low, e.high, 16, "guess"),
    svg("circle", { class: "point", cx: x(e.share), cy: 21, r: 7 }),
    svg("text", { x: 0, y: 43 }, `guaranteed: ${percent(g.low)} to ${percent(g.high)}`), band(g.low, g.high, 48, "sure"),
    svg("line", { class: "axis", x1: 0, x2: "100%", y1: 62, y2: 62 }),
    svg("text", { x: 0, y: 75 }, "0 %"), svg("text", { x: "100%", y: 75, "text-anchor": "end" }, percent(most)));
}

function where(parts) {
  if (!parts.length) return h("p", {}, "No class, source or region stands out by the answers.");
  return h("ul", { class: "plain where" }, ...parts.map((part) => h("li", {},
    `${part.name}: `, h("b", {}, percent(part.share)), ` wrong; ${part.answers[0]} of ${plural(part.answers[1], "answer")} changed the label`,
    svg("svg", { class: "meter", "aria-hidden": "true" }, svg("rect", { class: "full", width: `${100 * part.share}%`, height: 6, rx: 3 })))));
}

function bars(accuracy) {
  const line = (share, y, kind, name) => [
    svg("text", { x: 0, y: y - 5 }, name), svg("text", { x: "100%", y: y - 5, "text-anchor": "end" }, percent(share)),
    svg("rect", { class: "back", x: 0, width: "100%", y, height: 8, rx: 4 }),
    svg("rect", { class: kind, x: 0, width: `${100 * share}%`, y, height: 8, rx: 4 })];
  const name = `As given ${percent(accuracy.before)}, as corrected ${percent(accuracy.after)}`;
  return svg("svg", { class: "bars", role: "img", "aria-label": name },
    ...line(accuracy.before, 18, "before", "labels in the file"), ...line(accuracy.after, 50, "after", "labels as corrected"));
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

function files({ files, folder, answers, commands }) {
  at("finish").disabled = files.state === "writing";
  const list = files.files.map((f) => h("li", {}, h("a", { href: `file/${encodeURIComponent(f.name)}`, download: f.name }, f.name), ` ${f.about}`));
  const later = answers === files.answers ? `Written into ${folder}. You can go on answering, or close the page.`
    : `Written into ${folder} after ${plural(files.answers || 0, "answer")}. Finish again to take the later ones in.`;
  const words = {
    none: [],
    writing: [h("p", {}, "Training the model and writing the files…")],
    failed: [h("p", {}, `Nothing was written: ${files.error}. Answers are safe; try again.`)],
    written: [h("p", {}, later), h("ul", { class: "plain" }, ...list), h("h4", {}, "What to do next"),
      h("ul", { class: "plain" }, ...commands.map(command))],
  };
  const now = `${files.state} ${list.length} ${answers === files.answers}`;
  if (at("files").dataset.state !== now) {
    at("files").dataset.state = now;
    at("files").replaceChildren(...words[files.state]);
  }
}
