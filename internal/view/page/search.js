// Search reads the whole record in slices, so that the page stays usable. It searches the
// text of events, not their JSON.

const search = {
  query: "",
  hits: [], // event numbers in order
  hit: new Set(),
  done: 0, // blocks searched
  run: 0,
  current: -1,

  start(text) {
    const q = fold(text.trim());
    if (q === this.query) return;
    const run = ++this.run;
    this.query = q;
    this.forget();
    this.current = -1;
    this.report();
    if (!q) {
      this.finished();
      return;
    }
    const slice = () => {
      if (run !== this.run) return;
      const until = performance.now() + 12;
      while (this.done < rec.blocks.length && performance.now() < until) this.block(this.done++);
      this.report();
      if (this.done < rec.blocks.length) setTimeout(slice);
      else this.finished();
    };
    slice();
  },

  // forget discards the results, for a new query or record.
  forget() {
    this.hits = [];
    this.hit = new Set();
    this.done = 0;
  },

  // more searches new blocks.
  more() {
    if (!this.query) return;
    while (this.done < rec.blocks.length) this.block(this.done++);
    this.report();
  },

  block(b) {
    const { start, text } = rec.blocks[b];
    const raw = text();
    // JSON does not escape letters and digits, so a block without the query's bytes
    // needs no parsing.
    if (/^[a-z0-9 _.,:;/()-]+$/.test(this.query) && !fold(raw).includes(this.query)) return;
    parse(raw, []).forEach((e, k) => {
      if (holds(e, this.query, 0)) {
        this.hits.push(start + k);
        this.hit.add(start + k);
      }
    });
  },

  finished() {
    document.getElementById("find").classList.toggle("none", this.query !== "" && this.hits.length === 0);
    if (feed.filter.matches) feed.rebuild();
    else feed.redraw();
    this.report();
  },

  report() {
    const out = document.getElementById("found");
    if (!this.query) out.textContent = "";
    else if (this.done < rec.blocks.length) out.textContent = full(this.hits.length) + "…";
    else if (!this.hits.length) out.textContent = "none";
    else out.textContent = (this.current >= 0 ? full(this.current + 1) + " of " : "") + full(this.hits.length);
  },

  // next jumps to the match after or before the cursor.
  next(by) {
    if (!this.hits.length) return;
    if (this.current < 0) {
      const from = feed.cursor >= 0 ? feed.cursor : Math.max(0, feed.firstInView());
      const k = this.hits.findIndex((i) => i >= from);
      this.current = by > 0 ? (k < 0 ? 0 : k) : (k < 0 ? this.hits.length : k) - 1;
    } else {
      this.current += by;
    }
    this.current = (this.current + this.hits.length) % this.hits.length;
    feed.jump(this.hits[this.current], { focus: false });
    this.report();
  },
};

// holds reports whether a text in a value contains the query.
function holds(v, q, depth) {
  if (typeof v === "string") return fold(v).includes(q);
  if (typeof v === "number") return String(v).includes(q);
  if (typeof v !== "object" || v === null || depth > 70) return false;
  if (Array.isArray(v)) return v.some((x) => holds(x, q, depth + 1));
  for (const k in v) {
    if (k === "trace_id" || k === "span_id") continue;
    if (holds(v[k], q, depth + 1)) return true;
  }
  return false;
}

// redraw redraws the visible pages for a changed query.
feed.redraw = function () {
  for (const p of this.pages) if (p.live) this.draw(p);
};
