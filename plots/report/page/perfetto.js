// The traces that are shown, in ui.perfetto.dev: the one thing here that asks the network, when a button is pressed.
const PERFETTO = "https://ui.perfetto.dev";

/// A trace in Chrome's format: a process a rank and panel, with a thread for what it computes and one for what it sends.
function chromeTrace(panels) {
  const events = [];
  panels.forEach((panel, number) => {
    const {trace} = panel;
    trace.rows.forEach((row, rank) => {
      const pid = number * trace.rows.length + rank + 1, name = `${panel.title}, ${trace.source}: rank ${rank}`;
      events.push({ph: "M", pid, name: "process_name", args: {name}}, {ph: "M", pid, name: "process_sort_index", args: {sort_index: pid}});
      for (const [tid, lane, list] of [[1, "computes", row.compute], [2, "sends", row.sent]]) {
        events.push({ph: "M", pid, tid, name: "thread_name", args: {name: lane}});
        for (const event of list)
          events.push({ph: "X", pid, tid, name: actionName(trace, event), ts: trace.start[event] / 1e3, dur: (trace.end[event] - trace.start[event]) / 1e3,
            args: trace.wait[event] < 0 ? {} : {waited_for: actionName(trace, trace.wait[event])}});
      }
    });
  });
  return JSON.stringify({displayTimeUnit: "ms", traceEvents: events});
}

/// Perfetto takes a trace once it answers.
function openInPerfetto(title, json) {
  const there = open(PERFETTO);
  if (!there) return false;  // the browser opens no windows
  const ask = setInterval(() => there.postMessage("PING", PERFETTO), 100);
  addEventListener("message", function answered(event) {
    if (event.source !== there || event.data !== "PONG") return;
    clearInterval(ask);
    removeEventListener("message", answered);
    there.postMessage({perfetto: {title, buffer: new TextEncoder().encode(json).buffer}}, PERFETTO);
  });
  return true;
}
