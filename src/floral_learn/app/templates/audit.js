"use strict";
(() => {
  const D = JSON.parse(document.getElementById("data").textContent);
  const n = D.given.length;
  const $ = (id) => document.getElementById(id);
  const has = (v) => v !== null && v !== undefined;
  // All text from the data goes through textContent: markup in it stays text.
  const el = (tag, props, ...children) => {
    const node = document.createElement(tag);
    for (const [k, v] of Object.entries(props || {})) {
      if (k === "class") node.className = v;
      else if (k.startsWith("on")) node.addEventListener(k.slice(2), v);
      else if (v !== false && has(v)) node.setAttribute(k, v === true ? "" : v);
    }
    for (const c of children) if (has(c)) node.append(c);
    return node;
  };
  const idOf = (r) => (D.ids ? D.ids[r] : String(D.rows[r]));
  const groupOf = (r) => (D.group ? D.groupNames[D.group[r]] : "");
  const percent = (v) => (v >= 0.995 ? "99+ %" : v < 0.005 ? "< 1 %" : Math.round(100 * v) + " %");
  const score = (v) => v.toFixed(3);

  // ---- marks: row -> {mark, label, reviewer, note, given}, kept in this browser ----
  const store = "floral-audit-" + D.key;
  const marks = new Map();
  // In the tab's history, too: a page opened from a file may not see its own localStorage right after a reload.
  const inTab = (key) => (history.state ? history.state[key] : undefined);
  const inStorage = (key) => { try { return localStorage.getItem(key); } catch (e) { return null; } };
  const recall = (key, other) => [inTab(key), inStorage(key), other].find(has);
  const keepText = (key, v) => {
    try { localStorage.setItem(key, v); } catch (e) { /* private mode */ }
    try { history.replaceState({ ...history.state, [key]: v }, ""); } catch (e) { /* too many at once: the next one is kept */ }
  };
  const classOf = new Map(D.classes.map((c, i) => [c, i]));
  // Decisions that the audit was given come first; what was marked in this browser since then counts more.
  for (const [r, mark, label, reviewer, note, given] of D.decisions) marks.set(r, { mark, label: classOf.has(label) ? classOf.get(label) : D.suggested[r], reviewer, note, given });
  const read = (text) => { try { const k = JSON.parse(text); return Array.isArray(k.marks) ? k : null; } catch (e) { return null; } };
  const newest = [read(inTab(store)), read(inStorage(store))].filter(has).sort((a, b) => b.at - a.at)[0];
  for (const [r, m] of newest ? newest.marks : []) if (r < n) { if (m) marks.set(r, m); else marks.delete(r); }
  const early = new Set(D.decisions.map((d) => d[0]));
  const keep = () => keepText(store, JSON.stringify({ at: Date.now(), marks: [...marks, ...[...early].filter((r) => !marks.has(r)).map((r) => [r, null])] }));
  const reviewer = () => $("reviewer").value.trim();
  const givenOf = (r) => { const m = marks.get(r); return m && has(m.given) ? m.given : D.classes[D.given[r]]; };
  const change = (r, what) => {
    const old = marks.get(r) || { label: D.suggested[r], note: "" };
    marks.set(r, { ...old, reviewer: reviewer(), ...what });
    keep();
  };
  const setMark = (r, mark) => { if (mark) change(r, { mark }); else { marks.delete(r); keep(); } drawTable(); };

  // ---- filter and sort ----
  const state = { sort: "score", down: true, page: 0, open: -1, selected: -1 };
  let list = new Uint32Array(0), listed = new Uint8Array(n);
  let hay = null;
  const haystack = () => {
    if (hay) return hay;
    hay = new Array(n);
    for (let r = 0; r < n; r++) {
      let t = idOf(r) + "\n" + D.rows[r] + "\n" + D.classes[D.given[r]] + "\n" + D.classes[D.suggested[r]] + "\n" + groupOf(r);
      for (const c of D.cells) t += "\n" + c[r];
      hay[r] = t.toLowerCase();
    }
    return hay;
  };
  const collator = new Intl.Collator(undefined, { numeric: true });
  let ranks = {};
  const rankOf = (key) => {  // one number per row, so that sorting compares numbers only
    if (ranks[key]) return ranks[key];
    let v;
    if (key === "row") {
      if (!D.ids) v = Float64Array.from(D.rows);
      else {
        const order = [...Array(n).keys()].sort((a, b) => collator.compare(D.ids[a], D.ids[b]) || a - b);
        v = new Float64Array(n);
        order.forEach((r, i) => { v[r] = i; });
      }
    } else if (key === "why") v = Float64Array.from(D.why, (w) => { let c = 0; for (; w; w >>= 1) c += w & 1; return c; });
    else v = Float64Array.from(D[key]);
    return (ranks[key] = v);
  };
  const value = (id) => ($(id) ? $(id).value : "");
  const select = () => {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const given = value("f-given"), suggested = value("f-suggested"), reason = value("f-reason"), group = value("f-group"), mark = value("f-mark");
    const h = words.length ? haystack() : null;
    const out = [];
    listed = new Uint8Array(n);
    for (let r = 0; r < n; r++) {
      if (given !== "" && D.given[r] !== +given) continue;
      if (suggested !== "" && D.suggested[r] !== +suggested) continue;
      if (reason !== "" && !(D.why[r] & (1 << +reason))) continue;
      if (group !== "" && D.group[r] !== +group) continue;
      if (mark !== "") { const m = marks.get(r); if (mark === "none" ? m : !m || m.mark !== mark) continue; }
      if (h && !words.every((w) => h[r].includes(w))) continue;
      out.push(r); listed[r] = 1;
    }
    const key = rankOf(state.sort), s = D.score, sign = state.down ? -1 : 1;
    list = Uint32Array.from(out).sort((a, b) => sign * (key[a] - key[b]) || s[b] - s[a] || a - b);
    state.page = 0; state.open = -1; state.selected = list.length ? list[0] : -1;
    drawTable(); drawMap();
  };

  // ---- table ----
  const body = document.querySelector("#table tbody");
  const size = () => +$("size").value;
  const pages = () => Math.max(1, Math.ceil(list.length / size()));
  const shown = () => list.subarray(state.page * size(), (state.page + 1) * size());
  const P = D.pictures;
  const SHEET = 144;  // pictures on the sheets of all classes
  const thumb = (r) => (P && P.small[r] ? el("img", { class: "thumb", src: P.small[r], alt: "", loading: "lazy" }) : null);
  const original = (r) => {
    const image = el("img", { src: P.large[r], alt: idOf(r), onerror: () => { if (P.small[r] && image.getAttribute("src") !== P.small[r]) image.src = P.small[r]; } });
    return el("figure", null, el("a", { href: P.large[r], target: "_blank", rel: "noopener" }, image), el("figcaption", null, idOf(r), ": ", el("strong", null, givenOf(r))));
  };
  const sheets = () => {
    const by = new Map();
    for (const r of [...byS].reverse()) if (D.flagged[r] && P.small[r]) { const k = D.given[r]; if (!by.has(k)) by.set(k, []); by.get(k).push(r); }
    const each = Math.max(1, Math.floor(SHEET / Math.max(by.size, 12)));
    for (const [k, rows] of [...by].sort((a, b) => a[0] - b[0]).slice(0, SHEET)) {
      const shown = rows.slice(0, each).map((r) => el("button", { type: "button", class: "tile", title: idOf(r), "aria-label": "open " + idOf(r), onclick: () => openRow(r) }, thumb(r), el("span", null, D.classes[D.suggested[r]] + "?")));
      $("sheets").append(el("h3", null, D.classes[k]), el("div", { class: "sheet" }, ...shown));
    }
    if (!by.size) $("sheets").append(el("p", null, "No label is flagged."));
  };
  const openRow = (r) => {
    let at = list.indexOf(r); if (at < 0) { clear(); at = list.indexOf(r); }
    state.page = Math.floor(at / size()); state.selected = state.open = r; drawTable(); drawMap();
    const node = body.querySelector("tr.selected"); if (node) node.scrollIntoView({ block: "start" });
  };
  const chips = (w) => { const f = document.createDocumentFragment(); D.reasons.forEach((t, i) => { if (w & (1 << i)) f.append(el("span", { class: "chip" }, t)); }); return f; };
  // In the list prose comes first, then what says most about the label; short values carry the names of their columns.
  const typical = D.cells.map((c) => { let t = 0, k = Math.min(n, 200); for (let r = 0; r < k; r++) t += c[r].length; return t / Math.max(k, 1); });
  const turn_of = [...D.first].sort((a, b) => (typical[b] > 30) - (typical[a] > 30));
  const named = (i, r) => (D.columns.length > 1 && D.cells[i][r] && typical[i] <= 30 ? D.columns[i] + " " + D.cells[i][r] : D.cells[i][r]);
  const brief = (r, most) => { const t = turn_of.map((i) => named(i, r)).filter(Boolean).join(" · "); return t.length > most ? t.slice(0, most - 1) + "…" : t; };
  const markCell = (r) => {
    const m = marks.get(r);
    const button = (mark, text, cls) => el("button", { type: "button", class: cls, "data-focus": r + mark, "aria-pressed": String(!!m && m.mark === mark), onclick: (e) => { e.stopPropagation(); state.selected = r; setMark(r, mark); } }, text);
    return el("td", { class: "mark wide", "data-name": "mark" }, button("wrong", "wrong", "w"), " ", button("right", "right", "r"), " ", button("unsure", "unsure", "s"),
      m && m.mark ? el("button", { type: "button", class: "undo", "data-focus": r + "undo", "aria-label": "take back the mark of row " + idOf(r), title: "take back", onclick: (e) => { e.stopPropagation(); state.selected = r; setMark(r, null); } }, "×") : null);
  };
  const toggle = (r) => { state.selected = r; state.open = state.open === r ? -1 : r; drawTable(); };
  const rowNode = (r) => {
    const m = marks.get(r), s = D.score[r];
    const tr = el("tr", { class: "row" + (m ? " " + m.mark : "") + (r === state.selected ? " selected" : ""), "data-row": D.rows[r], onclick: () => toggle(r) },
      el("td", { "data-name": "row" }, el("button", { type: "button", class: "open", "data-focus": r + "open", "aria-expanded": String(state.open === r), onclick: (e) => { e.stopPropagation(); toggle(r); } }, idOf(r))),
      el("td", { "data-name": "given" }, givenOf(r)),
      el("td", { "data-name": "suggested" }, D.classes[m && m.mark === "wrong" ? m.label : D.suggested[r]]),
      el("td", { "data-name": "score" }, el("span", { class: "meter" }, el("b", null, score(s)), el("i", { style: "width:" + Math.round(60 * s) + "px" }))));
    if (D.columns.length) tr.append(el("td", { "data-name": "content", class: "wide content" }, thumb(r), el("div", null, brief(r, 180))));
    tr.append(el("td", { "data-name": "reasons", class: "wide" }, chips(D.why[r])));
    if (D.group) tr.append(el("td", { "data-name": "source" }, groupOf(r)));
    tr.append(markCell(r));
    return tr;
  };
  const width = 6 + (D.columns.length ? 1 : 0) + (D.group ? 1 : 0);
  const cellsOf = (r) => { const dl = el("dl"); D.columns.forEach((c, i) => dl.append(el("dt", null, c), el("dd", null, D.cells[i][r]))); return dl; };
  const WIDE = 6;  // columns of a neighbour that have room beside each other
  const rowsTable = (rows, r, first) => {
    const some = D.columns.length > 1 && D.columns.length <= WIDE;
    const heads = [first, "label", "score", ...(some ? D.columns : D.columns.length ? ["content"] : [])];
    const body = el("tbody");
    for (const j of rows) {
      const cells = some ? D.cells.map((c) => el("td", null, c[j].length > 60 ? c[j].slice(0, 59) + "…" : c[j])) : D.columns.length ? [el("td", null, brief(j, 160))] : [];
      body.append(el("tr", null, el("td", null, thumb(j), idOf(j)), el("td", { class: D.given[j] !== D.given[r] ? "other" : "" }, D.classes[D.given[j]]), el("td", null, score(D.score[j])), ...cells));
    }
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": first }, el("table", null, el("thead", null, el("tr", null, ...heads.map((t) => el("th", { scope: "col" }, t)))), body));
  };
  const detailNode = (r) => {
    const m = marks.get(r), twins = D.twins[r] || [];
    const pick = el("select", { "data-focus": r + "pick", "aria-label": "label to put in its place", onchange: (e) => { change(r, { mark: "wrong", label: +e.target.value }); drawTable(); }, onclick: (e) => e.stopPropagation() });
    D.classes.forEach((c, i) => { if (c !== givenOf(r)) pick.append(el("option", { value: i, selected: i === (m ? m.label : D.suggested[r]) }, c)); });
    const note = el("input", { type: "text", class: "note", "data-focus": r + "note", "aria-label": "note on row " + idOf(r), placeholder: "note", maxlength: 500, onchange: (e) => { change(r, { mark: (marks.get(r) || {}).mark || "unsure", note: e.target.value }); drawTable(); } });
    note.value = m && m.note ? m.note : "";
    const td = el("td", { colspan: width },
      el("p", null, "The model gives other labels ", el("strong", null, percent(D.model[r])), "; ", el("strong", null, percent(D.near[r])), " of the neighbours carry one."),
      el("p", { class: "bar" }, el("label", null, "Mark as wrong, to be replaced by ", pick), note, m && m.reviewer ? el("span", { class: "hint" }, "marked by " + m.reviewer) : null),
      P ? el("div", { class: "figures" }, original(r), ...twins.slice(0, 5).map(original)) : null,
      D.columns.length ? cellsOf(r) : null,
      twins.length ? el("h3", null, "Nearly equal rows with another label") : null, twins.length ? rowsTable(twins, r, "equal row") : null,
      el("h3", null, "Nearest rows"), rowsTable(D.neighbours[r], r, "neighbour"));
    return el("tr", { class: "detail" }, td);
  };
  const drawTable = () => {
    const part = document.createDocumentFragment();
    for (const r of shown()) { part.append(rowNode(r)); if (r === state.open) part.append(detailNode(r)); }
    if (!list.length) part.append(el("tr", null, el("td", { colspan: width }, "No row fits these filters.")));
    const focus = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.focus : null;
    body.replaceChildren(part);
    if (focus) { const again = [...body.querySelectorAll("[data-focus]")].find((e) => e.dataset.focus === focus); if (again) again.focus({ preventScroll: true }); }
    $("count").textContent = list.length.toLocaleString("en") + " of " + n.toLocaleString("en") + " rows";
    $("page").textContent = "page " + (state.page + 1) + " of " + pages();
    for (const id of ["first", "prev"]) $(id).disabled = state.page === 0;
    for (const id of ["next", "last"]) $(id).disabled = state.page >= pages() - 1;
    const told = { wrong: 0, right: 0, unsure: 0 }; for (const m of marks.values()) told[m.mark]++;
    $("marks").textContent = marks.size ? told.wrong + " marked wrong, " + told.right + " right" + (told.unsure ? ", " + told.unsure + " unsure" : "") : "nothing marked yet";
    $("download").disabled = $("forget").disabled = !marks.size;
    document.querySelectorAll("#table th[data-key]").forEach((th) => {
      if (th.dataset.key === state.sort) th.setAttribute("aria-sort", state.down ? "descending" : "ascending"); else th.removeAttribute("aria-sort");
    });
  };
  const turn = (page) => { state.page = Math.min(Math.max(page, 0), pages() - 1); state.open = -1; const s = shown(); state.selected = s.length ? s[0] : -1; drawTable(); };
  const move = (by) => {
    if (!list.length) return;
    let at = list.indexOf(state.selected) + by;
    at = Math.min(Math.max(at, 0), list.length - 1);
    state.selected = list[at]; state.page = Math.floor(at / size()); state.open = state.open >= 0 ? state.selected : -1;
    drawTable();
    const node = body.querySelector("tr.selected"); if (node) node.scrollIntoView({ block: "nearest" });
  };

  // ---- map ----
  const canvas = $("map"), tip = $("tip");
  const colour = (s) => { const stops = [[127, 155, 179], [224, 160, 60], [201, 40, 28]], f = s < 0.5 ? 0 : 1, t = s < 0.5 ? 2 * s : 2 * s - 1; return "rgb(" + [0, 1, 2].map((i) => Math.round(stops[f][i] + t * (stops[f + 1][i] - stops[f][i]))).join(",") + ")"; };
  const byS = Uint32Array.from(D.score.keys()).sort((a, b) => D.score[a] - D.score[b]);
  let W = 0, H = 0, grid = null;
  const px = (r) => 12 + D.x[r] * (W - 24), py = (r) => H - 12 - D.y[r] * (H - 24);
  const drawMap = () => {
    const ratio = window.devicePixelRatio || 1;
    W = canvas.clientWidth; H = canvas.clientHeight;
    canvas.width = W * ratio; canvas.height = H * ratio;
    const g = canvas.getContext("2d"); g.scale(ratio, ratio); g.clearRect(0, 0, W, H);
    const small = n > 5000 ? 1.2 : n > 1000 ? 1.8 : 2.6;
    for (const r of byS) {
      const s = D.score[r]; g.globalAlpha = listed[r] ? 0.45 + 0.5 * s : 0.07; g.fillStyle = colour(s);
      const size = small * (1 + s); g.fillRect(px(r) - size, py(r) - size, 2 * size, 2 * size);
    }
    grid = new Map();
    for (let r = 0; r < n; r++) { const k = (px(r) >> 4) * 4096 + (py(r) >> 4); const c = grid.get(k); if (c) c.push(r); else grid.set(k, [r]); }
    if (state.selected >= 0) { g.globalAlpha = 1; g.strokeStyle = getComputedStyle(document.body).color; g.lineWidth = 2; g.beginPath(); g.arc(px(state.selected), py(state.selected), 7, 0, 7); g.stroke(); }
  };
  const nearest = (mx, my) => {
    let best = -1, dist = 14 * 14;
    for (let i = (mx >> 4) - 1; i <= (mx >> 4) + 1; i++) for (let j = (my >> 4) - 1; j <= (my >> 4) + 1; j++)
      for (const r of grid.get(i * 4096 + j) || []) { const d = (px(r) - mx) ** 2 + (py(r) - my) ** 2 - (listed[r] ? 20 : 0) - 10 * D.score[r]; if (d < dist) { dist = d; best = r; } }
    return best;
  };
  canvas.addEventListener("mousemove", (e) => {
    const box = canvas.getBoundingClientRect(), r = nearest(e.clientX - box.left, e.clientY - box.top);
    tip.hidden = r < 0; if (r < 0) return;
    tip.textContent = "row " + idOf(r) + ": " + D.classes[D.given[r]] + (D.flagged[r] ? " → " + D.classes[D.suggested[r]] : "") + ", score " + score(D.score[r]) + (D.columns.length ? ". " + brief(r, 90) : "");
    tip.style.left = Math.min(px(r) + 12, Math.max(0, W - 270)) + "px"; tip.style.top = py(r) + 14 + "px"; tip.dataset.row = r;
  });
  canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", (e) => {
    const box = canvas.getBoundingClientRect(), r = nearest(e.clientX - box.left, e.clientY - box.top);
    if (r >= 0) openRow(r);
  });
  $("map-note").textContent = (n < D.total ? "The rows of this page as dots" : "Every row as a dot") + ", placed by " + D.map + ". Choose a dot to open its row.";

  // ---- side panels ----
  const choose = (id, v) => { $(id).value = v; };
  const confusion = () => {
    const t = $("confusion"), m = D.classes.length; let most = 1;
    for (const row of D.confusion) for (const c of row) most = Math.max(most, c);
    // Many classes: only those that occur among flagged rows.
    let used = [...Array(m).keys()].filter((i) => m <= 12 || D.confusion[i].some(Boolean) || D.confusion.some((row) => row[i]));
    if (!used.length) used = [...Array(Math.min(m, 12)).keys()];
    t.append(el("thead", null, el("tr", null, el("th", null, ""), ...used.map((j) => el("th", null, D.classes[j])))));
    const b = el("tbody");
    for (const i of used) b.append(el("tr", null, el("th", null, D.classes[i]), ...used.map((j) => {
      const c = D.confusion[i][j]; if (i === j) return el("td", null, "·");
      return el("td", { style: c ? "background: color-mix(in srgb, var(--hot) " + Math.round(10 + 45 * c / most) + "%, transparent)" : "" }, el("button", { type: "button", "data-cell": i + "-" + j, onclick: () => { clear(); choose("f-given", i); choose("f-suggested", j); select(); $("ranked").scrollIntoView(); } }, String(c)));
    })));
    t.append(b);
  };
  const groups = () => {
    if (!D.groups) return;
    const b = el("tbody"), fits = D.groups.length && "fit" in D.groups[0];
    D.groups.slice(0, 200).forEach((g) => b.append(el("tr", null, el("td", null, el("button", { type: "button", onclick: () => { clear(); choose("f-group", D.groupNames.indexOf(g.group)); select(); $("ranked").scrollIntoView(); } }, g.group)), el("td", null, g.rows.toLocaleString("en")), el("td", null, String(g.flagged)), el("td", null, (100 * g.rate).toFixed(1) + " %"), el("td", null, g.ratio.toFixed(2) + " ×"), ...(fits ? [el("td", null, g.fit === null ? "" : Math.round(100 * g.low) + " to " + Math.round(100 * g.high) + " %")] : []))));
    $("groups").append(el("thead", null, el("tr", null, ...["source", "rows", "flagged", "share", "against average", ...(fits ? ["labels that fit"] : [])].map((t) => el("th", null, t)))), b);
  };

  // ---- download ----
  const quote = (t) => (/[",\r\n]/.test(t) ? '"' + t.replaceAll('"', '""') + '"' : t);
  // A spreadsheet must not run a cell as a formula; `floral audit` takes the apostrophe away again.
  const number = /^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
  const formula = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;
  const cell = (t) => quote(formula.test(t) && !number.test(t) ? "'" + t : t);
  const uncell = (t) => (t.startsWith("'") && formula.test(t) ? t.slice(1) : t);
  const line = ([r, m]) => [D.rows[r], idOf(r), givenOf(r), m.mark, m.mark === "wrong" ? D.classes[m.label] : givenOf(r), m.reviewer || "", m.note || ""].map((t) => cell(String(t))).join(",");
  const decisions = () => ["row,id,given,decision,label,reviewer,note", ...[...marks].sort((a, b) => a[0] - b[0]).map(line)].join("\n") + "\n";
  const parse = (text) => {  // RFC 4180
    const out = [[]]; let field = "", quoted = false;
    for (let i = 0; i < text.length; i++) {
      const c = text[i];
      if (quoted) { if (c === '"') { if (text[i + 1] === '"') { field += c; i++; } else quoted = false; } else field += c; }
      else if (c === '"') quoted = true;
      else if (c === ",") { out[out.length - 1].push(field); field = ""; }
      else if (c === "\n") { out[out.length - 1].push(field); field = ""; out.push([]); }
      else if (c !== "\r") field += c;
    }
    if (field || out[out.length - 1].length) out[out.length - 1].push(field); else out.pop();
    return out;
  };
  const load = (text) => {
    const [head, ...lines] = parse(text.replace(/^\ufeff/, ""));
    const at = Object.fromEntries((head || []).map((name, i) => [name, i]));
    if (!["row", "given", "decision", "label"].every((name) => name in at)) return "This is not a list of decisions: it needs the columns row, given, decision and label.";
    const place = new Map(D.rows.map((row, r) => [row, r]));
    let taken = 0, other = 0;
    for (const cells of lines) {
      const get = (name) => uncell(cells[at[name]] || "");
      const r = place.get(+get("row")), mark = get("decision");
      if (r === undefined || !["wrong", "right", "unsure"].includes(mark) || get("given") !== givenOf(r) || (mark === "wrong" && !classOf.has(get("label")))) { other++; continue; }
      marks.set(r, { mark, label: mark === "wrong" ? classOf.get(get("label")) : D.suggested[r], reviewer: "reviewer" in at ? get("reviewer") : "", note: "note" in at ? get("note") : "", given: get("given") });
      taken++;
    }
    keep(); select();
    return taken + " decisions loaded" + (other ? ", " + other + " left out: they do not fit the rows of this page" : "") + ".";
  };
  $("load").addEventListener("change", (e) => {
    const file = e.target.files[0]; if (!file) return;
    file.text().then((text) => { $("loaded").textContent = load(text); e.target.value = ""; });
  });
  $("reviewer").value = recall("floral-audit-reviewer", "");
  $("reviewer").addEventListener("change", () => keepText("floral-audit-reviewer", reviewer()));
  $("download").addEventListener("click", () => {
    const a = el("a", { href: URL.createObjectURL(new Blob([decisions()], { type: "text/csv" })), download: "decisions.csv" });
    document.body.append(a); a.click(); a.remove(); setTimeout(() => URL.revokeObjectURL(a.href), 5000);
  });
  $("forget").addEventListener("click", () => { if (confirm("Forget all " + marks.size + " marks?")) { marks.clear(); keep(); select(); } });
  $("mark-all").addEventListener("click", () => {
    const rows = [...list].filter((r) => D.flagged[r] && !marks.has(r));
    if (!rows.length) { alert("No unmarked row in this list is flagged."); return; }
    if (confirm("Mark " + rows.length + " rows as wrong?")) { for (const r of rows) change(r, { mark: "wrong" }); drawTable(); }
  });

  // ---- controls ----
  const fill = (id, names) => { const s = $(id); if (!s) return; s.append(el("option", { value: "" }, "any")); names.forEach((t, i) => s.append(el("option", { value: i }, t))); };
  fill("f-given", D.classes); fill("f-suggested", D.classes); fill("f-reason", D.reasons); if (D.groupNames) fill("f-group", D.groupNames);
  const filters = ["f-given", "f-suggested", "f-reason", "f-group", "f-mark"].filter($);
  const clear = () => { $("search").value = ""; for (const id of filters) $(id).value = ""; select(); };
  for (const id of filters) $(id).addEventListener("change", select);
  let wait = 0;
  $("search").addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(select, 120); });
  $("clear").addEventListener("click", clear);
  $("size").addEventListener("change", () => turn(0));
  $("first").addEventListener("click", () => turn(0)); $("prev").addEventListener("click", () => turn(state.page - 1));
  $("next").addEventListener("click", () => turn(state.page + 1)); $("last").addEventListener("click", () => turn(pages() - 1));
  document.querySelectorAll("#table th[data-key] button").forEach((b) => b.addEventListener("click", () => {
    const key = b.parentNode.dataset.key;
    if (state.sort === key) state.down = !state.down; else { state.sort = key; state.down = key === "score" || key === "why"; }
    select();
  }));
  $("keys").checked = recall("floral-audit-keys", "on") === "on";
  $("keys").addEventListener("change", () => keepText("floral-audit-keys", $("keys").checked ? "on" : "off"));
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = /INPUT|SELECT|TEXTAREA/.test(e.target.tagName);
    if (e.key === "Escape") { if (typing) e.target.blur(); state.open = -1; drawTable(); return; }
    if (typing || !$("keys").checked) return;
    const onButton = e.target.tagName === "BUTTON" || e.target.tagName === "SUMMARY";
    const act = { j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1), n: () => turn(state.page + 1), p: () => turn(state.page - 1), "/": () => $("search").focus(),
      w: () => state.selected >= 0 && setMark(state.selected, "wrong"), r: () => state.selected >= 0 && setMark(state.selected, "right"), s: () => state.selected >= 0 && setMark(state.selected, "unsure"), u: () => state.selected >= 0 && setMark(state.selected, null),
      Enter: onButton ? null : () => { state.open = state.open === state.selected ? -1 : state.selected; drawTable(); } }[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  const theme = (t) => { document.documentElement.dataset.theme = t; $("theme").textContent = t === "dark" ? "Light" : "Dark"; };
  theme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  $("theme").addEventListener("click", () => { theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); drawMap(); });
  let again = 0;
  window.addEventListener("resize", () => { clearTimeout(again); again = setTimeout(drawMap, 100); });
  confusion(); groups(); select();
  if (P) sheets();
  document.documentElement.dataset.ready = "yes";
})();
