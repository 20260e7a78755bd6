// One question as a person would read it.
import { at, h, svg } from "./dom.js";

export const SAID = { unsure: "not sure", skip: "skipped", later: "later", out: "left out" };

export function showQuestion(question, show) {
  const reason = at("reason");
  reason.hidden = !question.why;
  reason.classList.toggle("plain-reason", question.reason === "question" || question.reason === "drawn");
  reason.textContent = question.reason === "disagreement" ? opinions(question) : question.why;
  at("ask").replaceChildren("Which label is right? ", h("small", {}, question.name));
  const isAlong = (row) => question.along.includes(row.row);
  const alike = question.nearest.filter(isAlong);
  at("alike").hidden = !alike.length;
  at("alikes").classList.toggle("pictures", alike.some((row) => row.column !== null));
  at("alikes").replaceChildren(...alike.map((row) => (row.column === null ? h("li", {}, h("b", {}, row.name), ` ${row.line}`)
    : h("li", { class: "thumbnail" }, small(row), h("small", {}, row.name)))));
  showTogether(question);
  at("fields").replaceChildren(...fields(question));
  if (question.before) reason.append(` You said ${question.before.label ?? SAID[question.before.kind]}.`);
  if (question.given === undefined) at("given").hidden = true;
  else showGiven(question, show);
  const near = question.nearest.filter((row) => !isAlong(row)).map((row) => {
    const now = row.answer !== null && row.answer !== row.given ? ` answered: ${row.answer}` : "";
    const label = h("span", { class: "label" }, row.given);
    if (row.column === null) return h("li", {}, h("span", {}, label), h("span", { class: "line" }, row.line, " ", h("small", {}, `${row.name}${now}`)));
    return h("li", { class: "thumbnail" }, small(row), label, h("small", {}, `${row.name}${now}`));
  });
  at("nearest").classList.toggle("pictures", question.nearest.some((row) => row.column !== null));
  at("nearest").replaceChildren(...near);
  at("near").hidden = !near.length;
}

const small = (row) => h("img", { class: "large", src: `image/${row.row}/${row.column}?small`, alt: row.name, loading: "lazy" });

// Whether the answer is for all rows that are nearly the same, or for this one only.
export function showTogether({ name, along, alone }) {
  at("together").setAttribute("aria-pressed", String(!alone));
  at("together-words").textContent = `One answer for all ${along.length + 1}`;
  at("alike-title").textContent = `These ${along.length + 1} rows are nearly the same. ${alone ? `Your answer is for ${name} only.` : "One answer for all of them counts as one."}`;
}

export function showGiven(question, show) {
  const place = at("given");
  place.hidden = false;
  if (show) {
    question.seen = true;
    place.replaceChildren("The label in the file:", h("span", { class: "label" }, question.given));
  } else {
    const reveal = () => showGiven(question, true);
    place.replaceChildren("The label in the file is hidden.",
      h("button", { type: "button", class: "quiet", id: "reveal", onclick: reveal }, "Show it"));
  }
}

function opinions({ why, others }) {
  return `${why} ${others.map((o) => `${o.reviewer}: ${o.label}`).join(", ")}.`;
}

function fields(question) {
  const made = question.fields.filter((f) => f.kind === "image").map((f) => picture(question, f));
  made.push(...question.fields.filter((f) => f.kind === "text").map(prose));
  const rest = question.fields.filter((f) => f.kind === "number" || f.kind === "category");
  const main = rest.filter((f) => f.main);
  if (main.length) made.push(h("div", { class: "numbers" }, ...main.map(number)));
  const others = rest.filter((f) => !f.main);
  if (others.length) {
    const more = h("details", { class: "more" }, h("summary", {}, `${others.length} more columns`));
    more.append(h("div", { class: "numbers" }, ...others.map(number)));
    made.push(more);
  }
  return made;
}

function prose(field) {
  return h("div", { class: "field" }, h("p", { class: "name" }, field.name),
    h("p", { class: "prose" }, field.value || "(empty)"));
}

function picture(question, field) {
  const figure = h("div", { class: "field" }, h("p", { class: "name" }, field.name));
  if (!field.image) {
    figure.append(h("p", {}, `${field.value} (no picture of that name in the table’s folder)`));
    return figure;
  }
  const image = h("img", { class: "large", src: `image/${question.row}/${field.column}`, alt: `Picture ${field.value}` });
  image.addEventListener("load", () => {
    // As large as it helps: small pictures are blown up, tiny ones with their pixels in sight.
    image.classList.toggle("tiny", image.naturalWidth < 120);
    image.classList.toggle("small", image.naturalWidth >= 120 && image.naturalWidth < 480);
  });
  image.addEventListener("error", () => image.replaceWith(h("p", {}, `${field.value} (not a picture that can be shown)`)));
  figure.append(image);
  return figure;
}

function number(field) {
  const place = field.ticks ? strip(field) : h("span");
  return h("div", {}, h("span", { class: "name" }, field.name), h("span", { class: "value" }, field.value || "–"),
    place, h("span", { class: "note" }, field.note || ""));
}

function strip(field) {
  const lines = field.ticks.map((t) => svg("line", { x1: `${100 * t}%`, x2: `${100 * t}%`, y1: 5, y2: 21 }));
  const me = svg("circle", { class: "me", cx: `${100 * field.place}%`, cy: 13, r: 7 });
  return svg("svg", { class: "strip", "aria-hidden": "true", focusable: "false" }, ...lines, me);
}
