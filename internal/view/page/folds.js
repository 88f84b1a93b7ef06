// Long texts are collapsed. A collapsed part is not in the document.

// folded returns a details element that is filled when it is opened.
function folded(x, part, title, make) {
  const d = el("details", "fold", el("summary", "", title));
  d.dataset.part = part;
  const fill = () => {
    if (d.open && d.childElementCount === 1) d.append(make());
  };
  d.addEventListener("toggle", fill);
  if (x.open(part)) {
    d.open = true;
    fill();
  }
  return d;
}

function longText(x, part, text, lines) {
  return text ? clipped(x, part, text, lines, lines * 110, prose) : null;
}

function longCode(x, part, text, lines) {
  return text ? clipped(x, part, text, lines, lines * 160, (s) => el("pre", "", s)) : null;
}

// clipped shows the beginning of a text, with a button for all of it.
function clipped(x, part, text, lines, chars, make) {
  let end = Math.min(text.length, chars);
  let n = 0;
  for (let at = -1; (at = text.indexOf("\n", at + 1)) >= 0 && at < end; ) {
    if (++n >= lines) {
      end = at;
      break;
    }
  }
  if (end >= text.length - 40 || feed.opened.has(x.i + ":" + part)) return make(text);
  return clip(x, part, full(text.length) + " characters", make(text.slice(0, end)), () => make(text));
}

// folds does the same for a list of lines.
function folds(x, part, lines, most, make) {
  if (lines.length <= most + 4 || feed.opened.has(x.i + ":" + part)) return make(lines);
  return clip(x, part, plural(lines.length, "line"), make(lines.slice(0, most)), () => make(lines));
}

// clip returns the beginning with a button that replaces it with the whole.
function clip(x, part, size, beginning, whole) {
  const box = el("div", "clip", beginning);
  box.append(button("Show all " + size, () => {
    feed.opened.add(x.i + ":" + part);
    box.replaceWith(whole());
  }));
  return box;
}

// prose keeps the line breaks of a text and shows fenced code as code.
function prose(text) {
  const box = el("div", "prose");
  const parts = text.split(/^[ \t]*(?:```|~~~)[^\n]*$/m);
  parts.forEach((part, k) => {
    part = part.replace(/^\n+|\s+$/g, "");
    if (part) box.append(el(k % 2 ? "pre" : "p", "", part));
  });
  return box;
}

// diffLines draws the lines of a unified diff.
function diffLines(lines) {
  const pre = el("pre", "diff");
  for (const l of lines) {
    const c = l[0];
    pre.append(el("span", c === "+" ? "add" : c === "-" ? "del" : c === "@" ? "hunk" : c === "\\" ? "dim" : "", l === "" ? " " : l));
  }
  return pre;
}

function commitCard(p, x) {
  if (typeAt(x.i) === "seed_committed") return [el("p", "", "The branch begins here."), pairs(p, ["sha", "branch"], x)];
  const g = groups.all[groups.of[x.i]];
  return [el("p", "", g?.task ? "Committed " + g.task + (titleOf(g.task) ? ": " + titleOf(g.task) : "") : "Committed"), pairs(p, ["sha", "branch"], x)];
}
