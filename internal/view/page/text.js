// Text of the record is untrusted. It is added as text nodes only, and characters that
// would hide or reorder text are made visible.

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

function el(tag, cls, ...kids) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  for (const k of kids) {
    if (k === null || k === undefined || k === "") continue;
    if (k instanceof Node) e.appendChild(k);
    else put(e, String(k));
  }
  return e;
}

// put appends foreign text to a node, with hidden characters made visible and the
// search's matches marked.
function put(node, text) {
  let from = 0;
  HIDDEN.lastIndex = 0;
  for (let m; (m = HIDDEN.exec(text)); ) {
    // Joiners and selectors belong to emoji and to scripts that are not Latin.
    if (/[\u200c\u200d\ufe0f]/.test(m[0]) && m.index > 0 && text.charCodeAt(m.index - 1) >= 0x300) continue;
    if (m.index > from) plain(node, text.slice(from, m.index));
    const s = document.createElement("span");
    s.className = "ctl";
    s.textContent = nameOf(m[0].charCodeAt(0));
    node.appendChild(s);
    from = m.index + m[0].length;
  }
  if (from < text.length) plain(node, from ? text.slice(from) : text);
  return node;
}

function nameOf(code) {
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return "U+" + code.toString(16).toUpperCase().padStart(4, "0");
}

function plain(node, text) {
  const q = search.query;
  if (!q) {
    node.appendChild(document.createTextNode(text));
    return;
  }
  const low = fold(text);
  let from = 0;
  if (low.length === text.length) {
    for (let at; (at = low.indexOf(q, from)) >= 0; from = at + q.length) {
      if (at > from) node.appendChild(document.createTextNode(text.slice(from, at)));
      const m = document.createElement("mark");
      m.textContent = text.slice(at, at + q.length);
      node.appendChild(m);
    }
  }
  if (from < text.length) node.appendChild(document.createTextNode(text.slice(from)));
}

// fold returns s for a case-insensitive search.
function fold(s) {
  return s.toLowerCase();
}

function isObject(v) {
  return typeof v === "object" && v !== null && !Array.isArray(v);
}

function str(v) {
  return typeof v === "string" ? v : "";
}

function num(v) {
  return typeof v === "number" && isFinite(v) ? v : 0;
}

function list(v) {
  return Array.isArray(v) ? v : [];
}

// words returns any value as text.
function words(v) {
  if (typeof v === "string") return v;
  if (v === undefined || v === null) return "";
  if (typeof v !== "object") return String(v);
  try {
    return JSON.stringify(v, null, 2);
  } catch {
    return "(a value nested too deeply to print)";
  }
}

function oneLine(s, max) {
  s = s.replace(/\s+/g, " ").trim();
  return s.length > max ? s.slice(0, max - 1) + "…" : s;
}

function count(n) {
  n = num(n);
  if (n < 1000) return String(Math.round(n));
  if (n < 99950) return trim((n / 1e3).toFixed(1)) + "k";
  if (n < 999500) return Math.round(n / 1e3) + "k";
  return trim((n / 1e6).toFixed(2)) + "M";
}

function trim(s) {
  return s.replace(/\.?0+$/, "");
}

function full(n) {
  return Math.round(num(n)).toLocaleString("en-US");
}

function plural(n, one, many) {
  return full(n) + " " + (n === 1 ? one : many || one + "s");
}

function money(n) {
  n = num(n);
  if (n > 0 && n < 0.01) return "$" + n.toFixed(4);
  return "$" + n.toFixed(2);
}

function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return s + " s";
  const m = Math.round(s / 60);
  if (m < 60) return m + " min";
  const h = Math.floor(m / 60);
  return h + " h" + (m % 60 ? " " + (m % 60) + " min" : "");
}

function clock(ms, seconds) {
  if (!ms) return "";
  const d = new Date(ms);
  const p = (n) => String(n).padStart(2, "0");
  return p(d.getHours()) + ":" + p(d.getMinutes()) + (seconds === false ? "" : ":" + p(d.getSeconds()));
}

function day(ms) {
  if (!ms) return "";
  return new Date(ms).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short", year: "numeric" });
}
