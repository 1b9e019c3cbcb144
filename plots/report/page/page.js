// The page: what is chosen, and who is told.
const state = {
  chosen: null, reference: null, referenceTrace: 0, offFamilies: new Set(), offValues: {}, onlyFits: false, within: null,
  sort: {column: -1, up: true}, cases: DATA.cases.length,
  x: "memory", y: DATA.cases.length > 1 && Y_FIGURES.includes("over") ? "over" : Y_FIGURES[0] ?? "time",
};
const byId = new Map(PLANS.map(plan => [plan.id, plan]));

/// A note at the pointer.
const tip = (() => {
  const note = el("div.tip", {role: "tooltip", hidden: true});
  document.body.append(note);
  return {show(lines, event) {
    note.hidden = !lines || !event;
    if (note.hidden) return;
    note.replaceChildren(...lines.map((line, i) => el(i ? "div" : "b", {}, line)));
    const {width, height} = note.getBoundingClientRect(), room = document.documentElement.clientWidth;
    note.style.left = Math.max(4, event.clientX + 14 + width > room ? event.clientX - width - 10 : event.clientX + 14) + scrollX + "px";
    note.style.top = (event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16) + scrollY + "px";
  }};
})();

function choicesOf(figures, chosen, label, change) {
  const select = el("select", {"aria-label": label, change: event => change(event.target.value)},
    figures.map(key => el("option", {value: key, selected: key === chosen}, FIGURES[key].name)));
  return select;
}

