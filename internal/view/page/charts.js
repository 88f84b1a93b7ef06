// The two drawings: tasks over time, and how large each prompt was.

// timeScale maps times to 0…1 and shortens idle time (between a stop and a
// resume, or while a laptop sleeps), so that a long pause does not hide the work.
function timeScale() {
  const spans = groups.all.filter((g) => g.kind !== "stop").map((g) => [g.from, Math.max(g.until, g.from + 1)]).sort((a, b) => a[0] - b[0]);
  if (!spans.length) return null;
  const merged = [spans[0].slice()];
  for (const s of spans.slice(1)) {
    const last = merged[merged.length - 1];
    if (s[0] <= last[1] + 120000) last[1] = Math.max(last[1], s[1]);
    else merged.push(s.slice());
  }
  const work = merged.reduce((a, s) => a + s[1] - s[0], 0);
  const gap = merged.length > 1 ? Math.min(work * 0.04, (work * 0.3) / (merged.length - 1)) : 0;
  const total = work + gap * (merged.length - 1) || 1;
  const at = (t) => {
    let x = 0;
    for (const [from, to] of merged) {
      if (t <= to) return (x + Math.max(0, t - from)) / total;
      x += to - from + gap;
    }
    return 1;
  };
  let x = 0;
  const breaks = [];
  merged.forEach(([from, to], k) => {
    x += to - from;
    if (k < merged.length - 1) breaks.push({ x: (x + gap / 2) / total, ms: merged[k + 1][0] - to });
    x += gap;
  });
  return { at, breaks, from: merged[0][0], to: merged[merged.length - 1][1] };
}

function timeline() {
  const plan = planOf();
  const scale = timeScale();
  if (!plan.length || !scale) return null;
  const rows = el("ol", "furrows");
  const costly = Math.max(0, ...[...groups.taskInfo.values()].map((t) => t.tokens));
  const attempts = new Map();
  for (const g of groups.all) {
    if (g.kind !== "task") continue;
    if (!attempts.has(g.task)) attempts.set(g.task, []);
    attempts.get(g.task).push(g);
  }
  for (const t of plan.slice(0, 200)) rows.appendChild(furrow(t, attempts.get(t.id) || [], scale, costly));
  const axis = el("div", "axis");
  axis.append(el("span", "", clock(scale.from, false)), el("span", "", clock(scale.to, false)));
  const key = el("p", "key", el("span", "seed-dot", ""), "iteration", el("span", "mark accept", "✓"), "accepted", el("span", "mark reject", "✕"), "rejected", el("span", "mark fail", "■"), "failed");
  const box = el("div", "", rows, axis, key);
  if (plan.length > 200) box.appendChild(el("p", "dim", plan.length - 200 + " more tasks are in the conversation."));
  return box;
}

function furrow(t, attempts, scale, costly) {
  const info = groups.taskInfo.get(t.id);
  const track = el("span", "track");
  for (const b of scale.breaks) place(track.appendChild(el("span", "break")), b.x).title = "paused " + span(b.ms);
  for (const g of thin(attempts, 60)) {
    const bar = link(g.start, "", "stretch " + (g.outcome || "open"));
    bar.setAttribute("aria-label", groupTitle(g) + ", " + span(g.until - g.from));
    bar.tabIndex = -1;
    const x = scale.at(g.from);
    place(bar, x);
    bar.style.width = Math.max(0.2, 100 * (scale.at(g.until) - x)) + "%";
    track.appendChild(bar);
    thin(g.iters, 60).forEach((it) => place(track.appendChild(el("span", "seed-dot")), scale.at(it.at)));
    thin(g.verdicts, 60).forEach((v) => {
      const m = link(v.i, v.accept ? "✓" : "✕", "mark " + (v.accept ? "accept" : "reject"));
      m.setAttribute("aria-label", t.id + (v.accept ? " accepted" : " rejected") + " at " + clock(v.at));
      place(track.appendChild(m), scale.at(v.at));
    });
    if (g.outcome === "failed") {
      const m = link(g.outcomeAt, "■", "mark fail");
      m.setAttribute("aria-label", t.id + " failed: " + because(g.reason));
      place(track.appendChild(m), scale.at(g.until));
    }
  }
  const status = t.status === "done" ? "done" : t.status === "failed" ? "failed" : attempts.length ? "open" : "pending";
  const name = el("span", "name", el("span", "glyph " + status, { done: "✓", failed: "■", open: "…", pending: "·" }[status]), attempts.length ? link(attempts[attempts.length - 1].start, t.id) : el("b", "", t.id), " ", el("span", "title", t.title));
  const figures = [];
  if (info) {
    figures.push(plural(info.iterations, "iteration"));
    if (info.rejects) figures.push(plural(info.rejects, "rejection"));
    if (info.failedChecks) figures.push(plural(info.failedChecks, "failed check"));
    if (info.blocks) figures.push(info.blocks + " blocked");
    figures.push(count(info.tokens) + " tok");
    if (info.cost) figures.push(money(info.cost));
    figures.push(span(attempts.reduce((a, g) => a + Math.max(0, g.until - g.from), 0)));
  } else {
    figures.push(status === "pending" ? "not started" : status);
  }
  const li = el("li", "furrow " + status, name, track, el("span", "sum", ...figures.map((f) => el("span", "", f))));
  if (status === "failed" && info?.reason) li.appendChild(el("span", "why", "Failed: " + because(info.reason)));
  if (info && costly && info.tokens === costly && groups.taskInfo.size > 1) li.querySelector(".sum").prepend(el("span", "tag", "most tokens"));
  return li;
}

