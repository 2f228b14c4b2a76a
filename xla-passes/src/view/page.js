"use strict";
// Puts the drawings of computations into each other and shows what is in view. A place is a path: indices of nodes from the
// entry inwards, "3" or "3/0/7" with the computation's number among those that a node calls in between.

const data = JSON.parse(document.getElementById("data").textContent);
const svg = document.getElementById("canvas"), world = document.getElementById("world");
const side = document.getElementById("side"), search = document.getElementById("search");
const LINE = 15, PAD = 14, GAP = 34, TITLE = 20, LEGIBLE = 0.4, MOST_OPEN = 3000;

for (const computation of data.computations) {
  computation.nodes.forEach((node) => { node.users = []; node.drawn = new Set(); });
  computation.nodes.forEach((node, i) => node.operands.forEach((o) => computation.nodes[o].users.push(i)));
  computation.lines.forEach(([from, to]) => computation.nodes[to].drawn.add(from));
  computation.nodes.forEach((node, i) => {
    // Words for lines that would be too long: what is read from far above, and who reads it far below.
    const word = (sign, others) => others.length ? `${sign}${computation.nodes[others[0]].name}${others.length > 1 ? ` +${others.length - 1}` : ""}` : "";
    const above = node.operands.filter((o) => !node.drawn.has(o)), below = node.users.filter((u) => !computation.nodes[u].drawn.has(i));
    node.far = [word("⇡", above), word("⇣", below)].filter(Boolean);
    node.height = LINE * (2 + node.far.length) + 8;
  });
}

let open = new Set(), selected = null, hits = new Set();
let view = { x: 0, y: 0, scale: 1 }, shown = null, placed = null;

const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

// The computation that a path of a node lies in, the node, and the path of that computation ("" for the entry).
function lookup(path) {
  const steps = path.split("/").map(Number);
  let computation = 0;
  for (let i = 0; i + 2 < steps.length; i += 2) computation = data.computations[computation].nodes[steps[i]].calls[steps[i + 1]];
  const node = data.computations[computation].nodes[steps[steps.length - 1]];
  return { computation, node, prefix: path.slice(0, path.lastIndexOf("/") + 1) };
}

// The size of a computation with what is open in it, and where its nodes are.
function place(number, prefix) {
  const computation = data.computations[number], items = [], layers = [];
  const nodes = computation.nodes.map((node, i) => {
    const path = prefix + i, inner = open.has(path) ? node.calls.map((c, k) => place(c, `${path}/${k}/`)) : [];
    let width = node.width, height = node.height;
    if (inner.length) {
      width = Math.max(width, inner.reduce((sum, one) => sum + one.width + PAD, PAD));
      height = node.height + TITLE + PAD + Math.max(...inner.map((one) => one.height));
    }
    layers[node.layer] = Math.max(layers[node.layer] || 0, height);
    const item = { node, path, inner, width, height, x: node.x, extra: width - node.width, layer: node.layer };
    items.push(item);
    return item;
  });
  const lines = computation.lines.map(([from, to, bends]) => ({
    from, to,
    bends: bends.map((x, k) => {
      const item = { x, extra: 0, layer: nodes[from].layer + 1 + k };
      items.push(item);
      return item;
    }),
  }));
  // What is open pushes what stands to its right, in every layer by as much as is needed there and further left.
  const sorted = items.slice().sort((a, b) => a.x - b.x), last = [];
  let shift = 0, width = 0;
  for (const item of sorted) {
    const before = last[item.layer];
    const least = before ? before.shift + (before.extra + item.extra) / 2 : item.extra / 2;
    shift = Math.max(shift, least);
    item.shift = shift;
    last[item.layer] = item;
  }
  items.forEach((item) => { item.cx = item.x + item.shift; width = Math.max(width, item.cx + (item.width || 0) / 2); });
  const tops = [];
  let y = 0;
  for (let i = 0; i < layers.length; i++) {
    tops.push(y);
    y += (layers[i] || 0) + GAP;
  }
  return { computation, number, nodes, lines, tops, layers, width, height: Math.max(0, y - GAP) };
}

