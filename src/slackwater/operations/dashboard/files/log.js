// The decisions, newest first, and what the kernel was told.
const SHOWN = 150;

function drawLog() {
  const list = byId("log");
  if (byId("hold-log").checked) return;
  const fresh = store.fresh.splice(0).slice(-SHOWN);
  for (const one of fresh) {
    const others = one.waiting.join(", ") + (one.others ? " and " + one.others + " more" : "");
    const item = make("li");
    item.append(make("span", moment(one.at_s), "dim"), make("b", one.query), make("span", one.reason + (one.enforced ? "" : " (dry run)")),
      make("span", "; waited " + figure(one.waited_s, 2) + " s" + (others ? "; also waiting: " + others : ""), "dim"));
    list.prepend(item);
  }
  while (list.children.length > SHOWN) list.lastChild.remove();
}

function drawKernel() {
  const known = store.status.middlewares, text = JSON.stringify(known.map((one) => [one.name, one.error, one.policies, one.engines]));
  byId("kernel").hidden = !known.length;
  if (byId("kernel").drawn === text) return;
  byId("kernel").drawn = text;
  byId("middlewares").replaceChildren(...known.map((one) => {
    const box = make("details");
    box.open = true;
    const engines = Object.entries(one.engines || {}).map(([name, engine]) => name + ": " + (engine.failing || engine.operators + " operators, " + engine.threads + " threads"));
    box.append(make("summary", one.name + (one.error ? ": " + one.error : "; " + engines.join("; "))));
    for (const [name, policy] of Object.entries(one.policies || {})) {
      box.append(make("p", name + ": " + (policy.active ? "active" : "not active") + ", " + policy.settings + " settings", "dim"));
      const list = make("ul");
      for (const line of policy.plan || []) list.append(make("li", line));
      box.append(list);
    }
    return box;
  }));
}
