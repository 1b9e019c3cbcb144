// A plan beside another on one axis of time, and what is known of the plan.
const unpacked = new Map();
/// The plan's trace: 0 = predicted, 1 = measured. null = the page has none.
function traceOf(plan, number = 0) {
  const key = plan.id + ":" + number, packed = plan.case.traces?.[plan.name]?.[number];
  if (packed && !unpacked.has(key)) {
    const trace = unpackTrace(packed);
    trace.looks = looksOf(trace);
    // Of each event the paint, and of a second part 16 times its paint + 1.
    const codes = trace.looks.map(({parts}) => parts[0].paint + (parts[1] ? 16 * (parts[1].paint + 1) : 0));
    trace.paint = Uint8Array.from(trace.kind, own => codes[own]);
    unpacked.set(key, trace);
  }
  return unpacked.get(key) ?? null;
}
const panelOf = (plan, number) => {
  const trace = traceOf(plan, number), compared = trace?.source === plan.case.engine;
  let idle = compared ? plan.times.map(times => 1 - times[0] / times.reduce((a, b) => a + b, 0)) : null;
  if (idle && Math.max(...idle) - Math.min(...idle) < 0.001) idle = null;  // all alike: the head says it
  return trace && {plan, trace, number, title: plan.title, idle,
    note: `${timeText(trace.length)} ${trace.source}` + (compared && plan.bubble !== undefined ? `, bubble ${percentText(plan.bubble)}` : "") + (plan.fits ? "" : ", does not fit") +
      (trace.source !== "measured" && boundOf(plan) ? `, bound of ${plan.bound_class} ${timeText(boundOf(plan))}` : ""), bound: trace.source === "measured" ? 0 : boundOf(plan) ?? 0};
};

/// "F12, stage 3 of rank 1"
function eventWords(trace, event) {
  const own = trace.classes[trace.kind[event]], stages = own.parts.map(part => part[1]);
  if (own.kind === TRANSFER) return `${labelOf(trace, event)}'s ${own.parts[0][0] === 7 ? "value" : "gradient"} from rank ${own.rank} to rank ${own.peer}`;
  if (own.kind === REDUCTION) return `reduction of gradients` + (own.parties.length ? ", ranks " + own.parties.join(", ") : ", rank " + own.rank);
  if (own.kind === COPY) return `copy of microbatch ${trace.first[event]} of stage ${stages[0]} ${own.parts[0][0] === 9 ? "to" : "from"} the host of rank ${own.rank}`;
  if (own.kind === OPTIMIZER) return `optimizer of stage ${stages[0]}, rank ${own.rank}`;
  return `${labelOf(trace, event)} of rank ${own.rank}, stage${stages.length > 1 ? "s" : ""} ${stages.join(" and ")}`;
}

/// Lines about an event; `other`: a panel of the same plan by another engine.
function eventLines(panel, event, other) {
  const {trace} = panel, own = trace.classes[trace.kind[event]], time = trace.end[event] - trace.start[event];
  const lines = [eventWords(trace, event), `${timeText(time)}, from ${timeText(trace.start[event], trace.length)} to ${timeText(trace.end[event], trace.length)}`];
  if (own.bytes) lines.push(bytesText(own.bytes) + (time > 0 ? `, ${digits(own.bytes / time)} GB/s` : ""));
  if (trace.queued[event] > 0) lines.push(`${timeText(trace.queued[event])} in a queue before`);
  if (trace.launch[event] > 0) lines.push(`${timeText(trace.launch[event])} of it launch`);
  if (trace.wait[event] >= 0) lines.push("waited for " + eventWords(trace, trace.wait[event]));
  if (other) {
    const twin = twinOf(panel, event, other);
    if (twin >= 0) {
      const there = other.trace.end[twin] - other.trace.start[twin];
      lines.push(`${other.trace.source} ${timeText(there)}` + (there > 0 ? ` (${trace.source} ${time >= there ? "+" : ""}${percentText(time / there - 1)})` : ""));
    }
  }
  return lines;
}
const nameInTrace = (trace, event) => trace.classes[trace.kind[event]].kind + actionName(trace, event);
function twinOf(panel, event, other) {
  other.byName ??= new Map(Array.from({length: other.trace.count}, (_, i) => [nameInTrace(other.trace, i), i]));
  return other.byName.get(nameInTrace(panel.trace, event)) ?? -1;
}

