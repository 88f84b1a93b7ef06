// The conversation. Items are ordered by section and grouped into pages. Only pages near
// the window are in the document; another page is an empty box of the same height.

const PAGE = 40;
const ROUGH = new Map([["model_call", 170], ["prompt_assembled", 190], ["tool_result", 90], ["evaluator_verdict", 220], ["commit", 120]]);

const feed = {
  items: [], // event number, or -1 - group number for a section's heading
  pages: [], // {el, from, to, height, live}
  root: null,
  observer: null,
  filter: { task: "", kinds: new Set(), matches: false },
  opened: new Set(), // parts that the reader expanded, by event and part
  cursor: -1, // event of the keyboard cursor
  headed: new Set(), // sections that have a heading

  init() {
    this.root = document.getElementById("feed");
    this.observer = new IntersectionObserver((seen) => this.onSeen(seen), { rootMargin: "1200px 0px" });
    addEventListener("scroll", () => this.queueHere(), { passive: true });
    this.root.addEventListener("toggle", (ev) => this.onToggle(ev), true);
    this.root.addEventListener("focusin", (ev) => {
      const a = ev.target.closest?.("article");
      if (a && a.dataset.i) this.mark(Number(a.dataset.i));
    });
  },

  shows(i) {
    const f = this.filter;
    if (f.task && taskOf(i) !== f.task) return false;
    if (f.kinds.size && !f.kinds.has(kindAt(i))) return false;
    if (f.matches && search.query && !search.hit.has(i)) return false;
    return true;
  },

  // folds reports whether a section shows only its heading: it is superseded and not expanded.
  folds(g) {
    if (g < 0 || this.filter.matches) return false;
    return groups.all[g].superseded && !this.opened.has("section:" + groups.all[g].start);
  },

  // rebuild lays out all items again and keeps the event in view.
  rebuild() {
    const keep = this.firstInView();
    this.observer.disconnect();
    this.items = [];
    this.pages = [];
    this.headed.clear();
    this.root.replaceChildren();
    this.extend([...groups.of.keys()].sort((a, b) => groups.of[a] - groups.of[b]));
    if (keep >= 0) this.jump(keep, { focus: false, quiet: true });
  },

  // extend appends events.
  extend(events) {
    for (const i of events) {
      const g = groups.of[i];
      const folded = this.folds(g);
      if (folded ? this.filter.task : !this.shows(i)) continue;
      if (!this.headed.has(g)) this.add(-1 - g);
      this.headed.add(g);
      if (!folded) this.add(i);
    }
    this.root.setAttribute("aria-busy", "false");
    let none = this.root.querySelector(".none");
    if (!this.items.length && !none) {
      none = el("p", "none dim", rec.count ? "No event matches the filter." : "No events yet.");
      this.root.appendChild(none);
    } else if (this.items.length && none) {
      none.remove();
    }
  },

  // add inserts an item at the end of its section. It splits a full page that has items of the next section.
  add(item) {
    const at = this.position(item);
    let n = at ? lastBegun(this.pages, "from", at - 1) : 0;
    let p = this.pages[n];
    if (p && at < p.to && p.to - p.from >= PAGE) this.split(n, at);
    if (!p || p.to - p.from >= PAGE) p = this.page(p ? ++n : n, at);
    this.items.splice(at, 0, item);
    p.to++;
    while (++n < this.pages.length) {
      this.pages[n].from++;
      this.pages[n].to++;
    }
    if (p.live) {
      p.el.insertBefore(this.node(item), p.el.children[at - p.from] ?? null);
      return;
    }
    this.grow(p, item < 0 ? 90 : ROUGH.get(typeAt(item)) || 64);
  },

  // page inserts an empty page as the n-th.
  page(n, from) {
    const p = { el: el("div", "page"), from, to: from, height: 0, live: false };
    p.el.page = p;
    this.root.insertBefore(p.el, this.pages[n]?.el ?? null);
    this.pages.splice(n, 0, p);
    this.observer.observe(p.el);
    return p;
  },

  split(n, at) {
    const p = this.pages[n];
    const q = this.page(n + 1, at);
    const part = (p.to - at) / (p.to - p.from);
    q.to = p.to;
    p.to = at;
    q.live = p.live;
    if (p.live) return q.el.append(...[...p.el.children].slice(at - p.from));
    this.grow(q, p.height * part);
    this.grow(p, -p.height * part);
  },

  grow(p, by) {
    p.height += by;
    p.el.style.height = p.height + "px";
  },

  onSeen(seen) {
    for (const s of seen) {
      const p = s.target.page;
      if (!p || this.pages.indexOf(p) < 0) continue;
      if (s.isIntersecting) this.fill(p);
      else if (p.live && !this.printing) this.empty(p);
    }
    this.queueHere();
  },

  fill(p) {
    if (p.live) return;
    p.live = true;
    const before = p.height;
    this.draw(p);
    p.el.style.height = "";
    // Browsers without scroll anchoring would jump if a page above the window is
    // taller than its estimate.
    if (!CSS.supports("overflow-anchor", "auto") && p.el.getBoundingClientRect().top < 0) scrollBy(0, p.el.offsetHeight - before);
  },

  draw(p) {
    p.el.replaceChildren(...this.items.slice(p.from, p.to).map((item) => this.node(item)));
  },

  empty(p) {
    if (p.el.contains(document.activeElement)) return;
    p.height = p.el.offsetHeight;
    p.el.style.height = p.height + "px";
    p.el.replaceChildren();
    p.live = false;
  },

  node(item) {
    if (item < 0) return groupHead(-1 - item);
    const a = renderEvent(item);
    a.setAttribute("aria-posinset", String(item + 1));
    a.setAttribute("aria-setsize", String(rec.count));
    if (item === this.cursor) a.classList.add("cursor");
    if (search.hit.has(item)) a.classList.add("hit");
    return a;
  },

  // position returns the index of an item, or of the next one.
  position(i) {
    const n = this.items.length;
    if (n && inOrder(this.items[n - 1], i) < 0) return n;
    return first(n, (k) => inOrder(this.items[k], i) >= 0);
  },

  elementOf(i) {
    return document.getElementById("e" + i);
  },

  unfilter() {
    this.filter = { task: "", kinds: new Set(), matches: false };
    controls.sync();
    this.rebuild();
  },

  // jump scrolls to an event and clears a filter that hides it.
  jump(i, how = {}) {
    if (i < 0 || i >= rec.count) return;
    if (this.folds(groups.of[i]) && !how.quiet) {
      this.opened.add("section:" + groups.all[groups.of[i]].start);
      this.rebuild();
    }
    if (!this.shows(i) && !how.quiet) this.unfilter();
    const k = this.position(i);
    if (k >= this.items.length) return;
    const n = lastBegun(this.pages, "from", k);
    const p = this.pages[n];
    for (const near of [n - 1, n, n + 1]) if (this.pages[near]) this.fill(this.pages[near]);
    const it = this.items[k];
    const target = it < 0 ? p.el.children[k - p.from] : this.elementOf(it);
    if (!target) return;
    if (!how.quiet) this.mark(it < 0 ? i : it);
    const head = !how.quiet && how.heading !== false && k > 0 && this.items[k - 1] < 0 ? target.previousElementSibling || target : target;
    // Pages above may grow while they are filled, so scroll again afterwards.
    const go = () => target.isConnected && head.scrollIntoView({ block: how.block || "start" });
    go();
    requestAnimationFrame(() => {
      go();
      this.queueHere();
    });
    if (how.focus !== false) target.focus({ preventScroll: true });
  },

  mark(i) {
    if (this.cursor === i) return;
    this.elementOf(this.cursor)?.classList.remove("cursor");
    this.cursor = i;
    this.elementOf(i)?.classList.add("cursor");
  },

  // step moves the cursor to the next or previous event.
  step(by) {
    if (!this.items.length) return;
    let k;
    if (this.cursor < 0) {
      const first = this.firstInView();
      k = first < 0 ? 0 : this.position(first);
      if (by < 0) k += by;
    } else {
      k = this.position(this.cursor) + (this.shows(this.cursor) || by < 0 ? by : 0);
    }
    while (k >= 0 && k < this.items.length && this.items[k] < 0) k += by > 0 ? 1 : -1;
    if (k < 0 || k >= this.items.length) return;
    this.jump(this.items[k], { block: "nearest", heading: false });
    const e = this.elementOf(this.items[k]);
    const r = e?.getBoundingClientRect();
    if (r && (r.top < 90 || r.bottom > innerHeight)) e.scrollIntoView({ block: r.height > innerHeight - 120 ? "start" : by > 0 ? "end" : "start" });
  },

  stepGroup(by) {
    const at = this.cursor >= 0 ? this.cursor : Math.max(0, this.firstInView());
    let g = groups.of[at] + by;
    while (g >= 0 && g < groups.all.length && this.position(groups.all[g].start) < this.items.length) {
      const k = this.position(-1 - g);
      if (this.items[k] === -1 - g) {
        this.jump(this.items[k + 1]);
        return;
      }
      g += by;
    }
  },

  stepKind(kinds, by) {
    let k = this.position(this.cursor >= 0 ? this.cursor : Math.max(0, this.firstInView()));
    for (k += by; k >= 0 && k < this.items.length; k += by) {
      const i = this.items[k];
      if (i >= 0 && kinds.includes(kindAt(i))) return this.jump(i);
    }
  },

  firstInView() {
    for (const p of this.pages) {
      if (!p.live) continue;
      const r = p.el.getBoundingClientRect();
      if (r.bottom < 60 || r.top > innerHeight) continue;
      for (const c of p.el.children) {
        if (c.dataset.i && c.getBoundingClientRect().bottom > 90) return this.pages[0].el.getBoundingClientRect().top > 0 ? -1 : Number(c.dataset.i);
      }
    }
    return -1;
  },

  queueHere() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => {
      this.queued = false;
      controls.here(this.firstInView());
    });
  },

  onToggle(ev) {
    const d = ev.target;
    const a = d.closest?.("article");
    if (!a || !d.dataset.part) return;
    const key = a.dataset.i + ":" + d.dataset.part;
    if (d.open) this.opened.add(key);
    else this.opened.delete(key);
  },

  atEnd() {
    return innerHeight + scrollY >= document.documentElement.scrollHeight - 160;
  },

  // stick scrolls to the end without moving the cursor.
  stick() {
    if (!this.pages.length) return;
    this.fill(this.pages[this.pages.length - 1]);
    scrollTo(0, document.documentElement.scrollHeight);
  },

  toEnd() {
    if (this.items.length) this.jump(this.items[this.items.length - 1], { focus: false });
  },
};

