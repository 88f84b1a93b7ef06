// The record in the page: a row of small values for each event, and the events as
// text, which is parsed when an event comes into view.

const rec = {
  head: {},
  type: [],
  task: [],
  iter: [],
  at: [],
  facts: new Map(),
  cut: new Map(),
  blocks: [],
  get count() {
    return this.type.length;
  },
  clear() {
    this.type.length = this.task.length = this.iter.length = this.at.length = 0;
    this.facts.clear();
    this.cut.clear();
    this.blocks.length = 0;
    parsed.clear();
  },
};

const parsed = new Map(); // block number → its events, the latest few
const KEEP_PARSED = 32;

// addBlock takes a block's index and a function that gives its events' text.
function addBlock(index, text) {
  const start = rec.count;
  let at = num(index.t0);
  for (let i = 0; i < index.n; i++) {
    at += index.dt[i];
    rec.type.push(str(index.names[index.type[i]]));
    rec.task.push(str(index.tasks[index.task[i]]));
    rec.iter.push(index.iter[i]);
    rec.at.push(at);
  }
  for (const [i, f] of list(index.facts)) rec.facts.set(start + i, f);
  for (const [i, n] of list(index.cut)) rec.cut.set(start + i, n);
  rec.blocks.push({ start, n: index.n, text });
  return start;
}

// first returns the lowest number below n for which a monotonic condition holds, or n.
function first(n, holds) {
  let lo = 0;
  while (lo < n) {
    const mid = (lo + n) >> 1;
    if (holds(mid)) n = mid;
    else lo = mid + 1;
  }
  return lo;
}

// lastBegun returns the index of the last part that begins at or before i, or 0.
function lastBegun(parts, begin, i) {
  return Math.max(0, first(parts.length, (k) => parts[k][begin] > i) - 1);
}

// parse parses JSON, and returns otherwise for invalid JSON.
function parse(text, otherwise) {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}

function eventsOf(b) {
  const got = parsed.get(b) || parse(rec.blocks[b].text(), []);
  if (!parsed.delete(b) && parsed.size >= KEEP_PARSED) parsed.delete(parsed.keys().next().value);
  parsed.set(b, got);
  return got;
}

function eventAt(i) {
  const b = lastBegun(rec.blocks, "start", i);
  const e = eventsOf(b)[i - rec.blocks[b].start];
  return isObject(e) ? e : {};
}

function typeAt(i) {
  return rec.type[i] || "";
}

function taskAt(i) {
  return rec.task[i] || "";
}

function factAt(i) {
  return rec.facts.get(i) || {};
}

// The kinds of events, for the filter and the colours.
const KINDS = [
  ["prompt", "Prompts"],
  ["model", "Calls"],
  ["tool", "Tools"],
  ["check", "Validators"],
  ["verdict", "Verdicts"],
  ["commit", "Commits"],
  ["trouble", "Problems"],
  ["session", "Session"],
];

const KIND_OF = new Map(
  Object.entries({
    prompt_assembled: "prompt",
    memory_load: "prompt",
    context_reset: "prompt",
    nudge: "prompt",
    model_call: "model",
    tool_call: "tool",
    tool_result: "tool",
    hook_run: "tool",
    preflight: "check",
    validator_run: "check",
    evaluator_verdict: "verdict",
    commit: "commit",
    seed_committed: "commit",
    task_done: "commit",
    task_failed: "trouble",
    stop: "trouble",
    pre_tool_block: "trouble",
    log_repaired: "trouble",
    empty_model_response: "trouble",
    case_parse_error: "trouble",
    evaluator_parse_error: "trouble",
  }),
);

function kindAt(i) {
  const type = typeAt(i);
  if (type === "stop" && factAt(i).why === "all_done") return "session";
  return KIND_OF.get(type) || "session";
}

const ROLES = [
  ["worker", "Worker"],
  ["evaluator", "Reviewer"],
  ["interview", "Interview"],
  ["self_improve", "Learnings"],
];

function roleOf(phase) {
  return ROLES.some(([r]) => r === phase) ? phase : "worker";
}
