// Where everything of a timeline is, and what colours it has.
const COMPACT = [[4, 27, 7, 5], [8, 22, 6, 4], [16, 16, 5, 3], [32, 11, 3, 2], [Infinity, 8, 2, 1]];
const AXIS = 22, HEAD = 24, STRIP = 19, MOST_STRIPS = 8;

/// panels: [{plan, trace, title, note}]. Rows of ranks, strips of memory and links, heads; all with y and height.
function layoutOf(panels, width, options) {
  const layout = {rows: [], strips: [], heads: [], width, left: width < 600 ? 40 : 66, right: width - (width < 600 ? 8 : 62)};
  let y = AXIS;
  layout.memoryScale = memoryScale(panels);
  for (const panel of panels) {
    const [, tall, thin, gap] = COMPACT.find(([most]) => panel.trace.ranks <= most);
    layout.heads.push({panel, y, bottom: 0});
    y += HEAD;
    for (let rank = 0; rank < panel.trace.ranks; ++rank) {
      const sent = options.transfers ? thin : 0;
      layout.rows.push({panel, rank, y, height: tall, sentY: y + tall, sentHeight: sent});
      y += tall + sent + gap;
    }
    layout.heads[layout.heads.length - 1].bottom = y;
    y += 4;
    if (options.memory) y = addMemory(layout, panel, y);
    if (options.links) y = addLinks(layout, panel, y);
    y += 8;
  }
  layout.bottom = y;
  layout.height = y + AXIS;
  return layout;
}

const peaksOf = trace => trace.peaks ??= trace.memory.map(one => one.value.reduce((a, b) => Math.max(a, b), 0));
/// One for all panels: up to the limit if a peak comes near it.
function memoryScale(panels) {
  const whole = Math.max(0, ...panels.flatMap(panel => peaksOf(panel.trace))), limit = Math.min(...panels.flatMap(panel => panel.plan.limits));
  return limit < 1.5 * whole ? Math.max(limit, whole) : whole;
}

/// Of many ranks those that are fullest.
function addMemory(layout, panel, y) {
  const {trace, plan} = panel;
  const peaks = peaksOf(trace), scale = layout.memoryScale, limit = Math.min(...plan.limits);
  if (!peaks.some(peak => peak > 0)) return y;
  const ranks = peaks.map((peak, rank) => [peak - (plan.limits[rank] ?? 0), rank]).sort((a, b) => b[0] - a[0] || a[1] - b[1])
    .slice(0, MOST_STRIPS).map(([, rank]) => rank).sort((a, b) => a - b);
  const some = ranks.length < peaks.length ? `, the fullest ${ranks.length} of ${peaks.length} ranks` : "";
  layout.strips.push({panel, y, height: 15, caption: `memory, to ${bytesText(scale)}` + (isFinite(limit) ? `; limit ${bytesText(limit)}` : "") + some});
  y += 17;
  for (const rank of ranks) {
    layout.strips.push({panel, y, height: STRIP - 3, name: rank, samples: trace.memory[rank], scale, limit: plan.limits[rank], most: peaks[rank], memory: true});
    y += STRIP;
  }
  return y;
}

function addLinks(layout, panel, y) {
  const links = panel.trace.links.slice(0, MOST_STRIPS);
  if (!links.length) return y;
  layout.strips.push({panel, y, height: 15, caption: "load of links, to their capacity" + (links.length < panel.trace.links.length ? ", the fullest" : "")});
  y += 17;
  for (const link of links) {
    layout.strips.push({panel, y, height: STRIP - 3, name: link.name, samples: link, scale: 1000, most: Math.max(...link.value)});
    y += STRIP;
  }
  return y;
}

const channels = color => [1, 3, 5].map(i => parseInt(color.slice(i, i + 2), 16));
const toColor = rgb => "#" + rgb.map(c => Math.round(c).toString(16).padStart(2, "0")).join("");
const mixed = (a, b, share) => toColor(channels(a).map((c, i) => c + (channels(b)[i] - c) * share));
function luminance(color) {
  const [r, g, b] = channels(color).map(c => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const inkOn = color => luminance(color) > 0.179 ? "#000000" : "#fffffe";

/// [class] fills of its parts with their letters, and as pixels.
function looksOf(trace) {
  return trace.classes.map(own => {
    const several = own.parts.length > 1 && own.kind === COMPUTE;
    const parts = (several ? own.parts.slice(0, 2) : own.parts.slice(0, 1)).map(([paint]) => {
      const [fill, pale, letter] = DATA.paints[paint], color = mixed(fill, pale, own.shade);
      return {paint, color, ink: inkOn(color), letter};
    });
    return {parts: parts.length ? parts : [{paint: 6, color: DATA.paints[6][0], ink: inkOn(DATA.paints[6][0]), letter: "red"}]};
  });
}

/// Colours of the page as it is now: light, dark, or paper.
function pageColors() {
  const style = getComputedStyle(document.documentElement), colors = {};
  for (const name of ["paper", "ink", "muted", "rule", "idle", "alarm", "memory", "held"]) colors[name] = style.getPropertyValue("--" + name).trim() || "#888888";
  colors.dark = luminance(colors.paper) < 0.2;
  return colors;
}
const PAPER_COLORS = {paper: "#ffffff", ink: "#1b1f24", muted: "#57606a", rule: "#d0d7de", idle: "#f1f3f5", alarm: "#b42318", memory: "#8fb0c9", held: "#5b82a1"};

/// "F12", or for two at once "F7 B3".
function labelOf(trace, event, part = -1) {
  const look = trace.looks[trace.kind[event]].parts, micro = [trace.first[event], trace.second[event]];
  const slices = trace.classes[trace.kind[event]].slices, one = i => look[i].letter + (micro[i] >= 0 ? micro[i] + slices[i] : "");
  return part >= 0 ? one(part) : look.map((_, i) => one(i)).join(" ");
}

const countIn = (trace, events, view) => firstAt(trace, events, view.to + (events.longest ?? 0) + 1) - firstAt(trace, events, view.from);

/// The first of `events`, which are sorted by start, that may end after `time`.
function firstAt(trace, events, time) {
  let low = 0, high = events.length;
  const from = time - (events.longest ??= events.reduce((most, e) => Math.max(most, trace.end[e] - trace.start[e]), 0));
  while (low < high) {
    const middle = (low + high) >> 1;
    if (trace.start[events[middle]] < from) low = middle + 1;
    else high = middle;
  }
  return low;
}
