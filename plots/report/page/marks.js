// What a family of schedules looks like: a colour and a shape, told apart by either.
const SHAPES = ["circle", "square", "up", "diamond", "cross", "down"];
const FAMILIES = [...new Set(PLANS.filter(plan => plan.time).map(plan => plan.family))];

/// Colours repeat after six, shapes are shifted then: 36 looks.
function lookOf(family) {
  const i = FAMILIES.indexOf(family), colours = DATA.series.length;
  return {color: DATA.series[i % colours], shape: SHAPES[(i + Math.floor(i / colours)) % SHAPES.length]};
}

/// A path around (0, 0).
function shapePath(shape, r) {
  switch (shape) {
    case "square": return `M${-r} ${-r}H${r}V${r}H${-r}Z`;
    case "up": return `M0 ${-1.25 * r}L${1.2 * r} ${0.95 * r}H${-1.2 * r}Z`;
    case "down": return `M0 ${1.25 * r}L${1.2 * r} ${-0.95 * r}H${-1.2 * r}Z`;
    case "diamond": return `M0 ${-1.4 * r}L${1.4 * r} 0L0 ${1.4 * r}L${-1.4 * r} 0Z`;
    case "cross": return `M${-r} ${-0.4 * r}H${-0.4 * r}V${-r}H${0.4 * r}V${-0.4 * r}H${r}V${0.4 * r}H${0.4 * r}V${r}H${-0.4 * r}V${0.4 * r}H${-r}Z`;
    default: return `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  }
}

/// A hollow mark does not fit.
function markPath(plan, r) {
  const {color, shape} = lookOf(plan.family);
  return el("path", {d: shapePath(shape, r), fill: plan.fits ? color : "var(--paper)", stroke: color, "stroke-width": 1.6});
}
function markIcon(plan) {
  return el("svg.mark", {viewBox: "-8 -8 16 16", width: 14, height: 14, "aria-hidden": "true"}, markPath(plan, 5));
}

/// Round ticks within [low, high], about `most` of them.
function ticksOf(low, high, most) {
  const rough = (high - low) / Math.max(most, 1) || 1, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(k => k * power >= rough * 0.999) * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) ticks.push(k * step);
  return {ticks, step, decimals: Math.max(0, -Math.floor(Math.log10(step) + 1e-9))};
}

/// How far an axis goes on one side: four times the median distance; what is further stands at its end.
function reachOf(distances) {
  const away = distances.filter(d => d > 0).sort((a, b) => a - b);
  return away.length ? Math.min(away[away.length - 1], 4 * away[Math.floor(away.length / 2)]) : 0;
}
