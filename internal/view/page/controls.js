// Controls: filter, contents, theme, keys.

const controls = {
  outlined: "", // state that the contents were drawn from

  init() {
    const find = document.getElementById("find");
    let wait = 0;
    find.addEventListener("input", () => {
      clearTimeout(wait);
      wait = setTimeout(() => search.start(find.value), 120);
    });
    find.addEventListener("keydown", (ev) => {
      if (ev.key === "Enter") {
        ev.preventDefault();
        clearTimeout(wait);
        search.start(find.value);
        search.next(ev.shiftKey ? -1 : 1);
      } else if (ev.key === "Escape") {
        find.value = "";
        search.start("");
        find.blur();
      }
    });
    document.getElementById("find-next").addEventListener("click", () => search.next(1));
    document.getElementById("find-prev").addEventListener("click", () => search.next(-1));
    this.chips();
    const pick = document.getElementById("pick-task");
    pick.addEventListener("change", () => {
      feed.filter.task = pick.value;
      feed.rebuild();
    });
    document.getElementById("theme").addEventListener("click", () => theme.flip());
    document.getElementById("help-open").addEventListener("click", () => help());
    document.getElementById("newest").addEventListener("click", () => feed.toEnd());
    addEventListener("keydown", onKey);
    addEventListener("hashchange", () => follow());
    document.addEventListener("click", (ev) => {
      const a = ev.target.closest?.("a[href^='#e']");
      if (a && a.getAttribute("href") === location.hash) follow();
    });
    const bar = document.querySelector(".bar");
    new ResizeObserver(() => document.documentElement.style.setProperty("--bar", bar.offsetHeight + "px")).observe(bar);
    addEventListener("beforeprint", () => printable(true));
    addEventListener("afterprint", () => printable(false));
  },

  chips() {
    const box = document.getElementById("kinds");
    for (const [kind, name] of [...KINDS, ["matches", "Only matches"]]) {
      const b = el("button", "chip " + kind, name);
      b.type = "button";
      b.dataset.kind = kind;
      b.setAttribute("aria-pressed", "false");
      b.addEventListener("click", () => {
        if (kind === "matches") feed.filter.matches = !feed.filter.matches;
        else if (!feed.filter.kinds.delete(kind)) feed.filter.kinds.add(kind);
        this.sync();
        feed.rebuild();
      });
      box.append(b);
    }
  },

  // sync updates the filter buttons.
  sync() {
    for (const b of document.querySelectorAll(".chip")) {
      const on = b.dataset.kind === "matches" ? feed.filter.matches : feed.filter.kinds.has(b.dataset.kind);
      b.setAttribute("aria-pressed", String(on));
    }
    document.getElementById("pick-task").value = feed.filter.task;
  },

  // outline lists the sections, and the tasks to filter by.
  outline() {
    const key = JSON.stringify([rec.head.tasks, groups.all.length, groups.all.filter((g) => g.outcome).length]);
    if (key === this.outlined) return;
    this.outlined = key;
    const pick = document.getElementById("pick-task");
    const ids = [...new Set(planOf().map((t) => t.id))];
    pick.replaceChildren(option("", "All tasks"), ...ids.map((id) => option(id, oneLine(id + " " + titleOf(id), 48))));
    pick.value = feed.filter.task;
    const nav = document.getElementById("outline");
    const ol = el("ol");
    groups.all.slice(0, 500).forEach((g, n) => {
      const a = link(g.start, "", "");
      const glyph = g.outcome === "done" ? "✓" : g.outcome === "failed" ? "■" : g.kind === "task" ? "…" : "·";
      a.append(el("span", "glyph " + (g.outcome || g.kind), glyph), el("span", "", groupTitle(g), g.kind === "task" && titleOf(g.task) ? el("span", "dim", " " + oneLine(titleOf(g.task), 60)) : g.kind === "stop" ? el("span", "dim", " " + g.reason.replace(/_/g, " ")) : ""));
      a.dataset.g = String(n);
      ol.append(el("li", "", a));
    });
    const d = el("details", "contents", el("summary", "", "Contents"), ol);
    d.open = matchMedia("(min-width: 1000px)").matches || nav.firstChild?.open === true;
    nav.replaceChildren(d);
  },

  // here shows the section of the event in view.
  here(i) {
    const out = document.getElementById("here");
    const g = i >= 0 ? groups.of[i] : -1;
    const text = g < 0 ? "" : groupTitle(groups.all[g]) + (rec.iter[i] ? " · iteration " + rec.iter[i] : "");
    if (out.textContent !== text) out.textContent = text;
    for (const a of document.querySelectorAll("#outline a")) {
      if (a.dataset.g === String(g)) a.setAttribute("aria-current", "true");
      else a.removeAttribute("aria-current");
    }
    document.getElementById("newest").hidden = !rec.head.live || feed.atEnd();
  },
};

