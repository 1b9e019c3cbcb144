// Draws traces: rows of ranks, what they send, memory and links, on one axis of time.

/// view: {from, to} in ns; marked: {panel, events} of a chain. pen: a canvas context, or what records it. What lies
/// wholly above band[0] or below band[1] may be left out.
function drawTimeline(pen, layout, view, marked, colors, band = [0, Infinity]) {
  const {left, right} = layout, perNs = (right - left) / (view.to - view.from);
  const x = time => left + (time - view.from) * perNs;
  pen.globalAlpha = 1;
  pen.fillStyle = colors.paper;
  pen.fillRect(0, 0, layout.width, layout.height);
  drawTimeAxis(pen, layout, view, x, colors);
  const scene = {pen, layout, view, x, perNs, left, right, colors};
  for (const row of layout.rows) if (row.sentY + row.sentHeight >= band[0] && row.y <= band[1]) drawRow(scene, row);
  if (marked) drawChain(scene, marked);
  for (const strip of layout.strips) if (strip.y + strip.height >= band[0] && strip.y <= band[1]) drawStrip(scene, strip);
  for (const head of layout.heads) drawHead(scene, head);
}

function drawTimeAxis(pen, layout, view, x, colors) {
  const [size, unit] = timeUnit(view.to);
  const {ticks, decimals} = ticksOf(view.from / size, view.to / size, (layout.right - layout.left) / 90);
  pen.font = "11.5px " + FONTS;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  for (const tick of ticks) {
    const at = x(tick * size);
    if (at < layout.left - 1) continue;
    pen.fillStyle = colors.rule;
    pen.fillRect(at, AXIS - 4, 1, layout.bottom - AXIS + 8);
    pen.fillStyle = colors.muted;
    for (const y of [10, layout.bottom + 12]) pen.fillText(tick.toFixed(decimals) + " " + unit, Math.min(at, layout.width - 26), y);
  }
}

function drawHead({pen, layout, x, view, colors}, head) {
  const {panel, y} = head;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  pen.fillStyle = colors.ink;
  pen.font = "bold 13px " + FONTS;
  pen.fillText(panel.title, 4, y + 13);
  const after = 4 + pen.measureText(panel.title).width + 10;
  pen.font = "12.5px " + FONTS;
  pen.fillStyle = colors.muted;
  const parts = panel.note.split(", ");
  while (parts.length > 1 && after + pen.measureText(parts.join(", ")).width > layout.width) parts.pop();
  pen.fillText(parts.join(", "), after, y + 13);
  for (const [time, color, dashes] of [[panel.trace.length, colors.ink, []], [panel.bound, colors.ink, [3, 3]]]) {
    if (!time || time < view.from || time > view.to) continue;
    pen.strokeStyle = color;
    pen.lineWidth = 1.2;
    pen.setLineDash(dashes);
    pen.beginPath();
    pen.moveTo(x(time), y + HEAD - 3);
    pen.lineTo(x(time), head.bottom);
    pen.stroke();
    pen.setLineDash([]);
  }
}

function drawRow(scene, row) {
  const {pen, layout, view, x, left, right, colors} = scene, {trace} = row.panel;
  pen.globalAlpha = 1;
  pen.fillStyle = colors.idle;
  const from = Math.max(left, x(0)), to = Math.min(right, x(trace.length));
  if (to > from) pen.fillRect(from, row.y, to - from, row.height);
  if (row.height >= 11 || row.rank % 8 === 0) {
    pen.font = "11.5px " + FONTS;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = colors.muted;
    pen.fillText(left > 50 ? "rank " + row.rank : row.rank, left - 6, row.y + row.height / 2);
    if (row.panel.idle && layout.width >= 600) {
      pen.textAlign = "left";
      pen.fillText(percentText(row.panel.idle[row.rank]), right + 6, row.y + row.height / 2);
    }
  }
  const events = trace.rows[row.rank];
  if (!drawShares(scene, trace, events.compute, row.y, row.height, false))
    drawBoxes(scene, trace, events.compute, row.y, row.height, true);
  // A thin lane without single transfers says nothing.
  const dense = row.sentHeight < 4 && countIn(trace, events.sent, view) > (right - left) / 2.5;
  if (row.sentHeight && !dense && !drawShares(scene, trace, events.sent, row.sentY, row.sentHeight, true))
    drawBoxes(scene, trace, events.sent, row.sentY + 1, row.sentHeight - 1, false);
}

function drawBoxes(scene, trace, events, y, height, labelled) {
  const {view, x, left, right} = scene;
  for (let i = firstAt(trace, events, view.from); i < events.length; ++i) {
    const event = events[i];
    if (trace.start[event] > view.to) break;
    if (trace.end[event] < view.from) continue;
    drawBox(scene, trace, event, Math.max(left, x(trace.start[event])), Math.min(right, x(trace.end[event])), y, height, labelled);
  }
}

