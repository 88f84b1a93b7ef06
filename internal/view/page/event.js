// One event of the record as an article.

const RENDER = {
  prompt_assembled: (p, x) => [longText(x, "prompt", str(p.content), 8), cutNote(p)],
  model_call: modelCall,
  tool_call: toolCall,
  tool_result: (p, x) => [longCode(x, "result", str(p.result_preview) || words(p.result_preview), 10), num(p.result_chars) > str(p.result_preview).length ? el("p", "dim small", "The record has only the beginning of " + full(p.result_chars) + " characters.") : null],
  pre_tool_block: (p) => [el("p", "", el("code", "", str(p.tool)), " was blocked: ", str(p.reason))],
  hook_run: (p, x) => [el("p", "", el("code", "", str(p.hook)), " ", tagOf(str(p.outcome), /block|fail|refus|error/.test(str(p.outcome)) ? "bad" : "good"), p.tool ? " for " + str(p.tool) : ""), longCode(x, "reason", str(p.reason), 6)],
  validator_run: validatorRun,
  evaluator_verdict: verdict,
  ledger_appended: (p) => [el("p", "dim", words(p.verdict_summary))],
  case_parse_error: parseError,
  evaluator_parse_error: parseError,
  nudge: (p, x) => [longText(x, "nudge", str(p.content), 6)],
  task_done: (p, x) => [longText(x, "summary", str(p.summary), 12)],
  task_failed: (p, x) => [el("p", "strong", because(str(p.reason))), pairs(p, ["reason"], x)],
  stop: (p, x) => [el("p", "strong", because(str(p.reason))), pairs(p, ["reason"], x)],
  commit: commitCard,
  seed_committed: commitCard,
  memory_load: memoryLoad,
  build_products: (p) => [el("p", "", list(p.left_out).map(words).join(", ")), el("p", "dim", str(p.reason))],
  proposed_learnings: (p, x) => [p.emitted === false || !p.entry ? el("p", "dim", str(p.reason) || "No learning.") : longText(x, "entry", words(p.entry), 8)],
  session_rewound: rewound,
  session_undone: undone,
  session_resume: (p, x) => [str(p.plan) ? el("p", "", str(p.plan)) : null, pairs(p, ["plan", "session_id"], x)],
};

function rewound(p, x) {
  return [
    el("p", "strong", "Rewound to " + str(p.to)), p.note ? el("p", "", str(p.note)) : null,
    pairs(p, ["to", "note", "noted", "tasks", "counts"], x),
  ];
}

function undone(p, x) {
  return [
    el("p", "strong", "Undo " + str(words(p.undo)) + " taken back"),
    pairs(p, ["undo", "tasks", "counts", "stop"], x),
  ];
}

const QUIET = new Set(["task_id", "trace_id", "span_id", "iter"]);

function renderEvent(i) {
  const type = typeAt(i);
  let e = {};
  const a = el("article", "event " + kindAt(i) + " t-" + type.replace(/[^a-z_]/g, ""));
  a.id = "e" + i;
  a.dataset.i = String(i);
  a.tabIndex = -1;
  try {
    e = eventAt(i);
    const p = isObject(e.payload) ? e.payload : {};
    if (type === "model_call") a.classList.add("by-" + roleOf(str(p.phase)));
    if (type === "prompt_assembled") a.classList.add("by-" + roleOf(str(p.role)));
    a.append(eventHead(i, type, p));
    const x = { i, open: (part) => feed.opened.has(i + ":" + part) };
    const draw = RENDER[type];
    const kids = draw ? draw(p, x) : [pairs(isObject(e.payload) ? p : { payload: e.payload }, [], x)];
    const body = el("div", "body", ...kids.filter(Boolean));
    if (e.payload !== undefined && !isObject(e.payload) && draw) body.append(el("pre", "", words(e.payload)));
    a.append(body);
  } catch (err) {
    a.replaceChildren(el("p", "dim", "This event could not be drawn: " + err.message), el("pre", "", words(e).slice(0, 20000)));
  }
  const before = groups.before(i);
  if (rec.iter[i] > 0 && before >= 0 && rec.iter[i] !== rec.iter[before]) a.classList.add("begins");
  const cut = rec.cut.get(i);
  if (cut) a.append(el("p", "dim small", full(cut) + " bytes of this event are only in events.jsonl."));
  return a;
}

function eventHead(i, type, p) {
  const done = type === "stop" && p.reason === "all_done";
  const label = el("span", "label", done ? "Finished" : LABELS.get(type) || (Object.hasOwn(p, "text") && !type ? "Text" : type || "Event"));
  const meta = el("span", "meta");
  for (const m of metaOf(type, p)) if (m) meta.append(m instanceof Node ? m : el("span", "", m));
  const t = el("time", "", clock(rec.at[i]));
  if (rec.at[i]) t.dateTime = new Date(rec.at[i]).toISOString();
  const anchor = link(i, "#" + i, "anchor");
  anchor.setAttribute("aria-label", "Link to event " + i);
  return el("header", "", label, meta, el("span", "when", rec.iter[i] ? el("span", "", "iter " + rec.iter[i]) : null, t, anchor));
}

