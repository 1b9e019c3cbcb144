// The table of plans and its filters.
const keyOf = (plan, key) => plan.case.keys.find(([name]) => name === key)?.[1] ?? "";
/// What tells cases apart.
const KEYS = [...new Set(DATA.cases.flatMap(report_case => report_case.keys.map(([key]) => key)))].filter(key => new Set(PLANS.map(plan => keyOf(plan, key))).size > 1);
const shortKey = key => ({devices: "D", microbatches: "N"})[key] ?? key.replace(/^.*\./, "").replace(/_/g, " ");
/// "[1f1b]" as in YAML, without what is for YAML alone.
const shortValue = value => value.replace(/^\[(.*)\]$/, "$1").replace(/^["'](.*)["']$/, "$1");
/// "D 4, N 8", if there are other cases.
const caseWords = plan => KEYS.map(key => shortKey(key) + " " + shortValue(keyOf(plan, key))).join(", ");

const ms = ns => ns === undefined ? "" : digits(ns / 1e6);
const MEMORY_UNIT = bytesUnit(Math.min(...PLANS.map(plan => plan.memory || Infinity)));  // in a larger one it would be lost
const inUnit = bytes => bytes === undefined ? "" : (bytes / MEMORY_UNIT[0]).toFixed(1);
/// Columns that some plan fills. of: what it is sorted by.
const COLUMNS = [
  ...KEYS.map(key => ({head: shortKey(key), hint: key, of: plan => { const v = keyOf(plan, key); return v !== "" && !isNaN(v) ? Number(v) : shortValue(v); }, text: plan => shortValue(keyOf(plan, key)), number: PLANS.every(plan => !isNaN(keyOf(plan, key)))})),
  {head: "plan", of: plan => plan.name, plan: true, text: plan => plan.title},
  {head: "step, ms", hint: "by the engine that plans are compared by", of: plan => plan.time, text: plan => ms(plan.time), number: true},
  {head: "vs " + (DATA.cases[0]?.beside ?? ""), of: plan => plan.over, text: plan => plan.over ? plan.over.toFixed(2) + "×" : "", number: true},
  {head: "above bound", of: plan => plan.gap, text: plan => plan.gap_text ? plan.gap_text + " %" : "", number: true},
  {head: "bubble", of: plan => plan.bubble, text: plan => plan.bubble === undefined ? "" : percentText(plan.bubble), number: true},
  {head: "samples/s", of: plan => plan.rate, text: plan => plan.rate === undefined ? "" : digits(plan.rate), number: true, wide: true},
  {head: "latency, ms", hint: "the longest of a microbatch, from its first F to the end of its last", of: plan => plan.latency, text: plan => ms(plan.latency), number: true},
  {head: DATA.memory + ", " + MEMORY_UNIT[1], of: plan => plan.memory, text: plan => inUnit(plan.memory), number: true},
  {head: "to spare", hint: "what the fullest device has left", of: plan => plan.left, text: plan => plan.left === undefined ? "" : bytesText(plan.left), number: true, alarm: plan => plan.left < 0},
  {head: "p95, ms", of: plan => plan.simulated_p95 ?? plan.estimated_p95, text: plan => ms(plan.simulated_p95 ?? plan.estimated_p95), number: true, wide: true},
  ...["estimated", "simulated", "measured"].map(engine => ({head: engine + ", ms", of: plan => plan[engine], text: plan => ms(plan[engine]), number: true, wider: engine !== "measured", engine})),
  {head: "error", hint: "predicted over measured, less one", of: plan => plan.error, text: plan => plan.error === undefined ? "" : (plan.error > 0 ? "+" : "") + percentText(plan.error), number: true},
].filter(column => PLANS.some(plan => column.of(plan) !== undefined && column.of(plan) !== "") &&
  !(column.engine && PLANS.every(plan => plan[column.engine] === undefined || plan.case.engine === column.engine)));

function sorted(plans, sort) {
  const column = COLUMNS[sort.column];
  return plans.map((plan, i) => [column ? column.of(plan) : undefined, plan, i]).sort(([a, p, i], [b, q, j]) => {
    if (!column) return p.number - q.number || !p.time - !q.time || q.fits - p.fits || p.time - q.time || i - j;
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined) || i - j;
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), undefined, {numeric: true});
    return sort.up ? order || i - j : -order || i - j;
  }).map(([, plan]) => plan);
}

