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

// filesOf splits a patch into its files.
function filesOf(patch) {
  const files = [];
  let f = null;
  let inHunk = false;
  for (const l of patch.split("\n")) {
    if (l.startsWith("diff --git ")) {
      f = { name: l.slice(11), add: 0, del: 0, notes: [], lines: [] };
      files.push(f);
      inHunk = false;
    } else if (!f) {
      continue;
    } else if (l.startsWith("@@")) {
      inHunk = true;
      f.lines.push(l);
    } else if (inHunk) {
      if (l[0] === "+") f.add++;
      if (l[0] === "-") f.del++;
      f.lines.push(l);
    } else if (l.startsWith("+++ ") && !l.startsWith("+++ /dev/null")) {
      f.name = l.slice(4).replace(/^"?b\//, "").replace(/[\t"]+$/, "");
    } else if (l.startsWith("--- ") && !l.startsWith("--- /dev/null")) {
      f.name = l.slice(4).replace(/^"?a\//, "").replace(/[\t"]+$/, "");
    } else if (/^(new file|deleted file|rename|Binary files|old mode|new mode|similarity)/.test(l)) {
      f.notes.push(l);
    }
  }
  for (const g of files) while (g.lines.length && g.lines[g.lines.length - 1] === "") g.lines.pop();
  return files;
}

function commitCard(p, x) {
  const sha = str(p.sha);
  if (typeAt(x.i) === "seed_committed" && !factAt(x.i).sha) return [el("p", "", "The seed has no commit; the branch begins here."), pairs(p, ["sha"], x)];
  const g = groups.all[groups.of[x.i]];
  const out = [el("p", "", g?.task && typeAt(x.i) === "commit" ? "Committed " + g.task + (titleOf(g.task) ? ": " + titleOf(g.task) : "") : "Committed", p.branch ? el("span", "dim", " on " + str(p.branch)) : null)];
  const d = rec.diffs.get(sha);
  if (d) out.push(patchCard(d, x));
  else if (rec.head.live && sha) out.push(folded(x, "diff", "Changes", () => fetchDiff(sha, x)));
  out.push(pairs(p, ["sha", "branch"], x));
  return out;
}

function patchCard(d, x) {
  const v = parse(d.text(), {}); // an invalid patch is shown as an empty one
  const files = filesOf(str(v.patch));
  const box = el("div", "patch");
  const add = files.reduce((a, f) => a + f.add, 0);
  const del = files.reduce((a, f) => a + f.del, 0);
  box.append(el("p", "small", files.length ? plural(files.length, "file") + " " : "No files changed.", files.length ? el("span", "plus", "+" + full(add)) : null, " ", files.length ? el("span", "minus", "−" + full(del)) : null, v.truncated ? tagOf("truncated; git has the whole diff", "warn") : null));
  files.slice(0, 300).forEach((f, k) => {
    const part = "file" + k;
    const make = () => (f.lines.length ? folds(x, part + "-all", f.lines, 400, diffLines) : el("p", "dim small", f.notes.join("; ") || "No text changed."));
    const d = folded(x, part, "", make);
    d.firstChild.append(el("code", "", f.name), " ", el("span", "plus", "+" + f.add), " ", el("span", "minus", "−" + f.del));
    if (f.notes.some((n) => n.startsWith("new file"))) d.firstChild.append(tagOf("new"));
    if (add + del <= 60 && !feed.opened.has("shut" + x.i + part)) {
      d.open = true;
      if (d.childElementCount === 1) d.append(make());
    }
    box.append(d);
  });
  if (files.length > 300) box.append(el("p", "dim", files.length - 300 + " more files."));
  return box;
}