function metaOf(type, p) {
  switch (type) {
    case "model_call": {
      const role = roleOf(str(p.phase));
      return [
        el("span", "role " + role, (ROLES.find(([r]) => r === role) || ROLES[0])[1]),
        num(p.prompt_tokens) || num(p.eval_tokens) ? count(p.prompt_tokens) + " → " + count(p.eval_tokens) + " tokens" : "",
        num(p.cached_tokens) ? count(p.cached_tokens) + " cached" : "",
        num(p.cost) ? money(p.cost) : "",
        num(p.attempt) > 1 ? tagOf("attempt " + num(p.attempt), "warn") : null,
        str(p.health) && p.health !== "ok" ? tagOf(str(p.health), "bad") : null,
        p.finish_reason && !["stop", "tool_calls", "end_turn"].includes(p.finish_reason) ? tagOf(words(p.finish_reason), "warn") : null,
      ];
    }
    case "prompt_assembled":
      return [el("span", "role " + roleOf(str(p.role)), "for the " + (str(p.role) || "worker").replace("_", " ")), num(p.chars) ? full(p.chars) + " characters" : ""];
    case "tool_call":
    case "tool_result":
      return [el("code", "", str(p.tool)), p.is_error === true ? tagOf("error", "bad") : null];
    case "validator_run":
      return [p.passed === true ? tagOf("passed", "good") : p.passed === false ? tagOf("failed", "bad") : null, list(p.results).some((r) => isObject(r) && r.skipped === true) ? tagOf("some skipped", "warn") : null];
    case "commit":
    case "seed_committed":
      return [el("code", "", str(p.sha).slice(0, 10))];
    case "nudge":
      return [str(p.kind)];
    case "agent_session":
      return [str(p.agent)];
    case "agent_waits":
      return [str(p.who)];
    case "empty_model_response":
      return [num(p.streak) ? num(p.streak) + " in a row" : ""];
  }
  return [];
}

function tagOf(text, cls) {
  return el("span", "tag " + (cls || ""), text.replace(/_/g, " "));
}

// The members that the heading and text of a call show.
const CALL_DRAWN = ["prompt_tokens", "eval_tokens", "cached_tokens", "reasoning_tokens", "cost", "tokens_used_total", "phase", "attempt", "finish_reason",
  "content", "reasoning", "reasoning_details", "health", "chars", "truncated", "model", "role"];

function modelCall(p, x) {
  const out = [];
  const thought = str(p.reasoning) || reasoningText(p.reasoning_details);
  if (thought) out.push(folded(x, "reasoning", "Reasoning, " + full(thought.length) + " characters", () => prose(thought)));
  const said = str(p.content);
  if (said) out.push(longText(x, "content", said, 24));
  else if (!thought) out.push(el("p", "dim", "No text."));
  out.push(cutNote(p), pairs(p, CALL_DRAWN, x));
  return out;
}

function reasoningText(details) {
  return list(details).map((d) => (isObject(d) ? str(d.text) || str(d.summary) || str(d.content) : words(d))).filter(Boolean).join("\n\n");
}

function cutNote(p) {
  return p.truncated === true && num(p.chars) ? el("p", "dim small", "The record has only the beginning of " + full(p.chars) + " characters.") : null;
}

function argsOf(p) {
  const v = typeof p.args === "string" ? parse(p.args) : p.args;
  return isObject(v) ? v : null; // other values are shown unchanged
}

function toolCall(p, x) {
  const a = argsOf(p);
  if (!a) return p.args === undefined ? [] : [longCode(x, "args", words(p.args), 8)];
  const used = [];
  const out = [];
  const take = (k) => (used.push(k), words(a[k]));
  if (Object.hasOwn(a, "command")) out.push(longCode(x, "command", "$ " + take("command"), 10));
  if (Object.hasOwn(a, "path")) out.push(el("p", "path", el("code", "", take("path"))));
  if (Object.hasOwn(a, "old_string") && Object.hasOwn(a, "new_string")) {
    const lines = [...take("old_string").split("\n").map((l) => "-" + l), ...take("new_string").split("\n").map((l) => "+" + l)];
    out.push(folds(x, "edit", lines, 16, diffLines));
  }
  if (Object.hasOwn(a, "content")) out.push(longCode(x, "content", take("content"), 10));
  if (p.tool === "submit_case") out.push(...theCase(a, x, used));
  out.push(pairs(a, used, x));
  return out;
}