const OPTIMIZER_PAINT = 5;
/// Two at once are two halves.
function drawBox({pen, colors}, trace, event, x0, x1, y, height, labelled) {
  const parts = trace.looks[trace.kind[event]].parts, width = x1 - x0;
  const inner = width > 3 ? width - 0.7 : Math.max(width, 0.4), part = height / parts.length;
  parts.forEach((look, i) => {
    pen.fillStyle = look.color;
    pen.fillRect(x0, y + i * part, inner, part);
    if (colors.dark && look.paint === OPTIMIZER_PAINT && inner > 2) {  // its own colour is nearly the paper's
      pen.strokeStyle = colors.muted;
      pen.lineWidth = 1;
      pen.strokeRect(x0 + 0.5, y + 0.5, inner - 1, part - 1);
    }
    if (!labelled || part < 9.5 || width < 10) return;
    // As wide as the longest of its kind, so that all of a kind are labelled alike.
    const size = Math.min(12, part - 1.5), text = labelOf(trace, event, i), number = text.replace(/^[A-Za-z]+/, "");
    const fits = length => length * size * 0.6 + 3 <= width;
    const shown = fits(text.length - number.length + (number && trace.digits)) ? text : number && fits(trace.digits) ? number : "";
    if (!shown) return;
    pen.font = size + "px " + FONTS;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = look.ink;
    pen.fillText(shown, x0 + width / 2, y + (i + 0.5) * part + 0.5);
  });
}

const PIXELS = {shares: new Float32Array(0), words: null, image: null};

/// Where boxes are thinner than a pixel or two: how much of each pixel's time went into what. False if they are not,
/// or the pen has no pixels.
function drawShares({pen, layout, view, left, right, colors}, trace, events, y, height, anyKind) {
  if (!pen.putImageData) return false;
  if (countIn(trace, events, view) < (right - left) / 2.5) return false;
  const begin = firstAt(trace, events, view.from), end = firstAt(trace, events, view.to + events.longest + 1);
  const dpr = pen.getTransform().a, columns = Math.round((right - left) * dpr), lines = Math.max(1, Math.round(height * dpr));
  const kinds = DATA.paints.length, perNs = columns / (view.to - view.from);
  if (PIXELS.shares.length < columns * kinds) PIXELS.shares = new Float32Array(columns * kinds);
  const shares = PIXELS.shares.fill(0, 0, columns * kinds);
  const add = (x0, x1, paint, weight) => {
    let c = x0 | 0;
    if (x1 <= c + 1) return void (shares[c * kinds + paint] += weight * (x1 - x0));
    shares[c * kinds + paint] += weight * (c + 1 - x0);
    for (++c; c + 1 <= x1; ++c) shares[c * kinds + paint] += weight;
    shares[c * kinds + paint] += weight * (x1 - c);
  };
  const {start, end: ends, paint} = trace;
  for (let i = begin; i < end; ++i) {
    const event = events[i], x0 = (start[event] - view.from) * perNs, x1 = (ends[event] - view.from) * perNs;
    if (x1 <= 0 || x0 >= columns) continue;
    const from = x0 > 0 ? x0 : 0, to = x1 < columns ? x1 : columns - 1e-6, two = paint[event] >> 4;
    add(from, to, paint[event] & 15, two ? 0.5 : 1);
    if (two) add(from, to, two - 1, 0.5);
  }
  if (!PIXELS.image || PIXELS.image.width !== columns || PIXELS.image.height !== lines) {
    PIXELS.image = pen.createImageData(columns, lines);
    PIXELS.words = new Uint32Array(PIXELS.image.data.buffer);
  }
  const word = color => { const [r, g, b] = channels(color); return (255 << 24 | b << 16 | g << 8 | r) >>> 0; };
  const fills = DATA.paints.map(([fill]) => word(fill)), words = PIXELS.words, edge = (trace.length - view.from) * perNs;
  const idle = word(colors.idle), paper = word(colors.paper);
  for (let c = 0; c < columns; ++c) {
    let line = lines, sum = 0;
    for (let k = 0; k < kinds && line > 0; ++k) {
      const share = shares[c * kinds + k];
      if (share <= 0) continue;
      sum += anyKind ? 1 : share;
      const stop = Math.max(0, lines - Math.round(Math.min(sum, 1) * lines));
      while (line > stop) words[--line * columns + c] = fills[k];
    }
    const rest = anyKind || c > edge ? paper : idle;
    while (line > 0) words[--line * columns + c] = rest;
  }
  pen.putImageData(PIXELS.image, Math.round(left * dpr), Math.round(y * dpr));
  return true;
}

