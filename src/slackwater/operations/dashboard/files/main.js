// Puts the parts together.
const THEME = "slackwater-theme";
let drawn = 0;  // 0: nothing yet, 1: the strip's turn, 2: the table's

function draw() {
  byId("connection").className = store.live ? "" : "off";
  say(byId("connection"), store.live ? "live" : "no connection; trying again");
  if (!store.status) return;
  const at = now(), states = store.status.queries.map((query) => query.state);
  const counted = [...new Set(states)].sort().map((state) => states.filter((one) => one === state).length + " " + state);
  say(byId("counts"), states.length + " queries: " + counted.join(", "));
  drawFleets(); drawLog(); drawKernel();
  // The two that cost most take turns; each is drawn once a second.
  if (drawn !== 1) drawTable(at);
  if (drawn !== 2) drawStrip(at);
  drawn = drawn === 1 ? 2 : 1;
  if (!performance.getEntriesByName("drawn").length) performance.mark("drawn");
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
}

byId("theme").onclick = () => {
  const shown = document.documentElement.dataset.theme;
  const dark = shown ? shown === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
  localStorage.setItem(THEME, document.documentElement.dataset.theme);
};
byId("find").oninput = () => store.status && drawTable(now());
byId("span").onchange = () => store.status && drawStrip(now());
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /INPUT|SELECT/.test(event.target.tagName)) return;
  event.preventDefault();
  byId("find").focus();
});
setTheme(localStorage.getItem(THEME));
readToken();
makeHead();
watchStrip();
connect(draw);