/// What a chain is made of.
function chainWords(trace, events) {
  const spent = [0, 0, 0, 0, 0], ranks = new Set();
  let computed = 0, idle = 0;
  for (const event of events) {
    const own = trace.classes[trace.kind[event]];
    spent[own.kind] += trace.end[event] - trace.start[event];
    if (own.kind === COMPUTE) ranks.add(own.rank), ++computed;
    idle += Math.max(0, trace.start[event] - (trace.wait[event] < 0 ? 0 : trace.end[trace.wait[event]]));
  }
  const whole = trace.end[events[0]] || 1, share = time => `${timeText(time, whole)} (${percentText(time / whole)})`;
  const parts = [`computing ${share(spent[COMPUTE])} on ${ranks.size} rank${ranks.size === 1 ? "" : "s"}`];
  if (spent[TRANSFER]) parts.push(`transfers ${share(spent[TRANSFER])}`);
  if (spent[REDUCTION]) parts.push(`reductions ${share(spent[REDUCTION])}`);
  if (spent[COPY]) parts.push(`copies ${share(spent[COPY])}`);
  if (spent[OPTIMIZER]) parts.push(`optimizer ${share(spent[OPTIMIZER])}`);
  if (idle > whole / 1000) parts.push(`between them ${share(idle)}`);
  return `${events.length} events one after the other from the start: ` + parts.join(", ");
}

