// The list of all sessions, newest first, updated while the page is visible.

const search = { query: "" };
let rows = [];
let drawn = "";
const MOST = 300;

function draw() {
  const q = fold(document.getElementById("find").value.trim());
  const shown = rows.filter((r) => !q || fold([r.session_id, r.label, r.source, r.branch, r.state, r.last_stop].map(str).join(" ")).includes(q));
  const running = rows.filter((r) => r.state === "running").length;
  document.getElementById("facts").replaceChildren(el("span", "", plural(rows.length, "session")), running ? el("span", "", plural(running, "is running", "are running")) : "");
  document.getElementById("sessions").replaceChildren(...shown.slice(0, MOST).map(row));
  document.getElementById("more").textContent = shown.length > MOST ? full(shown.length - MOST) + " older sessions are not shown; search above to find them." : shown.length ? "" : "No sessions.";
}

const TONE = { running: "good", all_done: "good", taken: "good", failed: "bad", crashed: "bad", stopped: "warn", rewinding: "warn", rewound: "warn" };

function row(r) {
  const t = isObject(r.tasks) ? r.tasks : {};
  const a = el("a", "name", str(r.label) || str(r.session_id));
  a.href = "s/" + encodeURIComponent(str(r.session_id)) + "/";
  const furrow = el("span", "tally");
  furrow.setAttribute("aria-hidden", "true");
  for (const [n, cls] of [[t.done, "done"], [t.failed, "failed"], [t.pending, "pending"]]) {
    for (let k = 0; k < Math.min(num(n), 40); k++) furrow.append(el("span", cls));
  }
  const facts = [
    num(t.done) + " of " + plural(num(t.total), "task"),
    num(r.tokens_used) ? count(r.tokens_used) + " tokens" : "",
    num(r.cost) ? money(r.cost) : "",
    str(r.last_stop) && r.last_stop !== "all_done" ? "last stop: " + r.last_stop.replace(/_/g, " ") : "",
    str(r.source).split("/").filter(Boolean).pop() || "",
    Date.parse(str(r.last_event_at)) ? span(Date.now() - Date.parse(r.last_event_at)) + " ago" : "",
    str(r.session_id),
  ].filter(Boolean);
  const li = el("li", "session-row", el("span", "", a, " ", el("span", "tag " + (TONE[r.state] || ""), str(r.state).replace(/_/g, " "))), furrow, el("p", "dim facts", ...facts.map((f) => el("span", "", f))));
  for (const p of list(r.problems)) li.append(el("p", "small bad-text", str(p)));
  return li;
}

async function refresh() {
  try {
    if (document.visibilityState !== "visible" && drawn) return;
    const r = await fetch("sessions.json");
    const text = await r.text();
    if (r.ok && text !== drawn) {
      drawn = text;
      rows = list(JSON.parse(text)).filter(isObject);
      draw();
    }
  } catch {
    document.getElementById("status").textContent = "The server does not answer.";
  }
  document.documentElement.dataset.ready = "1";
}

// The delay is a multiple of the last request's duration, so that thousands of sessions
// do not keep the machine busy.
async function keepFresh() {
  const begun = performance.now();
  await refresh();
  setTimeout(keepFresh, Math.max(2000, 20 * (performance.now() - begun)));
}

document.getElementById("find").addEventListener("input", draw);
keepFresh();
