// Sections of the conversation: the seed, each attempt at a task, the stops and
// resumes between them. Only the index is needed to find them. The events of parallel
// tasks alternate in the record.

const UNUSED = { calls: 0, p: 0, e: 0, c: 0, cost: 0 }; // usage of a role: prompt, answer, cached

const groups = {
  folded: false, // a section was superseded since the last rebuild

  clear() {
    this.all = [];
    this.of = []; // event → number of its section
    this.at = new Map(); // task → its section in the current run
    this.calls = []; // every model call: {i, role, p}
    this.totals = new Map(); // role → {calls, p, e, c, cost}
    this.taskInfo = new Map(); // task id → figures over all its attempts
    this.attempts = new Map(); // task id → number of attempts
    this.backs = []; // rewinds and undos: {i, from, tasks}, from the first event that each superseded, of these tasks
    this.lastStop = null;
    this.started = 0; // of the latest start or resume
    this.done = 0; // events processed
  },

  // update processes new events.
  update() {
    for (; this.done < rec.count; this.done++) this.take(this.done);
  },

  take(i) {
    const type = typeAt(i);
    const task = taskAt(i);
    const f = factAt(i);
    let g = this.all[this.of[i - 1]];
    if (type === "session_start") {
      g = this.open(i, str(f.ph) === "prep-feature" ? "seed" : "start");
      this.started = rec.at[i];
      this.lastStop = null;
    } else if (type === "session_resume") {
      g = this.open(i, "resume");
      this.started = rec.at[i];
      this.lastStop = null;
    } else if (type === "session_rewound" || type === "session_undone") {
      g = this.open(i, "back");
      if (num(f.b)) this.wentBack(i, f.b - 1, str(f.m).split(" "));
    } else if (type === "stop") {
      g = this.open(i, "stop");
      g.reason = str(f.why);
      this.lastStop = { i, reason: g.reason, at: rec.at[i] };
    } else if (task) {
      g = this.at.get(task);
      if (!g || (type === "context_reset" && g.worked)) {
        g = this.open(i, "task");
        g.task = task;
        g.attempt = (this.attempts.get(task) || 0) + 1;
        this.attempts.set(task, g.attempt);
        this.at.set(task, g);
      }
    } else if (!g) {
      g = this.open(i, "start");
    }
    this.of.push(g.n);
    g.size++;
    g.until = rec.at[i];
    if (type !== "context_reset") g.worked = true;
    this.figures(i, type, task || g.task || "", f, g);
  },

  // wentBack marks superseded sections: those of the changed tasks, and those of no
  // task. A rewind or undo that is itself superseded has no effect.
  wentBack(i, from, tasks) {
    this.backs.push({ i, from, tasks: ["", ...tasks] });
    this.folded = true;
    for (const g of this.all) g.superseded = false;
    const ends = new Map(); // task → the first event that is superseded
    for (const b of this.backs.toReversed()) {
      const moved = new Set(b.tasks.filter((task) => b.i < (ends.get(task) ?? Infinity)));
      for (const g of this.all) {
        if (g.start >= b.from && g.start < b.i && moved.has(g.task)) g.superseded = true;
      }
      for (const task of moved) ends.set(task, b.from);
    }
  },

  open(i, kind) {
    if (kind !== "task") this.at.clear();
    const g = {
      n: this.all.length, kind, start: i, size: 0, from: rec.at[i], until: rec.at[i], task: "", attempt: 0, worked: false, reason: "",
      superseded: false,
      iters: [], verdicts: [], outcome: "", outcomeAt: -1, tokens: 0, cost: 0, tools: 0,
    };
    this.all.push(g);
    return g;
  },

  figures(i, type, task, f, g) {
    const n = rec.iter[i];
    if (task && n > 0 && g.kind === "task" && (g.iters.length === 0 || g.iters[g.iters.length - 1].n < n)) {
      g.iters.push({ n, i, at: rec.at[i] });
    }
    const t = this.infoOf(task);
    switch (type) {
      case "model_call":
        this.call(i, f, g, t);
        break;
      case "tool_call":
        g.tools++;
        break;
      case "pre_tool_block":
        t.blocks++;
        break;
      case "validator_run":
        if (f.f) t.failedChecks++;
        break;
      case "evaluator_verdict":
        g.verdicts.push({ i, at: rec.at[i], accept: f.v === "accept" });
        f.v === "accept" ? t.accepts++ : t.rejects++;
        break;
      case "task_done":
      case "task_failed":
        g.outcome = type === "task_done" ? "done" : "failed";
        g.reason = str(f.why);
        g.outcomeAt = i;
        t.outcome = g.outcome;
        t.reason = g.reason;
        break;
    }
    t.iterations = Math.max(t.iterations, g.iters.length ? g.iters[g.iters.length - 1].n : 0);
  },

  call(i, f, g, t) {
    const role = roleOf(str(f.ph));
    const tokens = Math.max(0, num(f.p) - num(f.c)) + num(f.e); // as the cap counts them
    this.calls.push({ i, role, p: num(f.p) });
    const r = this.totals.get(role) || { ...UNUSED };
    this.totals.set(role, r);
    r.calls++;
    for (const k of ["p", "e", "c"]) r[k] += num(f[k]);
    r.cost += num(f.$);
    g.tokens += tokens;
    g.cost += num(f.$);
    t.tokens += tokens;
    t.cost += num(f.$);
  },

  // infoOf returns the counters of a task. Counters without a task are discarded.
  infoOf(task) {
    let t = this.taskInfo.get(task);
    if (!t) {
      t = { iterations: 0, accepts: 0, rejects: 0, failedChecks: 0, blocks: 0, tokens: 0, cost: 0, outcome: "", reason: "" };
      if (task) this.taskInfo.set(task, t);
    }
    return t;
  },

  // before returns the previous event of the same section, or -1.
  before(i) {
    if (this.all[this.of[i]]?.start === i) return -1;
    let k = i - 1;
    while (k >= 0 && this.of[k] !== this.of[i]) k--;
    return k;
  },
};
groups.clear();

// planOf returns the tasks of the plan in order, then tasks that are only in the record.
function planOf() {
  const out = [];
  const seen = new Set();
  for (const t of list(rec.head.tasks)) {
    if (!isObject(t)) continue;
    const id = str(t.id);
    seen.add(id);
    out.push({ id, title: str(t.title), description: str(t.description), criteria: list(t.acceptance_criteria), status: str(t.status) || "pending" });
  }
  for (const id of groups.taskInfo.keys()) {
    if (!seen.has(id)) out.push({ id, title: "", description: "", criteria: [], status: groups.taskInfo.get(id).outcome || "pending" });
  }
  return out;
}

let titles = { of: null, map: new Map() };

function titleOf(task) {
  if (titles.of !== rec.head.tasks) {
    titles = { of: rec.head.tasks, map: new Map() };
    for (const t of list(rec.head.tasks)) if (isObject(t)) titles.map.set(t.id, str(t.title));
  }
  return titles.map.get(task) || "";
}

function because(reason) {
  return REASONS.get(reason) || reason || "unknown";
}

function groupTitle(g) {
  switch (g.kind) {
    case "seed":
      return "Seed";
    case "start":
      return "Run";
    case "resume":
      return "Resumed";
    case "stop":
      return "Stop";
    case "back":
      return typeAt(g.start) === "session_undone" ? "Undone" : "Rewound";
  }
  return g.task + (g.attempt > 1 ? " · attempt " + g.attempt : "");
}