function curve(x0, y0, x1, y1) {
  const middle = (y0 + y1) / 2;
  return `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
}

function path(drawing, line, x, y) {
  const from = drawing.nodes[line.from], to = drawing.nodes[line.to];
  let px = x + from.cx, py = y + drawing.tops[from.layer] + from.height, d = `M${px} ${py}`;
  const bottom = (layer) => y + drawing.tops[layer] + drawing.layers[layer];
  if (bottom(from.layer) > py) d += `L${px} ${(py = bottom(from.layer))}`;
  for (const bend of line.bends) {
    d += curve(px, py, (px = x + bend.cx), y + drawing.tops[bend.layer]);
    d += `L${px} ${(py = bottom(bend.layer))}`;
  }
  return d + curve(px, py, x + to.cx, y + drawing.tops[to.layer]);
}

// What of a drawing at (x, y) is in the box, as SVG.
function draw(drawing, prefix, x, y, box, out, legible, spots) {
  const inside = (left, top, right, bottom) => right > box.x0 && left < box.x1 && bottom > box.y0 && top < box.y1;
  if (!inside(x, y, x + drawing.width, y + drawing.height)) {
    if (!selected) return;
  }
  const chosen = selected && lookup(selected).prefix === prefix ? Number(selected.slice(prefix.length)) : -1;
  const plain = [];
  for (const line of drawing.lines) {
    const from = drawing.nodes[line.from], to = drawing.nodes[line.to];
    const xs = [from.cx, to.cx, ...line.bends.map((bend) => bend.cx)];
    const visible = inside(x + Math.min(...xs), y + drawing.tops[from.layer], x + Math.max(...xs) + 1, y + drawing.tops[to.layer] + 1);
    if (line.to === chosen || line.from === chosen) {
      out.push(`<path class="${line.to === chosen ? "operand" : "user"}" d="${path(drawing, line, x, y)}"/>`);
    } else if (visible) plain.push(path(drawing, line, x, y));
  }
  if (plain.length) out.unshift(`<path d="${plain.join("")}"/>`);
  const kind = new Map();
  if (chosen >= 0) {
    drawing.computation.nodes[chosen].operands.forEach((o) => kind.set(o, "operand"));
    drawing.computation.nodes[chosen].users.forEach((u) => kind.set(u, "user"));
    kind.set(chosen, "selected");
    // Far ones have no line of their own.
    for (const [other, role] of kind) {
      const [from, to] = role === "operand" ? [other, chosen] : [chosen, other];
      if (role === "selected" || drawing.computation.nodes[to].drawn.has(from)) continue;
      out.push(`<path class="${role}" stroke-dasharray="6 4" d="${path(drawing, { from, to, bends: [] }, x, y)}"/>`);
    }
  }
  drawing.nodes.forEach((item, i) => {
    const left = x + item.cx - item.width / 2, top = y + drawing.tops[item.layer], { node } = item;
    spots.set(item.path, { x: left, y: top, width: item.width, height: item.height });
    if (!inside(left, top, left + item.width, top + item.height)) return;
    const classes = ["node", node.root ? "root" : "", kind.get(i) || "", hits.has(item.path) ? "hit" : ""].join(" ");
    if (item.inner.length) out.push(`<rect class="cluster" x="${left}" y="${top}" width="${item.width}" height="${item.height}" rx="6"/>`);
    const nx = x + item.cx - node.width / 2;
    let text = "";
    if (legible) {
      const line = (k, name, what) => `<text class="${name}" x="${nx + 9}" y="${top + LINE * k + 1}">${escaped(what)}</text>`;
      text = line(1, "name", node.name + (node.calls.length ? (item.inner.length ? " ▾" : " ▸") : "")) + line(2, "", node.what);
      const most = Math.floor((node.width - 14) / 6.1), fitting = (word) => word.length > most ? `${word.slice(0, most - 1)}…` : word;
      node.far.forEach((word, k) => { text += line(3 + k, "far", fitting(word)); });
    }
    out.push(`<g class="${classes}" data-path="${item.path}"><rect x="${nx}" y="${top}" width="${node.width}" height="${node.height}" rx="4" fill="${node.color}"/>${text}</g>`);
    let ix = left + PAD;
    item.inner.forEach((one, k) => {
      const iy = top + node.height + TITLE;
      if (legible) out.push(`<text class="title" x="${ix}" y="${iy - 6}">%${escaped(one.computation.name)}</text>`);
      draw(one, `${item.path}/${k}/`, ix, iy, box, out, legible, spots);
      ix += one.width + PAD;
    });
  });
}

function render() {
  const margin = 0.5, w = svg.clientWidth / view.scale, h = svg.clientHeight / view.scale;
  const x0 = -view.x / view.scale, y0 = -view.y / view.scale;
  world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  const legible = view.scale >= LEGIBLE;
  const covered = shown && shown.legible === legible && x0 >= shown.x0 && y0 >= shown.y0 && x0 + w <= shown.x1 && y0 + h <= shown.y1;
  if (covered) return;
  shown = { legible, x0: x0 - margin * w, y0: y0 - margin * h, x1: x0 + w * (1 + margin), y1: y0 + h * (1 + margin), spots: new Map() };
  const out = [];
  draw(placed, "", 0, 0, shown, out, legible, shown.spots);
  world.classList.toggle("small", !legible);
  world.innerHTML = out.join("");
}

let waiting = false;
function soon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; render(); });
}

function redraw() {
  shown = null;
  soon();
}

function rebuild() {
  placed = place(0, "");
  shown = null;
  render();
}

function fit() {
  const w = svg.clientWidth, h = svg.clientHeight, top = 56;
  view.scale = Math.min(1.2, (w - 40) / Math.max(1, placed.width), (h - top - 20) / Math.max(1, placed.height));
  view.x = (w - placed.width * view.scale) / 2;
  view.y = Math.max(top, (h - placed.height * view.scale) / 2);
  redraw();
}

// At a readable size, the top of the entry; everything if that is readable.
function start() {
  fit();
  if (view.scale >= LEGIBLE) return;
  const root = placed.nodes.find((item) => item.layer === 0) || placed.nodes[0];
  view.scale = 0.8;
  view.x = svg.clientWidth / 2 - (root ? root.cx : 0) * view.scale;
  view.y = 64;
  redraw();
}

function zoom(factor, x, y) {
  const scale = Math.min(4, Math.max(0.01, view.scale * factor));
  view.x = x - (x - view.x) * (scale / view.scale);
  view.y = y - (y - view.y) * (scale / view.scale);
  view.scale = scale;
  soon();
}

// Opens or closes a node; what was under the pointer stays there.
function toggle(path) {
  const before = shown.spots.get(path);
  const node = lookup(path).node;
  const anchor = (spot) => ({ x: spot.x + spot.width / 2, y: spot.y });
  const old = before && anchor(before);
  if (!open.delete(path)) open.add(path);
  rebuild();
  const after = shown.spots.get(path);
  if (old && after && node) {
    view.x += (old.x - anchor(after).x) * view.scale;
    view.y += (old.y - anchor(after).y) * view.scale;
    redraw();
  }
}

function go(path) {
  let changed = false;
  const steps = path.split("/");
  for (let i = 1; i < steps.length; i += 2) {
    const outer = steps.slice(0, i).join("/");
    if (!open.has(outer)) { open.add(outer); changed = true; }
  }
  if (changed || !shown) rebuild();
  select(path);
  render();
  shown = shown || {};
  const spots = shown.spots || new Map();
  const spot = spots.get(path);
  if (!spot) return;
  view.scale = Math.max(view.scale, 0.8);
  view.x = svg.clientWidth / 2 - (spot.x + spot.width / 2) * view.scale;
  view.y = svg.clientHeight / 3 - spot.y * view.scale;
  redraw();
}

function list(title, entries) {
  if (!entries.length) return "";
  const most = 200, more = entries.length > most ? `<div>and ${entries.length - most} more</div>` : "";
  const link = ([path, text]) => `<a data-go="${path}">${escaped(text)}</a>`;
  return `<h3>${title} (${entries.length})</h3>${entries.slice(0, most).map(link).join("")}${more}`;
}

function select(path) {
  selected = path;
  if (path === null) {
    side.innerHTML = "";
  } else {
    const { computation, node, prefix } = lookup(path), nodes = data.computations[computation].nodes;
    const entry = (i) => [prefix + i, `${nodes[i].name}  ${nodes[i].what}`];
    const calls = node.calls.map((c, k) => {
      const root = data.computations[c].nodes.findIndex((n) => n.root);
      return [`${path}/${k}/${root}`, `%${data.computations[c].name}, ${data.computations[c].nodes.length} nodes`];
    });
    const many = (n) => n >= 1e5 ? Number(n).toExponential(2) : String(n);
    const cost = node.cost && `${many(node.cost.flops)} flops, ${many(node.cost.transcendentals)} transcendentals, ` +
      `${many(node.cost.bytes_read)} bytes read, ${many(node.cost.bytes_written)} written`;
    side.innerHTML = `<h2>${escaped(node.name)}</h2><pre>${escaped(node.text)}</pre>` + (cost ? `<h3>${cost}</h3>` : "") + list("Operands", node.operands.map(entry)) +
      list("Users", node.users.map(entry)) + list("Calls", calls);
  }
  redraw();
}

// One path of each computation.
function paths() {
  const found = new Map([[0, ""]]), queue = [0];
  while (queue.length) {
    const number = queue.shift();
    data.computations[number].nodes.forEach((node, i) => node.calls.forEach((c, k) => {
      if (found.has(c)) return;
      found.set(c, `${found.get(number)}${i}/${k}/`);
      queue.push(c);
    }));
  }
  return found;
}
const places = paths();

function find(words) {
  hits = new Set();
  const parts = words.toLowerCase().split(/\s+/).filter(Boolean), entries = [];
  if (parts.length) {
    for (const [number, prefix] of places) {
      data.computations[number].nodes.forEach((node, i) => {
        // Its own words, not the names of its operands.
        const text = `${node.name} ${node.what} ${node.text.replace(/\(%[^)]*\)/, "")}`.toLowerCase();
        if (!parts.every((part) => text.includes(part))) return;
        hits.add(prefix + i);
        entries.push([prefix + i, `${node.name}  ${node.what}`]);
      });
    }
    selected = null;
    side.innerHTML = list("Found", entries) || "Nothing found";
  } else side.innerHTML = "";
  redraw();
  return entries;
}

function openAll() {
  open = new Set();
  let count = 0;
  const visit = (number, prefix) => data.computations[number].nodes.forEach((node, i) => {
    // The sum of a reduction is no news.
    const plain = node.text.includes("to_apply=") && node.calls.every((c) => data.computations[c].nodes.length <= 3);
    if (!node.calls.length || plain || count > MOST_OPEN) return;
    open.add(prefix + i);
    node.calls.forEach((c, k) => { count += data.computations[c].nodes.length; visit(c, `${prefix}${i}/${k}/`); });
  });
  visit(0, "");
}

document.getElementById("title").textContent = data.name;
document.getElementById("fit").onclick = fit;
document.getElementById("open").onclick = () => { openAll(); rebuild(); fit(); };
document.getElementById("close").onclick = () => { open = new Set(); rebuild(); fit(); };
search.oninput = () => find(search.value);
search.onkeydown = (event) => {
  if (event.key === "Enter") { const found = find(search.value); if (found.length) go(found[0][0]); }
  if (event.key === "Escape") { search.value = ""; find(""); search.blur(); }
};
side.onclick = (event) => { const path = event.target.dataset.go; if (path !== undefined) go(path); };
document.onkeydown = (event) => {
  if (event.target === search) return;
  if (event.key === "/") { search.focus(); event.preventDefault(); }
  if (event.key === "f") fit();
  if (event.key === "Escape") select(null);
};
svg.onwheel = (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY * 0.0015), event.clientX, event.clientY); };
let drag = null;
svg.onpointerdown = (event) => {
  drag = { x: event.clientX, y: event.clientY, moved: false, target: event.target.closest("[data-path]") };
  svg.setPointerCapture(event.pointerId);
};
svg.onpointermove = (event) => {
  if (!drag) return;
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!drag.moved && Math.hypot(dx, dy) < 4) return;
  Object.assign(drag, { moved: true, x: event.clientX, y: event.clientY });
  svg.classList.add("drag");
  view.x += dx;
  view.y += dy;
  soon();
};
svg.onpointerup = () => {
  svg.classList.remove("drag");
  if (drag && !drag.moved) {
    const path = drag.target ? drag.target.dataset.path : null;
    // The first click selects, the second opens or closes.
    if (path !== null && path === selected && lookup(path).node.calls.length) toggle(path);
    else select(path);
  }
  drag = null;
};
window.onresize = redraw;
if (data.open) openAll();
placed = place(0, "");
const wanted = decodeURIComponent(location.hash.slice(1));
if (wanted) { start(); search.value = wanted; const found = find(wanted); if (found.length) go(found[0][0]); } else start();