/// The chain in full colour, all else pale, and a line through it.
function drawChain(scene, {panel, events}) {
  const {pen, layout, view, x, left, right, colors} = scene, {trace} = panel;
  const rows = layout.rows.filter(row => row.panel === panel);
  pen.globalAlpha = 0.72;
  pen.fillStyle = colors.paper;
  for (const row of rows) pen.fillRect(left, row.y, right - left, row.height + row.sentHeight);
  pen.globalAlpha = 1;
  const path = [];
  for (let i = events.length - 1; i >= 0; --i) {
    const event = events[i], own = trace.classes[trace.kind[event]], row = rows[own.rank];
    const sent = isBeside(own);
    if (trace.end[event] >= view.from && trace.start[event] <= view.to && !(sent && !row.sentHeight))
      drawBox(scene, trace, event, Math.max(left, x(trace.start[event])), Math.max(Math.min(right, x(trace.end[event])), left),
        sent ? row.sentY + 1 : row.y, sent ? row.sentHeight - 1 : row.height, !sent);
    const y = sent ? row.sentY + row.sentHeight / 2 : row.y + row.height - 2.5;
    path.push([x(trace.start[event]), y], [x(trace.end[event]), y]);
  }
  pen.strokeStyle = colors.alarm;
  pen.lineWidth = 1.6;
  pen.beginPath();
  const inside = px => Math.min(Math.max(px, left), right);
  for (let i = 1; i < path.length; ++i) {
    const [[x0, y0], [x1, y1]] = [path[i - 1], path[i]];
    if (x0 < left && x1 < left || x0 > right && x1 > right) continue;
    pen.moveTo(inside(x0), y0);
    pen.lineTo(inside(x1), y1);
  }
  pen.stroke();
}

/// A figure over time as an area; the most of each pixel.
function drawStrip({pen, layout, view, x, left, right, colors}, strip) {
  pen.textBaseline = "middle";
  if (strip.caption) {
    pen.font = "11.5px " + FONTS;
    pen.textAlign = "left";
    pen.fillStyle = colors.muted;
    pen.fillText(strip.caption, left, strip.y + 8);
    return;
  }
  const {time, value} = strip.samples, bottom = strip.y + strip.height, height = v => Math.min(v / strip.scale, 1) * strip.height;
  pen.fillStyle = colors.idle;
  pen.fillRect(left, strip.y, right - left, strip.height);
  let low = 0, high = time.length;
  while (low < high) { const middle = (low + high) >> 1; time[middle] <= view.from ? low = middle + 1 : high = middle; }
  const held = strip.held ??= value.reduce((a, b) => Math.min(a, b), Infinity);
  pen.fillStyle = strip.memory ? colors.memory : DATA.paints[8][0];
  let column = left, most = low ? value[low - 1] : 0;
  const draw = (from, to, v) => v > 0 && to > from && pen.fillRect(from, bottom - height(v), to - from + 0.2, height(v));
  for (let i = low; i < time.length && time[i] <= view.to; ++i) {
    const at = x(time[i]);
    if (at - column >= 0.75) {
      draw(column, at, most);
      column = at, most = value[i];
    } else {
      most = Math.max(most, value[i]);
    }
  }
  draw(column, Math.min(right, x(strip.panel.trace.length)), most);
  if (strip.memory && held > 0) {
    pen.fillStyle = colors.held;
    const from = Math.max(left, x(0)), to = Math.min(right, x(strip.panel.trace.length));
    if (to > from) pen.fillRect(from, bottom - height(held), to - from, height(held));
  }
  if (strip.limit && strip.limit <= strip.scale) {
    pen.fillStyle = colors.paper;
    pen.fillRect(left, bottom - height(strip.limit) - 1, right - left, 3);
    pen.fillStyle = colors.alarm;
    pen.fillRect(left, bottom - height(strip.limit), right - left, 1.3);
  }
  pen.font = "11px " + FONTS;
  pen.textAlign = "right";
  pen.fillStyle = colors.muted;
  const name = strip.memory ? (left > 50 ? "rank " + strip.name : String(strip.name)) : strip.name.slice(-9);
  pen.fillText(name, left - 6, strip.y + strip.height / 2);
  if (layout.width >= 600) {
    pen.textAlign = "left";
    pen.fillStyle = strip.memory && strip.limit && strip.most > strip.limit ? colors.alarm : colors.muted;
    pen.fillText(strip.memory ? bytesText(strip.most) : percentText(strip.most / 1000), right + 6, strip.y + strip.height / 2);
  }
}
