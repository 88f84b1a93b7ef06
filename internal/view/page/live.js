// A served page follows its record by server-sent events: "head" replaces the
// part above the conversation, "block" appends events, "reset" discards all events,
// because the record was rewound or replaced.

const live = {
  drawSoon: 0,
  source: null,

  start() {
    const all = el("a", "", "All sessions");
    all.id = "sessions";
    all.href = "../../";
    document.querySelector(".eyebrow").append(" ", all);
    this.source = new EventSource("events");
    this.source.addEventListener("head", (ev) => {
      rec.head = JSON.parse(ev.data);
      if (rec.head.running) for (const s of document.querySelectorAll(".morning")) s.remove(); // of the previous run
      this.redraw();
    });
    this.source.addEventListener("reset", () => {
      rec.clear();
      groups.clear();
      overview.drawn.forEach((p) => (p.key = null)); // another record may count the same
      controls.outlined = "";
      search.forget();
      feed.opened.clear();
      feed.cursor = -1;
      feed.rebuild();
      this.redraw();
      document.documentElement.dataset.resets = String(num(Number(document.documentElement.dataset.resets)) + 1);
    });
    this.source.addEventListener("block", (ev) => {
      const cut = ev.data.indexOf("\n");
      const text = ev.data.slice(cut + 1);
      const following = feed.atEnd() && scrollY > innerHeight / 2;
      const from = addBlock(JSON.parse(ev.data.slice(0, cut)), () => text);
      groups.update();
      search.more();
      if (groups.folded) feed.rebuild();
      else feed.extend(groups.of.slice(from).map((_, k) => from + k));
      groups.folded = false;
      if (following) feed.stick();
      announce(from);
      this.redraw();
    });
    setInterval(() => rec.head.running && this.redraw(), 5000); // time passes without events
    this.source.addEventListener("open", () => this.state("live"));
    this.source.addEventListener("error", () => this.state("lost"));
  },

  state(s) {
    document.documentElement.dataset.live = s;
    const foot = document.getElementById("foot");
    foot.dataset.live = s === "live" ? "Following the record" : "Connection lost, reconnecting";
  },

  // redraw schedules one redraw of the overview for many events.
  redraw() {
    if (this.drawSoon) return;
    this.drawSoon = setTimeout(() => {
      this.drawSoon = 0;
      drawAll();
    }, rec.count > 20000 ? 600 : 120);
  },
};

// announce reports the most important new event to screen readers.
function announce(from) {
  for (let i = rec.count - 1; i >= Math.max(from, rec.count - 50); i--) {
    const type = typeAt(i);
    const f = factAt(i);
    if (type === "evaluator_verdict") return say(taskOf(i) + (f.v === "accept" ? " accepted" : " rejected"));
    if (type === "task_failed") return say(taskOf(i) + " failed: " + because(str(f.why)));
    if (type === "stop") return say("Stopped: " + because(str(f.why)));
  }
}