// taskOf returns the task of an event, or of its section.
function taskOf(i) {
  return taskAt(i) || groups.all[groups.of[i]]?.task || "";
}

// inOrder compares two items: by section, the heading first.
function inOrder(a, b) {
  const section = (item) => (item < 0 ? -1 - item : groups.of[item]);
  return section(a) - section(b) || a - b;
}

function groupHead(n) {
  const g = groups.all[n];
  const title = g.kind === "task" ? titleOf(g.task) : "";
  const h = el("h3", "", groupTitle(g), title ? el("span", "title", " " + title) : "");
  const facts = [clock(g.from, false)];
  if (g.iters.length) facts.push(plural(g.iters[g.iters.length - 1].n, "iteration"));
  if (g.tools) facts.push(plural(g.tools, "tool call"));
  if (g.tokens) facts.push(count(g.tokens) + " tokens");
  if (g.cost) facts.push(money(g.cost));
  if (g.until - g.from > 1000) facts.push(span(g.until - g.from));
  const tag = g.outcome ? el("span", "tag " + (g.outcome === "done" ? "good" : "bad"), g.outcome === "done" ? "done" : "failed: " + because(g.reason)) : null;
  const head = el("header", "group " + g.kind, h, el("p", "dim", ...facts.map((f) => el("span", "", f)), tag));
  if (g.superseded) head.append(el("p", "", el("span", "tag warn", "superseded"), " ", sectionFold(g)));
  return head;
}

// sectionFold returns a button that shows or hides the events of a superseded section.
function sectionFold(g) {
  const key = "section:" + g.start;
  const open = feed.opened.has(key);
  return button(open ? "Hide" : "Show " + plural(g.size, "event"), () => {
    open ? feed.opened.delete(key) : feed.opened.add(key);
    feed.rebuild();
  });
}
