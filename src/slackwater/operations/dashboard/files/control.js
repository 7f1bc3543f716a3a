// Acting takes the token: from the address that was printed, or typed.
const KEY = "slackwater-token";
const token = { value: sessionStorage.getItem(KEY) || "" };

function readToken() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return;
  keepToken(decodeURIComponent(found[1]));
  history.replaceState(null, "", location.pathname);  // not in the history, nor in a bookmark
}

function keepToken(text) {
  token.value = text.trim();
  sessionStorage.setItem(KEY, token.value);
}

async function act(command) {
  say(byId("said"), "…");
  try {
    const answer = await fetch("/control", { method: "POST", body: JSON.stringify(command),
      headers: { "Content-Type": "application/json", Authorization: "Bearer " + token.value } });
    const told = await answer.json();
    const what = [command.action, command.query || command.policy || command.fleet].join(" ");
    say(byId("said"), answer.ok ? "done: " + what : "refused: " + told.error);
    if (answer.status === 401) askToken();
  } catch (error) { say(byId("said"), "not sent: " + error.message); }
}

function askToken() {
  if (byId("token")) { byId("token").focus(); return; }
  const field = make("input");
  field.id = "token"; field.type = "password"; field.placeholder = "token"; field.autocomplete = "off";
  field.setAttribute("aria-label", "Token");
  field.onchange = () => { keepToken(field.value); field.remove(); say(byId("said"), "token kept for this tab"); };
  byId("said").after(field);
  field.focus();
}

function pauseButton(cell, query) {
  if (!cell.firstChild) {
    const button = make("button");
    button.type = "button";
    cell.append(button);
  }
  const button = cell.firstChild, paused = query.state === "paused";
  say(button, paused ? "resume" : "pause");
  button.hidden = ["failed", "stopped", "unknown"].includes(query.state);
  button.setAttribute("aria-label", (paused ? "Resume " : "Pause ") + query.name);
  button.onclick = () => act({ fleet: query.fleet, query: query.name, action: paused ? "resume" : "pause" });
}

function drawFleets() {
  const box = byId("fleets"), fleets = store.status.fleets;
  while (box.children.length > fleets.length) box.lastChild.remove();
  fleets.forEach((fleet, place) => {
    const row = box.children[place] || box.appendChild(makeFleet());
    const [name, state, policy, facts, button, why] = row.children;
    say(name, fleet.name);
    say(state, fleet.state);
    state.className = "badge " + fleet.state;
    for (const known of [...store.policies, fleet.policy]) {
      if (known && ![...policy.options].some((option) => option.value === known)) policy.add(new Option(known));
    }
    if (fleet.policy && document.activeElement !== policy) policy.value = fleet.policy;
    policy.onchange = () => { act({ fleet: fleet.name, action: "policy", policy: policy.value }); policy.blur(); };
    const isOpen = fleet.state === "open";
    say(facts, fleet.slots === undefined ? "" : fleet.running + " of " + fleet.slots + " slots" + memory(fleet.memory) + ", controller " + figure(share(fleet), 2) + " % of a core");
    say(button, isOpen ? "on: hold again" : "off: open all gates");
    button.hidden = fleet.state === "silent";
    button.onclick = () => act({ fleet: fleet.name, action: isOpen ? "on" : "off" });
    say(why, fleet.error || "");
  });
}

const memory = (found) => found ? ", memory " + percent(found.used_bytes / found.limit_bytes) : "";

// CPU of a controller since this page first saw it, in percent of a core.
const firsts = new Map();
function share(fleet) {
  const seen = firsts.get(fleet.name), { since_s, cpu_s } = fleet.controller;
  if (!seen || seen.since_s !== since_s) firsts.set(fleet.name, { since_s, cpu_s, at_s: store.status.at_s });
  const first = firsts.get(fleet.name);
  return 100 * (cpu_s - first.cpu_s) / Math.max(1, store.status.at_s - first.at_s);
}

function makeFleet() {
  const row = make("div", undefined, "fleet"), policy = make("select"), button = make("button");
  policy.setAttribute("aria-label", "Policy");
  button.type = "button";
  row.append(make("b"), make("span"), policy, make("span", "", "dim"), button, make("span", "", "bad"));
  return row;
}