function option(value, text) {
  const o = document.createElement("option");
  o.value = value;
  o.textContent = text;
  return o;
}

// follow scrolls to the event in the URL.
function follow() {
  const m = /^#e(\d{1,9})$/.exec(location.hash);
  if (m) feed.jump(Number(m[1]), { heading: false });
}

const theme = {
  init() {
    let t = "";
    try {
      t = localStorage.getItem("tilth-theme") || "";
    } catch {
      // A page from a file may have no storage.
    }
    if (t === "light" || t === "dark") document.documentElement.dataset.theme = t;
  },
  flip() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("tilth-theme", root.dataset.theme);
    } catch {
      // The choice then lasts until the page is closed.
    }
    say(root.dataset.theme === "dark" ? "Dark theme" : "Light theme");
  },
};

function say(text) {
  document.getElementById("status").textContent = text;
}

// Keys: names, help text, action.
const KEYS = [
  [["j", "k"], "next, previous event", (k) => feed.step(k === "j" ? 1 : -1)],
  [["J", "K"], "next, previous section", (k) => feed.stepGroup(k === "J" ? 1 : -1)],
  [["v", "V"], "next, previous verdict", (k) => feed.stepKind(["verdict"], k === "v" ? 1 : -1)],
  [["x", "X"], "next, previous problem", (k) => feed.stepKind(["trouble"], k === "x" ? 1 : -1)],
  [["/"], "search", () => document.getElementById("find").focus()],
  [["n", "N"], "next, previous match", (k) => search.next(k === "n" ? 1 : -1)],
  [["Enter", "o"], "expand or collapse the event", () => unfold()],
  [["y"], "put the event's link in the address bar", () => feed.cursor >= 0 && history.replaceState(null, "", "#e" + feed.cursor)],
  [["f"], "filter by task", () => document.getElementById("pick-task").focus()],
  [["g", "G"], "to the top, to the newest event", (k) => (k === "g" ? (scrollTo(0, 0), feed.mark(-1)) : feed.toEnd())],
  [["t"], "light or dark", () => theme.flip()],
  [["?"], "this list", () => help()],
  [["Escape"], "leave the search, or clear it", () => clearAll()],
];

function onKey(ev) {
  if (ev.ctrlKey || ev.metaKey || ev.altKey || ev.defaultPrevented) return;
  const t = ev.target;
  if (t instanceof Element && t.closest("input, select, textarea, dialog")) return;
  if (ev.key === "Enter" && t instanceof Element && t.closest("a, button, summary")) return;
  for (const [keys, , act] of KEYS) {
    if (keys.includes(ev.key)) {
      ev.preventDefault();
      act(ev.key);
      return;
    }
  }
}

function unfold() {
  const a = feed.elementOf(feed.cursor);
  if (!a) return;
  const all = [...a.querySelectorAll("details")];
  const open = !all.some((d) => d.open);
  for (const d of all) d.open = open;
  for (const b of a.querySelectorAll(".clip > button")) b.click();
}

function clearAll() {
  const find = document.getElementById("find");
  if (find.value) {
    find.value = "";
    search.start("");
  }
  if (feed.filter.task || feed.filter.kinds.size || feed.filter.matches) feed.unfilter();
}

function help() {
  const dl = document.getElementById("help-keys");
  if (!dl.childElementCount) {
    for (const [keys, what] of KEYS) dl.append(el("dt", "", ...keys.map((k) => el("kbd", "", k === "Escape" ? "Esc" : k))), el("dd", "", what));
  }
  document.getElementById("help").showModal();
}

// printable draws the events that are printed, at most PRINT_MOST.
const PRINT_MOST = 3000;

function printable(on) {
  feed.printing = on;
  if (!on) return;
  for (const p of feed.pages) if (p.from < PRINT_MOST) feed.fill(p);
  document.getElementById("foot").dataset.print = feed.items.length > PRINT_MOST ? "The first " + PRINT_MOST + " of " + full(feed.items.length) + " entries are printed; filter the page to print others." : "";
}
