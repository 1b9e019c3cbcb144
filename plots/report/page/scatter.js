// All plans as points: any two figures; dragging a rectangle leaves the plans in it in the table.
const perCase = plan => plan.case.plans.find(other => other.name === plan.case.beside);
const FIGURES = {
  memory: {name: DATA.memory === "peak" ? "largest peak memory" : "most memory reserved, modelled", of: plan => plan.memory, unit: bytesUnit, line: plan => plan.limit, lineName: "limit"},
  time: {name: "step", of: plan => plan.time, unit: timeUnit, line: boundOf, lineName: "bound", less: true},
  over: {name: "speed over " + (DATA.cases[0]?.beside ?? ""), of: plan => plan.over, unit: () => [1, "×"],
    line: plan => boundOf(plan) && perCase(plan)?.time / boundOf(plan), lineName: "bound"},
  rate: {name: "samples/s", of: plan => plan.rate, unit: () => [1, ""],
    line: plan => boundOf(plan) && plan.microbatches * plan.size / boundOf(plan) * 1e9, lineName: "bound"},
  latency: {name: "latency of a microbatch", of: plan => plan.latency, unit: timeUnit, less: true},
  bubble: {name: "bubble", of: plan => plan.bubble, unit: () => [0.01, "%"], less: true},
  gap: {name: "above the bound", of: plan => plan.gap, unit: () => [0.01, "%"], less: true},
  devices: {name: "devices D", of: plan => plan.devices, unit: () => [1, ""]},
  microbatches: {name: "microbatches N", of: plan => plan.microbatches, unit: () => [1, ""]},
};
const varies = of => new Set(PLANS.map(of)).size > 1;
const X_FIGURES = ["memory", "devices", "microbatches"].filter(key => PLANS.some(plan => FIGURES[key].of(plan) !== undefined) && (key === "memory" || varies(FIGURES[key].of)));
const Y_FIGURES = ["time", "over", "rate", "latency", "bubble", "gap"].filter(key => PLANS.some(plan => FIGURES[key].of(plan) !== undefined));

/// An axis over the values and lines: low to high in pixels, the unit of its ticks.
function axisOf(figure, values, lines, from, to) {
  const sorted = [...values].sort((a, b) => a - b), best = figure.less === undefined ? sorted[sorted.length >> 1] : figure.less ? sorted[0] : sorted[sorted.length - 1];
  let low = sorted[0], high = sorted[sorted.length - 1];
  if (figure === FIGURES.memory || figure === FIGURES.time) high = Math.min(high, sorted[0] + Math.max(reachOf(values.map(v => v - sorted[0])), 0.05 * best));
  for (const line of lines) {
    if (line < low && line > low - 0.6 * (high - low + 0.1 * best)) low = line;
    if (line > high && line < high + 0.6 * (high - low + 0.1 * best)) high = line;
  }
  const margin = 0.07 * (high - low) || 0.1 * Math.abs(high) || 1;
  const start = Math.max(low - margin, low > 0 ? Math.min(low, 0.02 * low) : low - margin), end = high + margin;
  const [size, unit] = figure.unit(high);
  const at = value => from + (Math.min(Math.max(value, start), end) - start) / (end - start) * (to - from);
  return {at, start, end, size, unit, beyond: value => value > end || value < start,
    value: pixel => start + (pixel - from) / (to - from) * (end - start)};
}