/// hooks as of drawScatter(), and sort(column).
function drawTable(box, plans, state, hooks) {
  const rows = sorted(plans, state.sort).map((plan, i, all) => {
    const cells = COLUMNS.map(column => {
      if (column.plan)
        return el("td", {}, el("button.plan", {type: "button", "aria-label": plan.title + (plan.best ? ", best" : ""), click: () => hooks.choose(plan),
          keydown: event => moveFocus(event, box)},
          plan.time ? markIcon(plan) : null, plan.title, plan.best ? el("span.star", {title: "the fastest that fits"}, " ★") : null), plan.time ? null : el("div.muted", {}, plan.reason ?? plan.failure ?? ""));
      const cell = document.createElement("td");  // most of the page's elements
      cell.className = (column.number ? "number " : "") + (column.wide ? "wide-only " : "") + (column.wider ? "wider-only " : "") + (column.alarm?.(plan) ? "alarm" : "");
      cell.textContent = column.text(plan);
      return cell;
    });
    const classes = (plan.best ? ".best" : "") + (i && plan.number !== all[i - 1].number && state.sort.column < 0 ? ".first" : "");
    return el("tr" + classes, {"data-plan": plan.id, pointerenter: event => hooks.hover(plan, event, true), pointerleave: () => hooks.hover(null),
      click: event => event.target.closest("button") || hooks.choose(plan)}, cells);
  });
  const heads = COLUMNS.map((column, i) => el("th" + (column.number ? ".number" : "") + (column.wide ? ".wide-only" : "") + (column.wider ? ".wider-only" : ""),
    {scope: "col", title: column.hint, "aria-sort": state.sort.column === i ? state.sort.up ? "ascending" : "descending" : null},
    el("button", {type: "button", click: () => hooks.sort(i)}, column.head)));
  const table = el("table.plans", {"aria-label": "plans"}, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows));
  const focused = document.activeElement?.closest?.("tr[data-plan]")?.dataset.plan, scroll = box.scrollTop;
  box.replaceChildren(table);
  if (scroll) box.scrollTop = scroll;
  markRows(box, state);
  if (focused) box.querySelector(`tr[data-plan="${focused}"] button`)?.focus({preventScroll: true});
}

/// Which rows are the chosen plan and the one beside it.
function markRows(box, state) {
  for (const row of box.querySelectorAll("tbody tr")) {
    const plan = byId.get(row.dataset.plan);
    row.classList.toggle("chosen", plan === state.chosen);
    row.classList.toggle("reference", plan === state.reference);
    row.querySelector("button").setAttribute("aria-pressed", String(plan === state.chosen));
  }
}

/// Up and down move along the rows.
function moveFocus(event, box) {
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (!step) return;
  event.preventDefault();
  const buttons = [...box.querySelectorAll("button.plan")];
  buttons[buttons.indexOf(event.currentTarget) + step]?.focus();
}

/// Chips that take values away; hooks.filter() after a change.
function drawFilters(box, state, hooks) {
  const chip = (label, on, toggle, mark = null, hint = null) =>
    el("button.chip", {type: "button", "aria-pressed": String(on), title: hint, click: () => { toggle(); hooks.filter(); }}, mark, label);
  // The first click leaves one alone, others join it; none left is all.
  const pick = (all, off, value) => () => {
    if (!off.size) all.forEach(other => other === value || off.add(other));
    else if (!off.delete(value)) off.add(value);
    if (off.size === all.length) off.clear();
  };
  const groups = [];
  if (FAMILIES.length > 1)
    groups.push(["schedules", FAMILIES.map(family => chip(family, !state.offFamilies.has(family), pick(FAMILIES, state.offFamilies, family), markIcon({family, fits: true})))]);
  for (const key of KEYS) {
    const values = [...new Set(PLANS.map(plan => keyOf(plan, key)))];
    const off = state.offValues[key] ??= new Set();
    groups.push([shortKey(key), values.map(value => chip(shortValue(value), !off.has(value), pick(values, off, value)))]);
  }
  if (PLANS.some(plan => !plan.fits))
    groups.push(["memory", [chip("only what fits", state.onlyFits, () => { state.onlyFits = !state.onlyFits; })]]);
  if (state.within) groups.push(["area", [chip("✕ marked area", true, () => { state.within = null; })]]);
  box.replaceChildren(...groups.map(([name, chips]) => el("div.group", {role: "group", "aria-label": name}, el("span.muted", {}, name), chips)));
}

const isShown = (plan, state) => !state.offFamilies.has(plan.family) && !(state.onlyFits && !plan.fits) &&
  KEYS.every(key => !state.offValues[key]?.has(keyOf(plan, key)));

/// The table as a file, all columns.
function plansCsv(plans) {
  const quoted = text => /[",\n]/.test(text) ? '"' + String(text).replace(/"/g, '""') + '"' : text;
  const fields = ["name", "schedule", "devices", "microbatches", "size", "estimated", "simulated", "measured", "over", "gap", "bubble", "rate", "memory", "limit", "fits", "cuts", "reason"];
  const head = ["case", "plan", "schedule", "devices", "microbatches", "microbatch_size", "estimated_ns", "simulated_ns", "measured_ns",
    "speed_over_reference", "gap", "bubble", "samples_per_s", DATA.memory + "_bytes", "limit_bytes", "fits", "cuts", "reason"];
  return [head, ...plans.map(plan => [plan.case.name, ...fields.map(field => plan[field] ?? "")])].map(row => row.map(quoted).join(",")).join("\n") + "\n";
}
