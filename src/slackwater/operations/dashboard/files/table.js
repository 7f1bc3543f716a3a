// The table of queries. Cells are changed in place, and only where they differ.
const since = (at) => at - store.status.at_s;  // the status was made

const COLUMNS = [
  { label: "state", always: true, value: (q) => q.state, show: (cell, q) => {
    if (!cell.firstChild) cell.append(make("span"));
    say(cell.firstChild, q.state);
    const kind = "badge " + q.state;
    if (cell.firstChild.className !== kind) cell.firstChild.className = kind;
  } },
  { label: "query", kind: "name", value: (q) => q.name, show: (cell, q) => {
    if (!cell.firstChild) cell.append(make("b"), make("span", "", "bad"));
    say(cell.firstChild, q.name);
    say(cell.lastChild, q.error || "");
    cell.lastChild.hidden = !q.error;
    cell.title = [q.runId && "runId " + q.runId, q.gate && q.gate + " gate", q.restarts && q.restarts + " restarts", q.error].filter(Boolean).join(", ");
  } },
  { label: "worker", value: (q) => q.worker, text: (q) => q.worker || "" },
  { label: "priority", value: (q) => q.priority, text: (q) => q.priority === null ? "" : String(q.priority) },
  { label: "slack", value: (q) => q.slack_s, text: (q, at) => q.slack_s === null ? "" : signed(q.slack_s - since(at)) },
  { label: "sweep expected", value: (q) => q.sweep_s, text: (q, at) => q.sweep_s === null ? "" :
    signed(q.sweep_s - at) + " (" + figure(q.sweep_low_s - at, 2) + " to " + figure(q.sweep_high_s - at, 2) + ")" },
  { label: "latency", value: (q) => q.latencies_s.at(-1), show: (cell, q) => curve(cell, q) },
  { label: "lag rows", value: (q) => q.lag_rows, text: (q) => whole(q.lag_rows) },
  { label: "lag s", value: (q) => q.lag_s, text: (q, at) => q.lag_s === null ? "" : figure(q.lag_s + since(at), 1) },
  { label: "rows/s", value: (q) => q.inputRowsPerSecond, text: (q) => whole(q.inputRowsPerSecond) },
  { label: "batch ms", value: (q) => q.batchDuration, text: (q) => whole(q.batchDuration) },
  { label: "late rows", title: "dropped behind the watermark", value: (q) => q.numRowsDroppedByWatermark, text: (q) => whole(q.numRowsDroppedByWatermark) },
  { label: "in time", title: "results as fresh as the target or the trigger says", value: (q) => q.kept + q.broken ? q.kept / (q.kept + q.broken) : null,
    text: (q) => q.kept + q.broken ? q.kept + " of " + (q.kept + q.broken) : "" },
  { label: "waits", kind: "why", title: "why it is held now", value: (q) => q.waits, text: (q) => q.waits || "", show: (cell, q) => {
    if (!cell.firstChild) cell.append(make("span"));
    say(cell.firstChild, q.waits || "");
    cell.title = q.waits || "";
  } },
  { label: "a window", kind: "why", title: "why it takes two batches", value: (q) => q.why_two_batches, text: (q) => q.why_two_batches ? "2 batches: " + q.why_two_batches : "", show: (cell, q) => {
    if (!cell.firstChild) cell.append(make("span"));
    say(cell.firstChild, q.why_two_batches ? "2 batches: " + q.why_two_batches : "");
    cell.title = q.why_two_batches || "";
  } },
  { label: "accuracy", title: "desired / delivered", value: (q) => q.accuracy && q.accuracy.delivered,
    text: (q) => q.accuracy ? percent(q.accuracy.desired) + " / " + (percent(q.accuracy.delivered) || "?") : "" },
  { label: "shed", value: (q) => q.shed_rate, text: (q) => percent(q.shed_rate) },
  { label: "", always: true, show: (cell, q) => pauseButton(cell, q) },
];
const SLACK = COLUMNS.findIndex((column) => column.label === "slack");
const OPTIONAL = ["worker", "in time", "a window", "accuracy", "shed"];
const order = { column: null, up: true };
const rows = new Map();
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) entry.target.near = entry.isIntersecting;
}, { rootMargin: "300px" });