/// Draws into `box` the plans of `shown`. hooks: hover(plan or null, event), choose(plan), brush(test or null).
function drawScatter(box, shown, state, hooks) {
  const width = Math.max(box.clientWidth, 280), height = width < 460 ? 280 : 360;
  const left = 58, right = width - 14, top = 16, bottom = height - 44;
  const xf = FIGURES[state.x], yf = FIGURES[state.y];
  const plans = shown.filter(plan => xf.of(plan) !== undefined && yf.of(plan) !== undefined);
  const svg = el("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${plans.length} plans, ${yf.name} over ${xf.name}; the table has the same plans`});
  box.replaceChildren(svg);
  if (!plans.length) {
    svg.append(el("text", {x: width / 2, y: height / 2, "text-anchor": "middle", fill: "var(--muted)"}, "no plan is left: take a filter away"));
    return;
  }
  const single = new Set(plans.map(plan => plan.number)).size === 1;
  // A value and the plans that it is said of.
  const linesOf = figure => {
    const lines = new Map();
    if (figure.line && (single || figure === FIGURES.memory))
      for (const plan of plans.filter(figure.line)) lines.set(figure.line(plan), [...lines.get(figure.line(plan)) ?? [], plan]);
    return [...lines];
  };
  const xLines = linesOf(xf), yLines = linesOf(yf);
  const valuesOf = lines => lines.map(([value]) => value);
  const x = axisOf(xf, plans.map(xf.of), valuesOf(xLines), left, right), y = axisOf(yf, plans.map(yf.of), valuesOf(yLines), bottom, top);
  drawAxes(svg, x, y, xf, yf, {left, right, top, bottom});
  const taken = plans.map(plan => [x.at(xf.of(plan)) - 10, y.at(yf.of(plan)) - 10, x.at(xf.of(plan)) + 10, y.at(yf.of(plan)) + 10]);
  for (const [line] of xLines) drawLimit(svg, x, line, xf, xf.lineName, [x.at(line), top, x.at(line), bottom], taken);
  for (const [line, covered] of yLines) {
    // A bound goes as far as the plans of its class, and past all only where they are all there are.
    const spots = covered.map(plan => x.at(xf.of(plan))), whole = covered.length === plans.length;
    const from = whole ? left : Math.max(left, Math.min(...spots) - 14), to = whole ? right : Math.min(right, Math.max(...spots) + 14);
    drawLimit(svg, y, line, yf, `${yf.lineName} of ${covered[0].bound_class}`, [from, y.at(line), to, y.at(line)], taken);
  }
  if (xf !== FIGURES.memory) drawLines(svg, plans, x, y, xf, yf);
  else if (single && yf === FIGURES.time && DATA.memory === "peak") drawFront(svg, plans[0].case, x, y, hooks);
  const area = el("rect", {x: left, y: top, width: right - left, height: bottom - top, fill: "transparent", class: "brush"});
  svg.append(area);
  addBrush(svg, area, {left, right, top, bottom}, x, y, xf, yf, hooks);
  drawPoints(svg, plans, x, y, xf, yf, state, hooks, {left, right, top, bottom}, taken);
}

function drawAxes(svg, x, y, xf, yf, box) {
  const text = (px, py, anchor, content, more = {}) =>
    svg.append(el("text", {x: px, y: py, "text-anchor": anchor, fill: "var(--muted)", "font-size": 11.5, ...more}, content));
  const xt = ticksOf(x.start / x.size, x.end / x.size, (box.right - box.left) / 75);
  for (const tick of xt.ticks) {
    const at = x.at(tick * x.size);
    svg.append(el("line", {x1: at, x2: at, y1: box.top, y2: box.bottom, stroke: "var(--rule)", "stroke-width": 0.6}));
    text(at, box.bottom + 15, "middle", tick.toFixed(xt.decimals));
  }
  const yt = ticksOf(y.start / y.size, y.end / y.size, (box.bottom - box.top) / 45);
  for (const tick of yt.ticks) {
    const at = y.at(tick * y.size);
    svg.append(el("line", {x1: box.left, x2: box.right, y1: at, y2: at, stroke: "var(--rule)", "stroke-width": 0.6}));
    text(box.left - 6, at + 4, "end", tick.toFixed(yt.decimals));
  }
  const unit = axis => axis.unit ? ", " + axis.unit : "";
  if (box.right > 420) text(box.right, box.bottom + 34, "end", "drag to mark an area", {"font-size": 11});
  text(box.left, box.bottom + 34, "start", xf.name + unit(x), {fill: "var(--ink)"});
  text(0, 0, "middle", yf.name + unit(y), {fill: "var(--ink)", transform: `translate(13 ${(box.top + box.bottom) / 2}) rotate(-90)`});
}

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

/// A line with its figure, on a halo that is seen on anything, at an end where no box of `taken` is, which it joins.
function drawLimit(svg, axis, value, figure, name, [x1, y1, x2, y2], taken) {
  const upright = x1 === x2, alarm = figure === FIGURES.memory;
  const label = `${name} ` + (alarm ? bytesText(value) : `${digits(value / axis.size)} ${axis.unit}`);
  if (axis.beyond(value)) {
    if (upright && value > axis.end) svg.append(el("text", {x: x1, y: y1 - 4, "text-anchor": "end", "font-size": 11.5, fill: "var(--alarm)", class: "halo"}, label + " ▸"));
    return;
  }
  svg.append(el("line", {x1, y1, x2, y2, stroke: alarm ? "var(--alarm)" : "var(--ink)", "stroke-width": 1.6, "stroke-dasharray": alarm ? "6 4" : "2 3", class: figure.lineName}));
  const width = 6.6 * label.length;
  // Beside a level line, above or below it, near it or a line of text further away; a short line's label begins in the drawing.
  const along = [x2 - 4 - width, x1 + 4, (x1 + x2 - width) / 2, (3 * x1 + x2) / 4 - width / 2, (x1 + 3 * x2) / 4 - width / 2].map(px => Math.max(px, 62));
  const spots = (upright ? [[x1 - 5 - width, y1 + 12], [x1 - 5 - width, y2 - 6], [x1 - 5 - width, (y1 + y2) / 2]] : [-5, 14, -20, 29].flatMap(dy => along.map(px => [px, y1 + dy])))
    .map(([px, py]) => [px, py - 11, px + width, py + 3]);
  const spot = spots.find(one => !taken.some(other => overlap(one, other))) ?? spots[0];
  taken.push(spot);
  svg.append(el("text", {x: spot[0], y: spot[3] - 3, "font-size": 11.5,
    fill: alarm ? "var(--alarm)" : "var(--ink)", class: "halo limit"}, label));
}

/// A line a plan's name along what varies, all other keys being equal.
function drawLines(svg, plans, x, y, xf, yf) {
  const groups = new Map();
  for (const plan of plans) {
    const others = [plan.name, ...plan.case.keys.filter(([key]) => !("plan." + key).endsWith("." + (xf === FIGURES.devices ? "devices" : "microbatches"))).flat()];
    const key = JSON.stringify(others);
    groups.set(key, [...groups.get(key) ?? [], plan]);
  }
  for (const group of groups.values()) {
    group.sort((a, b) => xf.of(a) - xf.of(b));
    svg.append(el("path", {d: "M" + group.map(plan => x.at(xf.of(plan)).toFixed(1) + " " + y.at(yf.of(plan)).toFixed(1)).join("L"),
      fill: "none", stroke: lookOf(group[0].family).color, "stroke-width": group[0].index === 0 ? 2.4 : 1.2, opacity: 0.75}));
  }
}

/// Plans that the search found and no other beats in both. Of these what is allocated is known, not what is reserved.
function drawFront(svg, report_case, x, y, hooks) {
  for (const [schedule, time, memory] of report_case.front) {
    if (x.beyond(memory) || y.beyond(time)) continue;
    svg.append(el("path", {d: shapePath("circle", 2.2), transform: `translate(${x.at(memory)} ${y.at(time)})`, fill: "var(--muted)", class: "found",
      pointerenter: event => hooks.say(`${schedule}: estimated ${timeText(time)}, ${bytesText(memory)}; found by the search`, event),
      pointerleave: () => hooks.say("")}));
  }
}

function drawPoints(svg, plans, x, y, xf, yf, state, hooks, box, taken) {
  const few = plans.length <= 14;
  const inOrder = [...plans].sort((a, b) => (a === state.chosen) - (b === state.chosen) || b.index - a.index);
  const spots = inOrder.map(plan => {
    const px = x.at(xf.of(plan)), py = y.at(yf.of(plan));
    return [px, py];
  });
  inOrder.forEach((plan, i) => {
    const [px, py] = spots[i], beyond = x.beyond(xf.of(plan)) || y.beyond(yf.of(plan));
    const chosen = plan === state.chosen, refers = plan === state.reference;
    const mark = markPath(plan, plan.index === 0 ? 6.5 : 5);
    const group = el("g", {transform: `translate(${px} ${py})`, class: "point", "data-plan": plan.id,
      pointerenter: event => hooks.hover(plan, event), pointerleave: () => hooks.hover(null), click: () => hooks.choose(plan)},
      el("path", {d: shapePath("circle", 11), fill: "transparent"}),
      chosen || refers ? el("path", {d: shapePath("circle", 10), fill: "none", stroke: "var(--ink)", "stroke-width": chosen ? 2 : 1, "stroke-dasharray": chosen ? null : "2 2"}) : null,
      mark, beyond ? el("path", {d: x.beyond(xf.of(plan)) ? "M10 -4L16 0L10 4Z" : y.at(yf.of(plan)) < (box.top + box.bottom) / 2 ? "M-4 -10L0 -16L4 -10Z" : "M-4 10L0 16L4 10Z", fill: "var(--ink)"}) : null);
    svg.append(group);
    if (few || plan.best && state.cases === 1 || chosen) placeLabel(svg, plan, px, py, taken, box, x.beyond(xf.of(plan)) ? ` ${digits(xf.of(plan) / x.size, 3)} ${x.unit}` : y.beyond(yf.of(plan)) ? ` ${digits(yf.of(plan) / y.size)} ${y.unit}` : "");
  });
}

/// The plan's name beside its mark, where nothing is yet.
function placeLabel(svg, plan, px, py, taken, box, beyond) {
  const text = (plan.name === "planned" ? plan.schedule : plan.name) + beyond, width = (plan.best ? 7.2 : 6.4) * text.length;
  for (const [dx, dy] of [[12, 4], [-12 - width, 4], [-width / 2, -12], [-width / 2, 21], [12, -10], [12, 18], [-12 - width, -10], [-12 - width, 18]]) {
    const spot = [px + dx, py + dy - 9, px + dx + width, py + dy + 3];
    if (spot[0] < box.left || spot[2] > box.right || spot[1] < box.top || spot[3] > box.bottom) continue;
    if (taken.some(other => overlap(spot, other))) continue;
    taken.push(spot);
    svg.append(el("text", {x: px + dx, y: py + dy, "font-size": 11.5, fill: "var(--ink)", "font-weight": plan.best ? "bold" : "normal", class: "halo label"}, text));
    return;
  }
}

function addBrush(svg, area, box, x, y, xf, yf, hooks) {
  let from = null, band = null;
  const point = event => {
    const frame = svg.getBoundingClientRect();
    return [Math.min(Math.max(event.clientX - frame.left, box.left), box.right), Math.min(Math.max(event.clientY - frame.top, box.top), box.bottom)];
  };
  area.addEventListener("pointerdown", event => {
    if (event.pointerType === "touch") return;  // a thumb scrolls
    from = point(event);
    if (event.isTrusted) area.setPointerCapture(event.pointerId);
    band = el("rect", {fill: "var(--ink)", opacity: 0.1});
    svg.append(band);
  });
  area.addEventListener("pointermove", event => {
    if (!from) return;
    const to = point(event);
    for (const [key, value] of Object.entries({x: Math.min(from[0], to[0]), y: Math.min(from[1], to[1]), width: Math.abs(to[0] - from[0]), height: Math.abs(to[1] - from[1])}))
      band.setAttribute(key, value);
  });
  area.addEventListener("pointerup", event => {
    if (!from) return;
    const to = point(event), start = from;
    from = null;
    band.remove();
    if (Math.abs(to[0] - start[0]) < 5 && Math.abs(to[1] - start[1]) < 5) return hooks.brush(null);
    const within = (a, b, at) => at >= Math.min(a, b) && at <= Math.max(a, b);
    hooks.brush(plan => within(start[0], to[0], x.at(xf.of(plan))) && within(start[1], to[1], y.at(yf.of(plan))));
  });
}
