// The strip: when each query was held and admitted, and when its next sweep is expected.
const AHEAD = 0.25;  // of the width
const ROW = 15, LABEL = 120;
const strip = { seen: true };

function watchStrip() {
  new IntersectionObserver((entries) => { strip.seen = entries[0].isIntersecting; }).observe(byId("strip"));
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const found = (name) => style.getPropertyValue("--" + name).trim();
  return Object.fromEntries(["sweep", "emit", "drain", "other", "dim", "line", "text", "due", "bad"].map((name) => [name, found(name)]));
}

function drawStrip(at) {
  if (!strip.seen || document.hidden) return;
  const canvas = byId("strip"), queries = store.status.queries, ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = Math.max(2, queries.length) * ROW + 18;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    canvas.style.height = height + "px";
  }
  const paint = canvas.getContext("2d"), colour = colours();
  paint.setTransform(ratio, 0, 0, ratio, 0, 0);
  paint.clearRect(0, 0, width, height);
  paint.font = "11px system-ui, sans-serif";
  paint.textBaseline = "middle";
  const label = Math.min(LABEL, width * 0.25), past = Number(byId("span").value);
  const scale = (width - label) * (1 - AHEAD) / past, x = (time) => label + (time - at + past) * scale;
  drawGrid(paint, colour, x, at, past, width, height);
  const places = new Map(queries.map((query, place) => [query.fleet + "/" + query.name, place]));
  const bar = (key, from, to, kind, thick) => {
    const place = places.get(key);
    if (place === undefined || x(to) < label) return;
    const left = Math.max(label, x(from));
    paint.fillStyle = colour[kind] || colour.other;
    paint.fillRect(left, place * ROW + (ROW - thick) / 2, Math.max(1.5, Math.min(width, x(to)) - left), thick);
  };
  for (const one of store.decision) if (one.at_s > at - past) bar(one.fleet + "/" + one.query, one.at_s - one.waited_s, one.at_s, "other", 2);
  for (const one of store.batch) if (one.end_s > at - past) bar(one.fleet + "/" + one.query, one.start_s, one.end_s, one.stage, 10);
  queries.forEach((query, place) => {
    const key = query.fleet + "/" + query.name;
    if (query.state === "held") bar(key, query.since_s, at, "other", 2);
    if (["admitted", "running", "emitting", "in sink"].includes(query.state)) bar(key, query.since_s, at, query.state === "emitting" ? "emit" : query.stage, 10);
    if (query.sweep_s !== null && query.sweep_high_s > at - past) {
      paint.globalAlpha = 0.35;
      bar(key, query.sweep_low_s, query.sweep_high_s, "due", 10);
      paint.globalAlpha = 1;
      bar(key, query.sweep_s, query.sweep_s, "due", 12);
    }
    paint.fillStyle = query.state === "failed" ? colour.bad : colour.text;
    paint.fillText(clip(paint, query.name, label - 8), 4, place * ROW + ROW / 2);
  });
}

function drawGrid(paint, colour, x, at, past, width, height) {
  const step = past > 30 ? 10 : past > 15 ? 5 : 2;
  for (let time = Math.ceil((at - past) / step) * step; x(time) < width; time += step) {
    paint.fillStyle = colour.line;
    paint.fillRect(x(time), 0, 1, height - 16);
    paint.fillStyle = colour.dim;
    paint.fillText(new Date(time * 1000).toTimeString().slice(3, 8), x(time) + 2, height - 8);
  }
  paint.fillStyle = colour.bad;
  paint.fillRect(x(at), 0, 1, height - 16);
}

// Measuring text is slow, and names stay the same.
const clipped = new Map();
function clip(paint, text, room) {
  const key = room + text;
  if (clipped.has(key)) return clipped.get(key);
  let kept = text;
  while (kept.length > 1 && paint.measureText(kept).width > room) kept = kept.replace(/.…?$/, "…");
  clipped.set(key, kept);
  return kept;
}