/// Fills #instrument.
function openInstrument(root) {
  const lead = el("p.headline"), filters = el("div.filters"), scatter = el("div.scatter"), table = el("div.table", {tabindex: -1}), count = el("span.muted");
  const details = el("div"), files = el("div.bar"), below = el("div");
  const axes = el("div.bar", {}, choicesOf(Y_FIGURES, state.y, "up", value => { state.y = value; redrawPlans(); }), " over ", choicesOf(X_FIGURES, state.x, "right", value => { state.x = value; redrawPlans(); }));
  const csv = el("button.chip", {type: "button", click: () => download(DATA.title + ".csv", "text/csv", plansCsv(shown().filter(plan => !state.within || state.within(plan))))}, "CSV");
  const planTitle = el("h2", {id: "plan"});
  root.append(lead, filters, el("div.board", {}, el("div", {hidden: PLANS.filter(plan => plan.time).length < 2}, axes, scatter), el("div", {}, el("div.bar", {}, count, csv), table)), planTitle, files, below);
  const view = planView(below, tip);
  below.after(details);

  const shown = () => PLANS.filter(plan => isShown(plan, state));
  const mark = plan => {
    for (const node of root.querySelectorAll("[data-plan].hover")) node.classList.remove("hover");
    if (plan) for (const node of root.querySelectorAll(`[data-plan="${plan.id}"]`)) node.classList.add("hover");
  };
  const summary = plan => [[plan.title, caseWords(plan)].filter(Boolean).join("; "),
    [plan.time && timeText(plan.time), plan.over && plan.over.toFixed(2) + "× of " + plan.case.beside, plan.memory && bytesText(plan.memory), plan.fits ? "" : "does not fit"].filter(Boolean).join(", ")];
  const hooks = {
    hover(plan, event, quiet) { mark(plan); tip.show(plan && !quiet ? summary(plan) : null, event); },
    say(words, event) { tip.show(words ? [words] : null, event); },
    choose(plan) { choose(plan); },
    brush(test) { state.within = test; redrawPlans(); },
    sort(column) { state.sort = {column, up: state.sort.column === column ? !state.sort.up : !!COLUMNS[column].plan || COLUMNS[column].head !== "samples/s"}; redrawPlans(); },
    filter() { redrawPlans(); },
  };
  function redrawPlans() {
    const plans = shown(), within = plans.filter(plan => !state.within || state.within(plan) && plan.time);
    const focused = document.activeElement, label = filters.contains(focused) ? focused.textContent : null;
    drawFilters(filters, state, hooks);
    if (label) [...filters.querySelectorAll("button")].find(button => button.textContent === label)?.focus();
    drawTable(table, within, state, hooks);
    drawScatter(scatter, plans.filter(plan => plan.time), state, hooks);
    count.textContent = within.length === PLANS.length ? PLANS.length === 1 ? "1 plan" : `${PLANS.length} plans` : `${within.length} of ${PLANS.length} plans`;
  }
  function redrawMarks() {
    markRows(table, state);
    drawScatter(scatter, shown().filter(plan => plan.time), state, hooks);
  }
  function fillBeside() {
    const options = [["", "nothing", null, 0]], plan = state.chosen;
    if (traceOf(plan, 1)) options.push([plan.id + ":1", "itself, " + traceOf(plan, 1).source, plan, 1]);
    for (const other of plan.case.plans)
      if (other !== plan && other.time)
        for (const [number, packed] of (plan.case.traces?.[other.name] ?? []).entries()) options.push([other.id + ":" + number, other.title + (number ? ", " + packed.source : ""), other, number]);
    const value = state.reference ? state.reference.id + ":" + state.referenceTrace : "";
    view.beside.replaceChildren(...options.map(([key, text]) => el("option", {value: key, selected: key === value}, text)));
    view.beside.onchange = () => {
      const [, , other, number] = options.find(([key]) => key === view.beside.value);
      state.reference = other, state.referenceTrace = number;
      view.show(state.chosen, other, number);
      redrawMarks();
    };
  }
  function choose(plan, quiet = false) {
    state.chosen = plan;
    const same = plan.case.plans, usual = same.find(other => other.name === plan.case.beside && other.time);
    const measured = traceOf(plan, 1);
    state.reference = measured ? plan : usual && usual !== plan ? usual : same.find(other => other !== plan && other.best) ?? null;
    state.referenceTrace = measured ? 1 : 0;
    lead.replaceChildren(...(KEYS.length ? [el("span.muted", {}, caseWords(plan) + ": ")] : []), ...headline(plan).flat(2));
    planTitle.replaceChildren(plan.title, el("span.muted", {}, " " + caseWords(plan) + " "),
      el("a.more", {href: "#case-" + plan.number, click: () => setTimeout(unfold)}, "how sure, what was tried"));
    files.replaceChildren(...planFiles(plan));
    files.hidden = !files.firstChild;
    details.replaceChildren(...planDetails(plan).filter(part => part));
    fillBeside();
    view.show(plan, state.reference, state.referenceTrace);
    if (table.firstChild) redrawMarks();
    else redrawPlans();
    if (!quiet && location.protocol !== "about:") history.replaceState(null, "", "#plan-" + plan.id);
  }
  const asked = /^#plan-(\d+\.\d+)$/.exec(location.hash)?.[1];
  const first = DATA.cases.find(one => one.best !== undefined) ?? DATA.cases[0];
  choose(byId.get(asked) ?? bestOf(first), true);
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) width = innerWidth, redrawPlans(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.recolor());
  return {choose, view, hooks, redrawPlans};
}

/// Tables of the folds below: a heading sorts.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, column) => {
    const button = el("button", {type: "button"}, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (x === "" || y === "") return (x === "") - (y === "");  // nothing comes last, both ways
        const order = isNaN(x) || isNaN(y) ? x.localeCompare(y, undefined, {numeric: true}) : x - y;
        return up ? order : -order;
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
// A link to what lies in a fold opens it.
const unfold = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = target; part; part = part.parentElement)
    if (part.tagName === "DETAILS") part.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", unfold);
if (DATA.cases.length === 1) document.getElementById("case-0").open = true;
// Headline and tables are painted before the instrument is built, which takes longer; paper has it, too.
let instrument = null;
const build = () => {
  if (instrument || !PLANS.length) return;
  instrument = openInstrument(document.getElementById("instrument"));
  unfold();
};
requestAnimationFrame(() => setTimeout(build));
addEventListener("beforeprint", () => { build(); instrument?.view.toPaper(); });
unfold();
