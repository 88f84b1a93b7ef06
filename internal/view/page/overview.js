// The overview above the conversation.

// A panel is redrawn only when its data has changed, so that a live page keeps its
// scroll position and expanded parts.
const PANELS = [
  ["problems", "", () => list(rec.head.problems), problems],
  ["unreadable", "", () => num(rec.head.unreadable), unreadable],
  ["caps", "Caps", () => [rec.head.summary?.limits, totalTokens(), totalCost(), rec.count, rec.head.running && Date.now() >> 12], capMeters],
  ["usage", "Tokens and cost", () => usageRows(), usageTable],
  ["tasks", "Tasks over time", () => [rec.head.tasks, rec.count], timeline],
  ["prompts", "Prompt size per call", () => groups.calls.length, promptChart],
  ["told", "Task list", () => [planOf().map((t) => [t.id, t.title, t.description, t.criteria]), // statuses are not shown here
    ...["tldr", "open_questions", "blockers", "scope_notes"].map((k) => rec.head[k])], told],
];

const overview = {
  drawn: new Map(), // panel → {key, node}

  draw() {
    const root = document.getElementById("overview");
    let at = root.firstChild;
    for (const [id, title, sees, make] of PANELS) {
      const key = JSON.stringify(sees());
      let p = this.drawn.get(id);
      if (!p || p.key !== key) {
        const body = make();
        const node = body && title ? panel(title, id, body) : body;
        if (p?.node) {
          if (at === p.node) at = at.nextSibling;
          p.node.remove();
        }
        if (node) root.insertBefore(node, at);
        p = { key, node };
        this.drawn.set(id, p);
      } else if (p.node) {
        at = p.node.nextSibling;
      }
    }
    masthead();
  },
};

function panel(title, id, body) {
  const h = el("h2", "", title);
  h.id = "h-" + id;
  const s = el("section", "panel " + id, h, body);
  s.setAttribute("aria-labelledby", h.id);
  return s;
}