function place(e, x) {
  e.style.left = 100 * Math.min(1, Math.max(0, x)) + "%";
  return e;
}

// thin returns at most n marks, including the first and the last.
function thin(items, n) {
  if (items.length <= n) return items;
  const out = [];
  for (let k = 0; k < n; k++) out.push(items[Math.round((k * (items.length - 1)) / (n - 1))]);
  return out;
}

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attrs, ...kids) {
  const e = document.createElementNS(SVG, tag);
  for (const k in attrs) e.setAttribute(k, String(attrs[k]));
  e.append(...kids);
  return e;
}

function promptChart() {
  if (groups.calls.length < 2) return null;
  const box = el("figure", "chart");
  const note = el("figcaption", "dim");
  const roles = ROLES.filter(([r]) => groups.totals.has(r));
  const key = el("p", "key", ...roles.map(([r, n]) => el("span", "role " + r, n)));
  const holder = el("div", "plot");
  box.append(holder, el("div", "under", key, note));
  let width = 0;
  new ResizeObserver(() => {
    const w = Math.round(holder.clientWidth);
    if (w > 0 && w !== width) {
      width = w;
      holder.replaceChildren(drawPrompts(w, note));
    }
  }).observe(holder);
  return box;
}

// drawPrompts draws one column per call. If there are more calls than columns, a column
// shows the largest of its calls.
function drawPrompts(width, note) {
  const calls = groups.calls.toSorted((a, b) => groups.of[a.i] - groups.of[b.i]); // each task's together
  const H = 150;
  const left = 44;
  const room = Math.max(50, width - left - 2);
  const cols = Math.min(calls.length, Math.floor(room / 3));
  const bins = new Array(cols).fill(null);
  calls.forEach((c, k) => {
    const b = Math.floor((k * cols) / calls.length);
    if (!bins[b] || c.p > bins[b].p) bins[b] = { ...c, k };
  });
  const top = nice(Math.max(1, ...bins.map((b) => (b ? b.p : 0))));
  const y = (v) => H - 18 - (v / top) * (H - 30);
  const largest = bins.reduce((a, b) => (b && (!a || b.p > a.p) ? b : a), null);
  const rest = "Largest: " + full(largest.p) + " tokens, call " + full(largest.k + 1) + " of " + full(calls.length) + (taskAt(largest.i) ? ", " + taskAt(largest.i) : "");
  const g = svg("svg", { width, height: H, viewBox: `0 0 ${width} ${H}`, role: "img", "aria-label": "Prompt tokens of each model call. " + rest });
  for (const f of [0, 0.5, 1]) {
    g.append(svg("line", { x1: left, x2: width, y1: y(top * f), y2: y(top * f), class: "grid" }));
    g.append(svg("text", { x: left - 8, y: y(top * f) + 4, class: "tick", "text-anchor": "end" }, count(top * f)));
  }
  const step = room / cols;
  let task = null;
  bins.forEach((b, k) => {
    if (!b) return;
    const t = taskAt(b.i);
    if (t !== task && t) {
      task = t;
      g.append(svg("line", { x1: left + k * step, x2: left + k * step, y1: 6, y2: H - 12, class: "split" }));
      g.append(svg("text", { x: left + k * step + 3, y: H - 4, class: "tick" }, t.slice(0, 12)));
    }
    const h = Math.max(1, H - 18 - y(b.p));
    g.append(svg("rect", { x: left + k * step, y: H - 18 - h, width: Math.max(1, Math.min(14, step - 1)), height: h, class: "col " + b.role }));
  });
  tidyLabels(g);
  note.textContent = rest;
  const binAt = (ev) => bins[Math.min(cols - 1, Math.max(0, Math.floor((ev.clientX - g.getBoundingClientRect().left - left) / step)))];
  g.addEventListener("pointermove", (ev) => {
    const b = binAt(ev);
    if (b) note.textContent = "Call " + full(b.k + 1) + ": " + full(b.p) + " tokens, " + b.role.replace("_", " ") + (taskAt(b.i) ? ", " + taskAt(b.i) + (rec.iter[b.i] ? " iteration " + rec.iter[b.i] : "") : "");
  });
  g.addEventListener("pointerleave", () => (note.textContent = rest));
  g.addEventListener("click", (ev) => {
    const b = binAt(ev);
    if (b) location.hash = "#e" + b.i;
  });
  return g;
}

// tidyLabels removes task labels that would overlap the previous label.
function tidyLabels(g) {
  let edge = -Infinity;
  for (const t of [...g.querySelectorAll("text.tick:not([text-anchor])")]) {
    const x = num(Number(t.getAttribute("x")));
    if (x < edge) t.remove();
    else edge = x + t.textContent.length * 7 + 8;
  }
}

function nice(v) {
  const p = Math.pow(10, Math.floor(Math.log10(v)));
  for (const m of [1, 2, 2.5, 5, 10]) if (v <= m * p) return m * p;
  return 10 * p;
}
