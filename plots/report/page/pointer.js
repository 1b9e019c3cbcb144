// Moving about in a timeline: wheel, drag, two fingers, keys; what lies under the pointer.

/// What is at a place: {row, event}, or {row, gap, next} where the rank is idle (next: the event that ends it, -1 = none),
/// or {strip}; null = nothing.
function placeAt(layout, view, px, py) {
  const time = view.from + (px - layout.left) / (layout.right - layout.left) * (view.to - view.from);
  if (px < layout.left - 2 || px > layout.right + 2) return null;
  for (const row of layout.rows) {
    if (py < row.y || py > row.sentY + row.sentHeight) continue;
    const sent = py > row.sentY, {trace} = row.panel, events = trace.rows[row.rank][sent ? "sent" : "compute"];
    const slack = 1.5 * (view.to - view.from) / (layout.right - layout.left);
    let next = -1, from = 0, near = -1;
    for (let i = firstAt(trace, events, time - slack); i < events.length; ++i) {
      const event = events[i];
      if (trace.start[event] > time) {
        if (sent && near < 0 && trace.start[event] < time + slack) near = event;
        next = event;
        break;
      }
      if (trace.end[event] >= time) return {row, event};
      if (sent && trace.end[event] >= time - slack) near = event;
      from = Math.max(from, trace.end[event]);
    }
    if (sent) return near >= 0 ? {row, event: near} : null;
    if (!from && next < 0 || time < 0 || time > trace.length) return null;
    return {row, gap: {from, to: next < 0 ? trace.length : trace.start[next]}, next};
  }
  const strip = layout.strips.find(one => one.samples && py >= one.y && py <= one.y + one.height);
  return strip ? {strip, time} : null;
}

/// The part of the time axis that is seen: never before 0 or much after `end`, never less than a few ns.
function limited(view, end) {
  const span = Math.min(Math.max(view.to - view.from, Math.max(end / 1e7, 20)), 1.02 * end);
  const from = Math.min(Math.max(view.from, -0.01 * span), Math.max(1.02 * end - span, -0.01 * span));
  return {from, to: from + span};
}
function zoomed(view, factor, at, end) {
  return limited({from: at - (at - view.from) * factor, to: at + (view.to - at) * factor}, end);
}

/// timeline: {layout, view, end, show(view), hover(place, event), choose(place), clear(), step(by, rank)}
function attachPointer(canvas, timeline) {
  const timeAt = px => {
    const {layout, view} = timeline;
    return view.from + (px - layout.left) / (layout.right - layout.left) * (view.to - view.from);
  };
  const offset = event => {
    const frame = canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top];
  };
  const fingers = new Map();
  let start = null;
  canvas.addEventListener("wheel", event => {
    const active = event.ctrlKey || event.metaKey || document.activeElement === canvas;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (!active && !sideways) return;
    event.preventDefault();
    const {view, layout} = timeline, unit = event.deltaMode === 1 ? 16 : 1;
    if (sideways) {
      const by = (event.deltaX || event.deltaY) * unit / (layout.right - layout.left) * (view.to - view.from);
      timeline.show(limited({from: view.from + by, to: view.to + by}, timeline.end));
    } else {
      timeline.show(zoomed(view, Math.exp(event.deltaY * unit / 400), timeAt(offset(event)[0]), timeline.end));
    }
  }, {passive: false});
  canvas.addEventListener("pointerdown", event => {
    fingers.set(event.pointerId, offset(event));
    if (event.isTrusted) canvas.setPointerCapture(event.pointerId);
    start = {view: timeline.view, fingers: [...fingers.values()], moved: false};
  });
  canvas.addEventListener("pointermove", event => {
    const at = offset(event);
    if (!fingers.has(event.pointerId)) return timeline.hover(placeAt(timeline.layout, timeline.view, ...at), event);
    fingers.set(event.pointerId, at);
    const now = [...fingers.values()], {layout} = timeline, perPixel = (start.view.to - start.view.from) / (layout.right - layout.left);
    if (now.length === 1) {
      const by = now[0][0] - start.fingers[0][0];
      if (Math.abs(by) > 4 || start.moved) {
        start.moved = true;
        canvas.classList.add("dragged");
        timeline.hover(null);
        timeline.show(limited({from: start.view.from - by * perPixel, to: start.view.to - by * perPixel}, timeline.end));
      }
    } else {
      start.moved = true;
      const wide = fingers => Math.max(20, Math.abs(fingers[0][0] - fingers[1][0])), middle = fingers => (fingers[0][0] + fingers[1][0]) / 2;
      const factor = wide(start.fingers) / wide(now), at = start.view.from + (middle(start.fingers) - layout.left) * perPixel;
      const from = at - (middle(now) - layout.left) * perPixel * factor;
      timeline.show(limited({from, to: from + (start.view.to - start.view.from) * factor}, timeline.end));
    }
  });
  const up = event => {
    if (!fingers.delete(event.pointerId)) return;
    canvas.classList.remove("dragged");
    if (event.type === "pointerup" && start && !start.moved && !fingers.size) timeline.choose(placeAt(timeline.layout, timeline.view, ...offset(event)));
    start = fingers.size ? {view: timeline.view, fingers: [...fingers.values()], moved: true} : null;
  };
  for (const type of ["pointerup", "pointercancel"]) canvas.addEventListener(type, up);
  canvas.addEventListener("pointerleave", () => timeline.hover(null));
  canvas.addEventListener("dblclick", event => timeline.show(zoomed(timeline.view, 0.4, timeAt(offset(event)[0]), timeline.end)));
  canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const {view, end} = timeline, span = view.to - view.from, middle = (view.from + view.to) / 2;
    const shifted = by => timeline.show(limited({from: view.from + by * span, to: view.to + by * span}, end));
    const keys = {
      "+": () => timeline.show(zoomed(view, 1 / 1.5, middle, end)), "=": () => timeline.show(zoomed(view, 1 / 1.5, middle, end)),
      "-": () => timeline.show(zoomed(view, 1.5, middle, end)), "0": () => timeline.show(limited({from: 0, to: 1.02 * end}, end)),
      Home: () => timeline.show(limited({from: 0, to: span}, end)), End: () => timeline.show(limited({from: end - span, to: end}, end)),
      ArrowLeft: () => event.shiftKey ? timeline.step(-1, 0) : shifted(-0.15), ArrowRight: () => event.shiftKey ? timeline.step(1, 0) : shifted(0.15),
      ArrowUp: () => timeline.step(0, -1), ArrowDown: () => timeline.step(0, 1),
      ",": () => timeline.step(-1, 0), ".": () => timeline.step(1, 0),
      Enter: () => timeline.step(0, 0, true), Escape: () => timeline.clear(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}
