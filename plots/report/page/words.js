// Figures as words, elements from words, and what the page is about.
const DATA = JSON.parse(document.getElementById("data").textContent);

/// So many digits, at most four after the point.
function digits(value, count = 4) {
  if (value === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.min(Math.max(count - whole, 0), 4));
}
function timeUnit(ns) {
  return ns >= 1e10 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
}
/// "843.1 ms"; in the unit of `scale`, if given.
function timeText(ns, scale = Math.abs(ns)) {
  const [size, unit] = timeUnit(scale);
  return digits(ns / size) + " " + unit;
}
function bytesUnit(bytes) {
  for (const [power, unit] of [[40, "TiB"], [30, "GiB"], [20, "MiB"], [10, "KiB"]])
    if (bytes >= 2 ** power) return [2 ** power, unit];
  return [1, "B"];
}
function bytesText(bytes, scale = Math.abs(bytes)) {
  const [size, unit] = bytesUnit(scale);
  return digits(bytes / size, 3) + " " + unit;
}
const percentText = share => (100 * share).toFixed(1) + " %";

// Its name, as the browser has it.
const SVG_NAMESPACE = Object.assign(document.createElement("div"), {innerHTML: "<svg></svg>"}).firstChild.namespaceURI;

/// An element with attributes, event handlers (functions) and children; null children are left out.
function el(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const node = /^(svg|g|path|line|text|rect|title)$/.test(tag)
    ? document.createElementNS(SVG_NAMESPACE, tag) : document.createElement(tag);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(key, value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, value);
  }
  node.append(...children.flat(3).filter(child => child != null && child !== false));
  return node;
}

/// A file for the reader, made here.
function download(name, type, text) {
  const link = el("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/// [plan of any case]: the plan with its case and what follows from both. time: by the engine that plans of its case
/// are compared by; over: that of the reference plan over it.
const PLANS = DATA.cases.flatMap((report_case, number) => {
  const time = plan => plan[report_case.engine];
  const beside = report_case.plans.find(plan => plan.name === report_case.beside && time(plan));
  return report_case.plans.map((plan, index) => Object.assign(plan, {
    case: report_case, number, index, id: number + "." + index, best: report_case.best === index,
    time: time(plan), over: beside && time(plan) ? time(beside) / time(plan) : undefined,
    left: plan.limit && plan.peaks.length ? Math.min(...plan.peaks.map((peak, r) => (plan.limits[r] ?? plan.limit) - peak)) : undefined,
    title: plan.schedule && plan.schedule.split(",")[0] !== plan.name ? plan.name + ": " + plan.schedule : plan.schedule ?? plan.name,
  }));
});
const bestOf = report_case => report_case.plans[report_case.best ?? 0];

/// No plan of the plan's class is faster, by the engine that the plans of its case are compared by.
function boundOf(plan) {
  const {bound, case: {engine, links_bound}} = plan;
  if (!bound || engine === "measured") return undefined;
  return engine === "simulated" ? Math.max(bound, links_bound ?? bound) : bound;
}

/// "843.1 ms a step, 1.35x of 1f1b, ..."
function headline(plan) {
  if (!plan.time) return [el("b", {}, "No plan: "), plan.reason ?? "has no time"];
  const strong = text => el("b", {}, text);
  const room = plan.left === undefined ? null
    : plan.fits ? ["fits with ", strong(bytesText(plan.left)), " to spare"]
    : [el("span.alarm", {}, "lacks " + bytesText(-plan.left))];
  const parts = [
    [strong(timeText(plan.time)), " a step"],
    plan.over && plan.name !== plan.case.beside && [strong(plan.over.toFixed(2) + "×"), " of " + plan.case.beside],
    plan.gap_text && [strong(plan.gap_text + " %"), ` above the bound of ${plan.bound_class}`],
    room,
  ].filter(part => part);
  return [...parts.flatMap((part, i) => [i ? ", " : "", ...part]), "; " + plan.case.engine];
}