function masthead() {
  const s = rec.head.session || {};
  const plan = planOf();
  const done = plan.filter((t) => t.status === "done").length;
  const failed = plan.filter((t) => t.status === "failed");
  const [state, sentence] = verdictOf(s, plan, done, failed);
  const mast = document.querySelector(".mast");
  mast.dataset.state = state;
  const title = str(s.label) || str(rec.head.tldr).replace(/^#+\s*/, "") || plan.map((t) => t.title).filter(Boolean)[0] || str(s.id);
  const told = document.getElementById("morning") ? document.getElementById("headline").textContent : "";
  document.title = (told || sentence) + " · " + oneLine(title, 60);
  document.getElementById("where").replaceChildren(
    el("span", "", str(s.source).split("/").filter(Boolean).pop() || ""), " ", el("code", "", str(s.branch)));
  if (told) return; // the report has the rest
  document.getElementById("headline").replaceChildren(el("span", "state", sentence));
  const facts = [oneLine(title, 140)];
  if (rec.count) {
    facts.push(day(rec.at[0]) + ", " + clock(rec.at[0], false) + " – " + clock(rec.at[rec.count - 1], false));
    facts.push(span(activeTime()) + " of work");
  }
  const now = rec.head.running ? list(rec.head.doing) : [];
  for (const doing of now) facts.push("now " + (now.length > 1 ? str(doing.task) + " " : "") + oneLine(str(doing.what), 80) + " for " + span(Math.max(0, Date.now() - num(doing.since))));
  facts.push(plural(totalTokens(), "token"));
  const cached = [...groups.totals.values()].reduce((n, r) => n + r.c, 0);
  if (cached) facts.push(count(cached) + " more from the provider's cache");
  if (totalCost() > 0) facts.push(money(totalCost()));
  const m = isObject(rec.head.summary?.models) ? rec.head.summary.models : {};
  const models = [...new Set([str(m.worker), str(m.evaluator)].filter(Boolean))];
  if (models.length) facts.push(models.join(", reviewed by "));
  document.getElementById("facts").replaceChildren(...facts.filter(Boolean).map((f) => el("span", "", f)));
}

function verdictOf(s, plan, done, failed) {
  const of = done + " of " + plural(plan.length, "task") + " done";
  const stop = groups.lastStop;
  if (rec.head.running) return ["running", plan.length ? "Running: " + of : "Running"];
  const skipped = plan.filter((t) => t.status === "skipped").length;
  if (done + skipped === plan.length && (plan.length || stop?.reason === "all_done")) {
    if (skipped) return ["good", "Finished: " + of + ", " + skipped + " skipped"];
    return ["good", "Finished: " + (plan.length === 1 ? "the task is done" : "all " + plan.length + " tasks done")];
  }
  if (failed.length) {
    if (failed.length > 1) return ["bad", plural(failed.length, "task") + " failed. " + of];
    const why = groups.taskInfo.get(failed[0].id)?.reason;
    return ["bad", failed[0].id + " failed" + (why ? ": " + because(why) : "") + ". " + of];
  }
  if (stop) return ["warn", "Stopped: " + because(stop.reason) + ". " + of];
  if (str(s.status) === "prepared") return ["idle", "Prepared: " + plural(plan.length, "task") + ", not run yet"];
  return ["warn", (rec.count ? "Crashed: no stop was recorded. " : "No events yet. ") + (plan.length ? of : "")];
}

// activeTime excludes the time between a stop and its resume, and counts parallel work once.
function activeTime() {
  let ms = 0;
  let end = 0;
  for (const g of groups.all.filter((g) => g.kind !== "stop").sort((a, b) => a.from - b.from)) {
    ms += Math.max(0, g.until - Math.max(g.from, end));
    end = Math.max(end, g.until);
  }
  return ms;
}

function totalTokens() {
  // The checkpoint is written at a task's end, the record at each call.
  const used = Math.max(num(rec.head.session?.tokens_used), num(rec.head.summary?.tokens?.total));
  if (used) return used;
  let n = 0;
  for (const r of groups.totals.values()) n += Math.max(0, r.p - r.c) + r.e;
  return n;
}

function totalCost() {
  let n = 0;
  for (const r of usageRows()) n += r.cost;
  return n;
}

// usageRows prefers the totals of the checkpoint: they include agent programs, which do
// not record each call.
function usageRows() {
  const stored = isObject(rec.head.usage) ? rec.head.usage : {};
  const rows = [];
  for (const [role, name] of ROLES) {
    const u = isObject(stored[role]) ? stored[role] : {};
    const t = groups.totals.get(role) || UNUSED;
    const row = {
      role, name,
      calls: Math.max(num(u.calls), t.calls),
      p: Math.max(num(u.prompt), t.p),
      e: Math.max(num(u.eval), t.e),
      c: Math.max(num(u.cached), t.c),
      cost: Math.max(num(u.cost), t.cost),
    };
    if (row.calls || row.p || row.e) rows.push(row);
  }
  return rows;
}

function usageTable() {
  const rows = usageRows();
  if (!rows.length) return null;
  const most = Math.max(...rows.map((r) => r.p + r.e));
  const figures = (r) => [count(r.calls), count(r.p), r.p ? Math.round((100 * r.c) / r.p) + "%" : "–", count(r.e), r.cost ? money(r.cost) : "–"];
  const t = el("table", "figures");
  t.appendChild(el("thead", "", tr("th", "Role", "Calls", "Prompt", "Cached", "Answer", "Cost")));
  const body = el("tbody");
  for (const r of rows) {
    const name = el("span", "role " + r.role, r.name);
    const bar = el("span", "bar-of");
    bar.style.setProperty("--part", String(most ? (r.p + r.e) / most : 0));
    bar.classList.add(r.role);
    const row = tr("td", "", ...figures(r));
    const th = el("th", "", name, bar);
    th.scope = "row";
    row.replaceChild(th, row.firstChild);
    body.appendChild(row);
  }
  const all = { ...UNUSED };
  for (const k in all) all[k] = rows.reduce((a, r) => a + r[k], 0);
  t.append(body, el("tfoot", "", tr("td", "All", ...figures(all))));
  return el("div", "scroll", t);
}

function tr(cell, ...texts) {
  const row = el("tr");
  texts.forEach((x, i) => {
    const c = el(cell, i ? "n" : "", x);
    if (cell === "th") c.scope = "col";
    row.appendChild(c);
  });
  return row;
}

// capMeters shows the used part of each cap of the last start.
function capMeters() {
  const limits = rec.head.summary?.limits;
  if (!isObject(limits)) return null;
  const most = (k) => Math.max(0, ...[...groups.taskInfo.values()].map((t) => t[k]));
  const now = groups.lastStop ? groups.lastStop.at : rec.head.running ? Date.now() : rec.at[rec.count - 1];
  const latest = rec.count ? now - (groups.started || rec.at[0]) : 0;
  const caps = [
    ["Time since the last start", latest, num(limits.max_wall_clock_minutes) * 60000, span],
    ["Tokens", totalTokens(), num(limits.max_tokens), count],
    ["Dollars", totalCost(), num(limits.max_cost), money],
    ["Iterations, highest task", most("iterations"), num(limits.max_iterations_per_task), full],
    ["Reviews, highest task", Math.max(0, ...[...groups.taskInfo.values()].map((t) => t.accepts + t.rejects)),
      num(limits.max_evaluator_calls_per_task), full],
  ].filter((c) => c[2] > 0);
  if (!caps.length) return el("p", "dim", "No cap was set.");
  const shares = caps.map((c) => c[1] / c[2]);
  const closest = shares.indexOf(Math.max(...shares));
  const dl = el("div", "meters");
  caps.forEach(([name, used, cap, fmt], i) => {
    const part = Math.min(1, used / cap);
    const level = part >= 0.9 ? "bad" : part >= 0.7 ? "warn" : "good";
    const m = el("div", "meter " + level);
    m.setAttribute("role", "meter");
    m.setAttribute("aria-label", name);
    m.setAttribute("aria-valuemin", "0");
    m.setAttribute("aria-valuemax", "100");
    m.setAttribute("aria-valuenow", String(Math.round(part * 100)));
    m.setAttribute("aria-valuetext", fmt(used) + " of " + fmt(cap));
    const fill = el("span", "fill");
    fill.style.width = part * 100 + "%";
    m.appendChild(fill);
    const close = i === closest && part >= 0.5 ? el("span", "tag " + level, "closest") : null;
    dl.appendChild(el("div", "cap", el("span", "name", name, close), el("span", "value", fmt(used), el("span", "dim", " of " + fmt(cap) + " · " + Math.round((100 * used) / cap) + "%")), m));
  });
  return dl;
}

function told() {
  const h = rec.head;
  const plan = planOf().filter((t) => t.title || t.description);
  if (!plan.length && !h.tldr) return null;
  const box = el("div");
  if (h.tldr) box.appendChild(el("p", "tldr", str(h.tldr).replace(/^#+\s*/, "")));
  for (const [key, name] of [["open_questions", "Open questions"], ["blockers", "Blockers"], ["scope_notes", "Scope"]]) {
    const v = h[key];
    const items = Array.isArray(v) ? v : v ? [v] : [];
    if (!items.length) continue;
    box.append(el("h3", "", name), el("ul", "", ...items.map((x) => el("li", "", words(x)))));
  }
  for (const t of plan.slice(0, 500)) {
    const d = el("details", "brief", el("summary", "", el("b", "", t.id), " ", t.title));
    const fill = () => {
      if (d.childElementCount > 1) return;
      if (t.description) d.appendChild(prose(t.description));
      if (t.criteria.length) d.append(el("h3", "", "Accepted when"), el("ul", "", ...t.criteria.map((c) => el("li", "", words(c)))));
    };
    d.addEventListener("toggle", fill);
    box.appendChild(d);
  }
  return box;
}

function unreadable() {
  const n = num(rec.head.unreadable);
  if (!n) return null;
  return el("p", "notice", plural(n, "line") + " of the record " + (n === 1 ? "is" : "are") + " not JSON and " + (n === 1 ? "was" : "were") + " left out");
}

function problems() {
  const all = list(rec.head.problems);
  if (!all.length) return null;
  return el("div", "notice", el("p", "", "Some of the session's files could not be read:"), ...all.map((p) => el("pre", "", str(p))));
}

function link(i, text, cls) {
  const a = el("a", cls || "", text);
  a.href = "#e" + i;
  return a;
}

function button(text, act) {
  const b = el("button", "quiet", text);
  b.type = "button";
  b.addEventListener("click", () => act(b));
  return b;
}