function makeHead() {
  const head = document.querySelector("#queries thead tr");
  for (const column of COLUMNS) {
    const cell = make("th");
    cell.scope = "col";
    if (column.label) {
      const button = make("button", column.label);
      button.type = "button";
      button.title = column.title || "";
      button.onclick = () => sortBy(column, cell);
      cell.append(button);
    }
    column.head = cell;
    head.append(cell);
  }
}

function sortBy(column, cell) {
  order.up = order.column === column ? !order.up : true;
  order.column = column;
  document.querySelectorAll("#queries th").forEach((other) => other.removeAttribute("aria-sort"));
  cell.setAttribute("aria-sort", order.up ? "ascending" : "descending");
  drawTable(now());
}

function sorted(queries) {
  if (!order.column) return queries;
  const value = order.column.value, sign = order.up ? 1 : -1;
  const rank = (q) => { const found = value(q); return found === null || found === undefined ? null : found; };
  return [...queries].sort((a, b) => {
    const x = rank(a), y = rank(b);
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (x < y ? -1 : x > y ? 1 : 0);
  });
}

function drawTable(at) {
  const body = document.querySelector("#queries tbody"), queries = sorted(store.status.queries);
  const wanted = byId("find").value.trim().toLowerCase(), seen = new Set();
  const without = COLUMNS.map((column) => OPTIONAL.includes(column.label) && !queries.some((q) => column.text(q, at)));
  COLUMNS.forEach((column, place) => column.head.classList.toggle("hidden", without[place]));
  queries.forEach((query, place) => {
    const key = query.fleet + "/" + query.name;
    seen.add(key);
    if (!rows.has(key)) rows.set(key, makeRow());
    const row = rows.get(key);
    if (body.children[place] !== row) body.insertBefore(row, body.children[place] || null);
    row.classList.toggle("hidden", wanted !== "" && !(key + " " + query.state).toLowerCase().includes(wanted));
    const seldom = row.filled && !row.near;  // nobody sees it: only what it is and can be told
    row.filled = true;
    COLUMNS.forEach((column, number) => {
      if (seldom && !column.always) return;
      const cell = row.children[number];
      cell.classList.toggle("hidden", without[number]);
      if (column.show) column.show(cell, query, at); else say(cell, column.text(query, at));
    });
    row.children[SLACK].classList.toggle("bad", query.slack_s !== null && query.slack_s < since(at));
  });
  for (const [key, row] of rows) if (!seen.has(key)) { near.unobserve(row); row.remove(); rows.delete(key); }
}

function makeRow() {
  const row = make("tr");
  for (const column of COLUMNS) {
    const cell = make("td", undefined, column.kind);
    if (column.label && column.label !== "state" && column.kind !== "name") cell.dataset.label = column.label;
    row.append(cell);
  }
  near.observe(row);
  return row;
}

// The last latencies against the target; drawn only when there are new ones.
function curve(cell, query) {
  const known = query.latencies_s, key = known.join() + query.target_s;
  if (cell.drawn === key) return;
  cell.drawn = key;
  cell.replaceChildren();
  if (!known.length) return;
  const top = Math.max(...known, query.target_s || 0) * 1.1 || 1, space = "http://www.w3.org/2000/svg";
  const height = (value) => (22 - 20 * value / top).toFixed(1);
  const picture = document.createElementNS(space, "svg"), line = document.createElementNS(space, "polyline");
  picture.setAttribute("class", "curve");
  picture.setAttribute("viewBox", "0 0 110 22");
  picture.setAttribute("aria-hidden", "true");
  line.setAttribute("points", known.map((value, place) => (place * 110 / Math.max(1, known.length - 1)).toFixed(1) + "," + height(value)).join(" "));
  picture.append(line);
  if (query.target_s) {
    const target = document.createElementNS(space, "line");
    for (const [name, value] of [["x1", 0], ["x2", 110], ["y1", height(query.target_s)], ["y2", height(query.target_s)]]) target.setAttribute(name, value);
    picture.append(target);
  }
  const last = known.at(-1);
  const text = make("span", " " + figure(last, 2) + (query.target_s ? " / " + query.target_s : "") + " s");
  text.classList.toggle("bad", Boolean(query.target_s) && last > query.target_s);
  cell.append(picture, text);
}
