// Numbers and traces as packed.h writes them.
"use strict";

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const DIGIT_OF = new Uint8Array(128);
for (let i = 0; i < 64; ++i) DIGIT_OF[DIGITS.charCodeAt(i)] = i;
const REPEAT = "!".charCodeAt(0);

/// The digits of the text, repeats written out.
function expanded(text) {
  let out = new Uint8Array(4 * text.length + 64), size = 0, i = 0;
  const number = () => {
    for (let value = 0, unit = 1;; unit *= 32) {
      const digit = DIGIT_OF[text.charCodeAt(i++)];
      value += unit * (digit & 31);
      if (digit < 32) return value;
    }
  };
  const reserve = more => {
    if (size + more <= out.length) return;
    const larger = new Uint8Array(2 * (size + more));
    larger.set(out.subarray(0, size));
    out = larger;
  };
  while (i < text.length) {
    const code = text.charCodeAt(i);
    if (code !== REPEAT) {
      reserve(1);
      out[size++] = DIGIT_OF[code];
      ++i;
      continue;
    }
    ++i;
    const distance = number(), length = number();
    reserve(length);
    for (const end = size + length; size < end; ++size) out[size] = out[size - distance];
  }
  return out.subarray(0, size);
}

function numbers(text) {
  const digits = expanded(text);
  let count = 0;
  for (let i = 0; i < digits.length; ++i) count += digits[i] < 32;
  const out = new Float64Array(count);
  for (let i = 0, n = 0; n < count; ++n) {
    let value = 0, unit = 1, digit;
    do {
      digit = digits[i++];
      value += unit * (digit & 31);
      unit *= 32;
    } while (digit >= 32);
    out[n] = value % 2 ? -(value + 1) / 2 : value / 2;
  }
  return out;
}

/// Sums of time and value, two numbers a sample.
function samples(text) {
  const given = numbers(text), time = new Float64Array(given.length / 2), value = time.slice();
  for (let i = 0, t = 0, v = 0; i < time.length; ++i) {
    time[i] = t += given[2 * i];
    value[i] = v += given[2 * i + 1];
  }
  return {time, value};
}

const COMPUTE = 0, TRANSFER = 1, REDUCTION = 2, OPTIMIZER = 3, COPY = 4;  // TaskKind
const isBeside = own => own.kind === TRANSFER || own.kind === REDUCTION || own.kind === COPY;  // computation

/// Typed columns, an entry an event: start, end, launch, queued in ns; wait: the event it waited for, -1 = none.
/// slices of a class, by action: ".1" where microbatches are cut, else "".
/// rows [rank] {compute, sent}: events by start. shade of a class: 0 = the first stage of its rank, 1 = the last.
function unpackTrace(packed) {
  const column = numbers(packed.event), count = column.length;
  const micro = numbers(packed.micro), time = numbers(packed.time), launches = numbers(packed.launch);
  const waits = numbers(packed.waits), which = numbers(packed.which), starts = numbers(packed.start);
  const classes = packed.classes.map(([text, kind, rank, peer, bytes, parties, parts]) =>
    ({text, kind, rank, peer, bytes, parties, parts, marks: text.split("#").length - 1, slices: (text.match(/#(\.\d+)?/g) ?? []).map(mark => mark.slice(1)), events: [], micro: [],
      time: 0, launch: 0, waits: 0, which: 0, shade: 0}));
  const trace = {
    source: packed.source, ranks: packed.ranks, classes, count,
    kind: new Int32Array(count), first: new Int32Array(count).fill(-1), second: new Int32Array(count).fill(-1),
    start: new Float64Array(count), end: new Float64Array(count), launch: new Float64Array(count),
    queued: numbers(packed.queued), wait: new Int32Array(count).fill(-1),
    rows: Array.from({length: packed.ranks}, () => ({compute: [], sent: []})),
    memory: packed.memory.map(samples), links: packed.links.map(([name, capacity, slowed, text]) =>
      ({name, capacity, slowed, ...samples(text)})),
  };
  for (let i = 0, number = 0; i < count; ++i) {
    trace.kind[i] = number += column[i];
    classes[number].events.push(i);
  }
  const duration = trace.end;  // until starts are known
  const place = new Int32Array(classes.length);
  for (let i = 0, m = 0, w = 0; i < count; ++i) {
    const own = classes[trace.kind[i]], at = place[trace.kind[i]]++;
    for (let part = 0; part < own.marks; ++part) {
      own.micro[part] = (own.micro[part] ?? -1) + micro[m++] + 1;
      if (part < 2) trace[part ? "second" : "first"][i] = own.micro[part];
    }
    duration[i] = own.time += time[i];
    trace.launch[i] = own.launch += launches[i];
    own.waits += waits[i];
    if (own.waits > 0) trace.wait[i] = classes[own.waits - 1].events[at + (own.which += which[w++])];
  }
  const known = new Uint8Array(count), open = [];
  for (let i = 0; i < count; ++i) {
    for (let e = i; e >= 0 && !known[e]; e = trace.wait[e]) known[e] = 1, open.push(e);
    while (open.length) {
      const e = open.pop(), cause = trace.wait[e];
      trace.start[e] = starts[e] + (cause < 0 ? 0 : trace.end[cause]);
      trace.end[e] = trace.start[e] + duration[e];
    }
  }
  addRows(trace);
  return trace;
}

function addRows(trace) {
  const stages = Array.from({length: trace.ranks}, () => new Set());
  for (const own of trace.classes) {
    if (own.kind === COMPUTE) for (const [, stage] of own.parts) stages[own.rank].add(stage);
    const onRank = isBeside(own) ? "sent" : "compute";
    for (const rank of own.kind === REDUCTION && own.parties.length ? own.parties : [own.rank])
      for (const event of own.events) trace.rows[rank][onRank].push(event);
  }
  const sorted = stages.map(set => [...set].sort((a, b) => a - b));
  for (const own of trace.classes) {
    const all = sorted[own.rank], at = all.indexOf(own.parts.length ? own.parts[0][1] : 0);
    own.shade = all.length > 1 && at > 0 ? at / (all.length - 1) : 0;
  }
  for (const row of trace.rows)
    for (const key of ["compute", "sent"]) row[key] = Int32Array.from(row[key]).sort((a, b) => trace.start[a] - trace.start[b]);
  trace.digits = String(trace.first.reduce((most, micro) => Math.max(most, micro), 0)).length + Math.max(0, ...trace.classes.flatMap(own => own.slices.map(slice => slice.length)));
  trace.length = trace.end.reduce((most, end) => Math.max(most, end), 0);
}

/// The event and everything that it waited for, back to the start.
function chain(trace, event) {
  const events = [];
  for (let i = event; i >= 0; i = trace.wait[i]) events.push(i);
  return events;
}

/// The event that ends last: the critical path is its chain.
const lastEvent = trace => trace.end.indexOf(trace.length);

/// "2F0", as schedule.csv has it.
function actionName(trace, event) {
  const micros = [trace.first[event], trace.second[event]];
  return trace.classes[trace.kind[event]].text.replace(/#/g, () => micros.shift());
}
