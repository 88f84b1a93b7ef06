function drawAll() {
  overview.draw();
  controls.outline();
  const foot = document.getElementById("foot");
  foot.replaceChildren(
    el("p", "", plural(rec.count, "event") + (num(rec.head.unreadable) ? ", " + plural(num(rec.head.unreadable), "unreadable line") : "") + ". Session " + str(rec.head.session?.id) + "."),
    el("p", "dim", (rec.head.live ? "Live from " : "Rendered " + (rec.head.rendered ? day(rec.head.rendered) + " " + clock(rec.head.rendered, false) : "") + " by ") + "git-tilth. Times are in this device's time zone."),
  );
}

function load() {
  rec.head = JSON.parse(document.getElementById("head").textContent);
  const index = document.querySelectorAll("script.index");
  const events = document.querySelectorAll("script.events");
  index.forEach((s, k) => {
    addBlock(JSON.parse(s.textContent), () => events[k].textContent);
    s.remove();
  });
}

// A copy button copies its command, or selects it where the browser allows no more.
document.addEventListener("click", async (e) => {
  const b = e.target.closest?.("button.copy");
  if (!b) return;
  try {
    await navigator.clipboard.writeText(b.dataset.copy);
    b.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(b.previousElementSibling);
    b.textContent = document.execCommand("copy") ? "Copied" : "Selected";
  }
});

theme.init();
load();
groups.update();
feed.init();
controls.init();
drawAll();
feed.rebuild();
follow();
if (rec.head.live) live.start();
document.documentElement.dataset.ready = String(Math.round(performance.now()));