/// The component: elements in `box`, which stay; show(chosen, reference) changes what they show.
function planView(box, tip) {
  const options = {transfers: true, memory: true, links: false};
  const canvas = el("canvas", {tabindex: 0, role: "application", "aria-describedby": "timeline-help"}), pen = canvas.getContext("2d", {alpha: false});
  const outline = el("div.outline", {hidden: true}), cursor = el("div.cursor", {hidden: true});
  const said = el("p.said", {"aria-live": "polite"}), wrap = el("div.timeline", {}, canvas, outline, cursor);
  const timeline = {layout: null, view: {from: 0, to: 1}, end: 1, panels: [], marked: null, focus: null};
  let queued = 0;
  const redraw = () => { queued ||= requestAnimationFrame(() => { queued = 0; timeline.draw(); }); };

  timeline.draw = () => {
    if (!timeline.panels.length) return;
    const dpr = Math.min(devicePixelRatio || 1, 2), {layout} = timeline, width = Math.round(layout.width * dpr), height = Math.round(layout.height * dpr);
    if (canvas.width !== width || canvas.height !== height) canvas.width = width, canvas.height = height;
    canvas.style.height = layout.height + "px";
    pen.setTransform(dpr, 0, 0, dpr, 0, 0);
    // What is far out of sight is drawn when it comes near.
    const top = -canvas.getBoundingClientRect().top;
    timeline.band = [top - 300, top + innerHeight + 300];
    drawTimeline(pen, layout, timeline.view, timeline.marked, timeline.colors ??= pageColors(), timeline.band);
  };
  const moved = () => {
    const top = -canvas.getBoundingClientRect().top, {band, layout} = timeline;
    if (band && (Math.max(top, 0) < band[0] || Math.min(top + innerHeight, layout.height) > band[1])) redraw();
  };
  addEventListener("scroll", moved, {passive: true});
  new ResizeObserver(moved).observe(document.body);  // what stands above may get shorter
  /// What is seen now as an SVG of that width, for papers, slides and print.
  const drawing = (width, shown) => {
    const layout = layoutOf(timeline.panels, width, shown), svg = svgPen(layout.width, layout.height, document.createElement("canvas").getContext("2d"));
    drawTimeline(svg, layout, timeline.view, timeline.marked, PAPER_COLORS);
    return svg.document();
  };
  const printed = el("div.printed");
  const toPaper = () => { if (timeline.panels.length) printed.innerHTML = drawing(860, {...options, memory: timeline.panels[0].trace.ranks <= 4}); };
  addEventListener("afterprint", () => printed.replaceChildren());
  timeline.show = view => { timeline.view = view; outline.hidden = true; redraw(); };
  timeline.relayout = () => {
    if (!timeline.panels.length) return;
    timeline.layout = layoutOf(timeline.panels, Math.max(wrap.clientWidth, 280), options);
    redraw();
  };
  const twinPanel = panel => timeline.panels.find(other => other !== panel && other.plan === panel.plan);
  const outlineAt = (row, event) => {
    const {layout, view} = timeline, {trace} = row.panel, perNs = (layout.right - layout.left) / (view.to - view.from);
    const x0 = Math.max(layout.left, layout.left + (trace.start[event] - view.from) * perNs), x1 = Math.min(layout.right, layout.left + (trace.end[event] - view.from) * perNs);
    const sent = isBeside(trace.classes[trace.kind[event]]), y = sent ? row.sentY : row.y;
    outline.hidden = x1 < layout.left || x0 > layout.right;
    outline.style.cssText = `left:${x0 - 1}px;top:${y - 1}px;width:${Math.max(x1 - x0, 2)}px;height:${(sent ? row.sentHeight : row.height)}px`;
  };
  const placeLines = place => {
    if (!place) return null;
    if (place.strip) {
      const {time, value} = place.strip.samples;
      let i = 0;
      while (i + 1 < time.length && time[i + 1] <= place.time) ++i;
      const now = time.length && time[i] <= place.time ? value[i] : 0;
      return [(place.strip.memory ? `rank ${place.strip.name}: ${bytesText(now)}` : `${place.strip.name}: ${percentText(now / 1000)} of ${digits(place.strip.samples.capacity / 1e9)} GB/s`) + ` at ${timeText(place.time, timeline.end)}`];
    }
    const {trace} = place.row.panel;
    if (place.event !== undefined) return eventLines(place.row.panel, place.event, twinPanel(place.row.panel));
    return [`rank ${place.row.rank} is idle for ${timeText(place.gap.to - place.gap.from)}`,
      place.next < 0 ? "after its last action" : `until ${eventWords(trace, place.next)}` + (trace.wait[place.next] >= 0 ? `, which waits for ${eventWords(trace, trace.wait[place.next])}` : "")];
  };
  timeline.hover = (place, event) => {
    tip.show(placeLines(place), event);
    cursor.hidden = !event;
    if (event) cursor.style.left = event.clientX - canvas.getBoundingClientRect().left + "px";
    if (place?.event !== undefined) outlineAt(place.row, place.event);
    else outline.hidden = true;
  };
  timeline.mark = (panel, event, before = "") => {
    const events = chain(panel.trace, event);
    timeline.marked = {panel, events};
    said.replaceChildren(el("b", {}, before + eventWords(panel.trace, event) + ": "), chainWords(panel.trace, events) + ". ",
      el("button", {type: "button", click: () => timeline.clear()}, "show all again"));
    redraw();
  };
  timeline.choose = place => {
    const event = place?.event ?? place?.next ?? -1;
    if (event < 0 || !place.row) return timeline.clear();
    timeline.focus = {row: place.row, event};
    timeline.mark(place.row.panel, event, place.gap ? `idle ${timeText(place.gap.to - place.gap.from)} before ` : "");
  };
  timeline.clear = () => { timeline.marked = null; said.replaceChildren(); redraw(); };
  /// With the keyboard: to the event `by` further on its rank, or at about the same time `rank` rows below.
  timeline.step = (by, rank, choose) => {
    const rows = timeline.layout.rows, {view} = timeline;
    let row = timeline.focus && rows.find(one => one.panel === timeline.focus.row.panel && one.rank === timeline.focus.row.rank) || rows[0];
    const at = timeline.focus ? row.panel.trace.start[timeline.focus.event] : view.from;
    if (timeline.focus) row = rows[Math.min(Math.max(rows.indexOf(row) + rank, 0), rows.length - 1)];
    const {trace} = row.panel, events = trace.rows[row.rank].compute;
    if (!events.length) return;
    let index = timeline.focus && !rank ? events.indexOf(timeline.focus.event) : Math.min(firstAt(trace, events, at), events.length - 1);
    if (timeline.focus && !rank) index = Math.min(Math.max(index + by, 0), events.length - 1);
    while (rank && index + 1 < events.length && trace.end[events[index]] <= at) ++index;
    const event = events[Math.max(index, 0)];
    timeline.focus = {row, event};
    if (choose) return timeline.mark(row.panel, event);
    const span = view.to - view.from;
    if (trace.start[event] < view.from || trace.end[event] > view.to) {
      timeline.view = limited({from: trace.start[event] - span / 3, to: trace.start[event] + 2 * span / 3}, timeline.end);
      redraw();
    }
    outlineAt(row, event);
    said.replaceChildren(eventLines(row.panel, event, twinPanel(row.panel)).join("; "));
  };
  attachPointer(canvas, timeline);

  const zoom = factor => timeline.show(zoomed(timeline.view, factor, (timeline.view.from + timeline.view.to) / 2, timeline.end));
  const toggle = (key, label) => el("button.chip", {type: "button", "aria-pressed": String(options[key]), click: event => {
    options[key] = !options[key];
    event.currentTarget.setAttribute("aria-pressed", String(options[key]));
    timeline.relayout();
  }}, label);
  const beside = el("select", {"aria-label": "plan to compare with"});
  const linksToggle = toggle("links", "links");
  const bar = el("div.bar", {}, el("label", {}, "beside ", beside),
    el("div.group", {role: "group", "aria-label": "zoom"},
      el("button.chip", {type: "button", "aria-label": "zoom in", click: () => zoom(1 / 2)}, "+"), el("button.chip", {type: "button", "aria-label": "zoom out", click: () => zoom(2)}, "−"),
      el("button.chip", {type: "button", click: () => timeline.show(limited({from: 0, to: 1.02 * timeline.end}, timeline.end))}, "whole step")),
    el("div.group", {}, toggle("transfers", "transfers"), toggle("memory", "memory"), linksToggle,
      el("button.chip", {type: "button", click: () => timeline.panels.length && timeline.mark(timeline.panels[0], lastEvent(timeline.panels[0].trace), "critical path to ")}, "critical path")),
    el("div.group", {}, el("button.chip", {type: "button", title: "what is seen now, as a drawing", click: () => download("timeline.svg", "image/svg+xml", drawing(timeline.layout.width, options))}, "SVG"),
      el("button.chip", {type: "button", title: "the page as a document: print, and save as PDF", click: () => print()}, "PDF"),
      el("button.chip", {type: "button", title: "all events of both, in ui.perfetto.dev (network)", click: () => {
        if (!openInPerfetto(DATA.title, chromeTrace(timeline.panels))) said.textContent = "The browser opens no window; trace.json can be dropped into ui.perfetto.dev.";
      }}, "Perfetto")));
  const legend = el("div.legend");
  const help = el("p.muted", {id: "timeline-help"}, "Drag to move; Ctrl and wheel, or the wheel after a click, to zoom; two fingers on a phone. Click on a box or a gap for all that it waited for. Keys: + − 0 zoom, ← → move, , . step from event to event, ↑ ↓ rank, Enter its chain, Esc all.");
  const none = el("p.muted", {hidden: true}, "The page has no trace of this plan; the files beside it have.");
  box.append(bar, legend, wrap, printed, said, none, help);
  new ResizeObserver(() => timeline.layout && Math.abs(timeline.layout.width - wrap.clientWidth) > 1 && timeline.relayout()).observe(wrap);

  const show = (chosen, reference, number) => {
    const panels = [panelOf(chosen, 0), reference && panelOf(reference, number)].filter(panel => panel);
    timeline.panels = panels;
    timeline.marked = timeline.focus = null;
    outline.hidden = true;
    said.replaceChildren();
    none.hidden = panels.length > 0 || !chosen.time;
    wrap.hidden = bar.hidden = help.hidden = legend.hidden = !panels.length;
    if (!panels.length) return;
    timeline.end = Math.max(...panels.map(panel => panel.trace.length), 1);
    timeline.view = limited({from: 0, to: 1.02 * timeline.end}, timeline.end);
    linksToggle.hidden = !panels.some(panel => panel.trace.links.length);
    canvas.setAttribute("aria-label", "timeline of " + panels.map(panel => `${panel.title}, ${panel.note}`).join("; above ") );
    const paints = new Set(panels.flatMap(panel => panel.trace.looks.flatMap(look => look.parts.map(part => part.paint))));
    legend.replaceChildren(...DATA.paints.map(([fill, , letter, name], i) => paints.has(i) && el("span", {}, el("i", {style: `background:${fill}`}), (i > 6 ? "" : letter + " ") + name)).filter(Boolean),
      el("span.muted", {}, "paler: a later stage of the rank" + (panels.some(panel => panel.idle) ? "; right: share of its step that a rank does not compute" : "")));
    timeline.relayout();
  };
  return {show, beside, timeline, toPaper, recolor: () => { timeline.colors = null; redraw(); }};
}