function theCase(a, x, used) {
  used.push("summary", "ac_coverage", "work_arounds", "uncertainties");
  const out = [longText(x, "summary", words(a.summary), 12)];
  const cover = list(a.ac_coverage).filter(isObject);
  if (cover.length) {
    const dl = el("dl", "cover");
    for (const c of cover) dl.append(el("dt", "", words(c.criterion)), el("dd", "", words(c.addressed_by), c.evidence ? el("span", "dim", " " + words(c.evidence)) : null));
    out.push(dl);
  }
  for (const [k, name] of [["work_arounds", "Work-arounds"], ["uncertainties", "Uncertainties"]]) {
    const items = list(a[k]);
    if (items.length) out.push(el("h4", "", name), el("ul", "", ...items.map((s) => el("li", "", words(s)))));
  }
  return out;
}

function validatorRun(p, x) {
  const results = list(p.results).filter(isObject);
  if (!results.length) return [el("p", "dim", str(p.note) || (p.passed === undefined ? "" : "No validators were found for this project."))];
  const ul = el("ul", "checks");
  results.forEach((r, k) => {
    const [cls, glyph, after] = r.skipped === true ? ["skipped", "–", "skipped"] : [r.passed === true ? "good" : "bad", r.passed === true ? "✓" : "✕", typeof r.seconds === "number" ? r.seconds.toFixed(1) + " s" : ""];
    const li = el("li", cls, el("span", "glyph", glyph), el("span", "", words(r.name)), el("span", "dim", after));
    const text = str(r.output);
    if (text) li.append(longCode(x, "output" + k, text, 8));
    ul.append(li);
  });
  return [ul];
}

function verdict(p, x) {
  const ok = p.verdict === "accept";
  const out = [el("p", "ruling " + (ok ? "accept" : "reject"), el("span", "glyph", ok ? "✓" : "✕"), ok ? "Accepted" : p.parse_failed === true ? "Rejected: the verdict could not be read" : "Rejected", p.rejection_category ? tagOf(str(p.rejection_category), "warn") : null)];
  if (p.summary) out.push(el("p", "dim", "Hand-in: " + oneLine(words(p.summary), 600)));
  if (p.concern) out.push(longText(x, "concern", words(p.concern), 12));
  const evidence = list(p.evidence);
  if (evidence.length) out.push(el("h4", "", "Evidence"), el("ul", "", ...evidence.map((s) => el("li", "", words(s)))));
  if (p.next_step) out.push(el("h4", "", "Next step"), longText(x, "next", words(p.next_step), 8));
  return out;
}

function parseError(p, x) {
  return [el("p", "", str(p.error)), p.raw_tool_calls === undefined ? null : folded(x, "raw", "Model output", () => el("pre", "", words(p.raw_tool_calls)))];
}

function memoryLoad(p, x) {
  const ch = isObject(p.channels) ? Object.entries(p.channels) : list(p.channels).filter(isObject).map((c) => [str(c.name), c]);
  if (!ch.length) return [pairs(p, [], x)];
  const t = el("table", "figures small");
  for (const [name, c] of ch) {
    if (!isObject(c)) continue;
    t.append(tr("td", name, c.present === false ? "absent" : full(c.chars) + " characters", c.truncated === true ? "truncated" : ""));
  }
  return [folded(x, "channels", plural(ch.filter(([, c]) => isObject(c) && c.present !== false).length, "part") + (num(p.user_prompt_chars) ? ", a prompt of " + full(p.user_prompt_chars) + " characters" : ""), () => t)];
}

// pairs lists the members of an event that are not drawn yet.
function pairs(p, used, x) {
  const dl = el("dl", "pairs");
  for (const [k, v] of Object.entries(p)) {
    if (QUIET.has(k) || used.includes(k) || v === null || v === "") continue;
    const text = flat(v);
    const long = text.length > 600 || text.split("\n", 8).length > 7;
    dl.append(el("dt", "", k), el("dd", "", long ? longCode(x, "pair-" + k, text, 6) : text));
  }
  return dl.childElementCount ? dl : null;
}

// flat writes lists and objects without the signs of JSON, and other values unchanged.
function flat(v, depth = 0) {
  if (typeof v === "number" && !Number.isInteger(v)) return String(Math.abs(v) >= 1 ? Math.round(v * 1000) / 1000 : Number(v.toPrecision(3)));
  if (v === null || typeof v !== "object" || depth > 3) return words(v);
  const parts = Array.isArray(v) ? v.map((x) => flat(x, depth + 1)) : Object.entries(v).map(([k, x]) => k + " " + (flat(x, depth + 1) || "–"));
  return depth ? "(" + parts.join(", ") + ")" : parts.join(parts.join().length < 80 ? ", " : "\n");
}
