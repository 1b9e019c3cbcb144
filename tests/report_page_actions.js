// What a reader of the report does; run in the page, behind its scripts.
addEventListener("load", async () => {
  const wrong = [], check = (holds, what) => holds || wrong.push(what);
  const frame = () => new Promise(resolve => setTimeout(resolve, 60));
  const all = selector => [...document.querySelectorAll(selector)];
  const rows = () => all("table.plans tbody tr");
  const named = text => all("button").find(button => button.textContent.trim() === text);
  while (!instrument) await frame();
  try {
    // The table sorts, the chips filter table and chart, an area of the chart leaves the plans in it.
    check(rows().length === PLANS.length && PLANS.length >= 18, "rows " + rows().length);
    check(/a step.*×.* of 1f1b.*to spare/.test(document.querySelector(".headline").textContent), "headline " + document.querySelector(".headline").textContent);
    const column = COLUMNS.findIndex(one => one.head === "step, ms"), values = () => rows().map(row => Number(row.cells[column].textContent)).filter(value => value);
    const isSorted = sign => values().every((value, i, list) => i === 0 || sign * (value - list[i - 1]) >= 0);
    all("table.plans th button")[column].click();
    check(isSorted(1), "rising");
    all("table.plans th button")[column].click();
    check(isSorted(-1) && !isSorted(1), "falling");
    const points = () => all(".scatter .point").length, before = points();
    named("gpipe").click();
    check(rows().length > 0 && rows().every(row => byId.get(row.dataset.plan).family === "gpipe"), "one family alone");
    check(points() === rows().length && points() < before, "the chart has what the table has");
    named("gpipe").click();
    check(points() === before, "all families again");
    // A plan that lies where the bound's figure stands drives it away.
    const few = PLANS.filter(plan => plan.number === 0 && plan.time), apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
    const most = Math.max(...few.map(plan => plan.memory)), crowded = document.body.appendChild(document.createElement("div"));
    drawScatter(crowded, [...few, {...few[0], memory: 0.98 * most, time: 1.004 * boundOf(few[0])}], {...state, x: "memory", y: "time"}, instrument.hooks);
    for (const label of crowded.querySelectorAll(".limit"))
      for (const mark of crowded.querySelectorAll(".point > path:nth-of-type(2)"))
        check(apart(mark.getBoundingClientRect(), label.getBoundingClientRect()), `a mark lies on "${label.textContent}"`);
    check(/bound of \w/.test(crowded.textContent), "the bound is drawn, with its class");
    // A bound ends before a plan that it does not cover.
    drawScatter(crowded, [...few, {...few[0], id: "other", memory: 1.5 * most, bound: undefined}], {...state, x: "memory", y: "time"}, instrument.hooks);
    const uncovered = crowded.querySelector("[data-plan=other]").getBoundingClientRect(), bounds = [...crowded.querySelectorAll("line.bound")];
    check(bounds.length > 0 && bounds.every(line => line.getBoundingClientRect().right <= uncovered.left), "a bound goes through a plan of another class");
    crowded.remove();
    const area = document.querySelector(".scatter .brush"), box = area.getBoundingClientRect();
    const drag = (target, from, to, more = {}) => {
      const event = (type, [x, y]) => target.dispatchEvent(new PointerEvent(type, {clientX: x, clientY: y, pointerId: 1, bubbles: true, isPrimary: true, ...more}));
      event("pointerdown", from), event("pointermove", to), event("pointerup", to);
    };
    drag(area, [box.left + 1, box.top + 1], [box.left + box.width / 2, box.bottom - 1]);
    const within = rows().length;
    check(within > 0 && within < PLANS.length, "a marked area leaves " + within);
    drag(document.querySelector(".scatter .brush"), [box.left + 5, box.top + 5], [box.left + 5, box.top + 5]);
    check(rows().length === PLANS.length, "a click takes the area away");

    // A plan opens beside the reference; a case's own plan, for which there is a trace in another file.
    const {timeline} = instrument.view, canvas = document.querySelector("canvas");
    const plan = PLANS.find(one => one.name === "planned" && one.case.name === document.body.dataset.folder);
    document.querySelector(`tr[data-plan="${plan.id}"] button`).click();
    await frame();
    check(timeline.panels.length === 2 && timeline.panels[0].plan === plan && timeline.panels[1].plan.name === "1f1b", "the plan and 1f1b");
    const {trace} = timeline.panels[0];
    check(Math.abs(trace.length - plan.time) < 1, "the trace is as long as the step");
    check(canvas.getAttribute("aria-label").includes("1f1b"), "the timeline says what it is");

    // Every event against trace.json, which another writer made.
    const chrome = JSON.parse(document.getElementById("trace").textContent).traceEvents;
    const processes = new Map(chrome.filter(event => event.name === "process_name").map(event => [event.pid, event.args.name]));
    const written = chrome.filter(event => event.ph === "X" && processes.get(event.pid).startsWith(trace.source + ": rank"));
    const key = (name, kind) => kind + " " + name, kindOf = name => ["transfer", "reduction", "optimizer"].includes(name) ? name : "compute";
    const kinds = ["compute", "transfer", "reduction", "optimizer"], there = new Map(written.map(event => [key(event.args.action, kindOf(event.cat)), event]));
    check(there.size === trace.count && trace.count > 20, `${trace.count} events, ${there.size} in trace.json`);
    const nameOf = event => key(actionName(trace, event), kinds[trace.classes[trace.kind[event]].kind]);
    let different = 0;
    for (let i = 0; i < trace.count; ++i) {
      const other = there.get(nameOf(i)), cause = trace.wait[i] < 0 ? undefined : actionName(trace, trace.wait[i]);
      if (!other || Math.abs(other.ts * 1000 - trace.start[i]) > 1 || Math.abs(other.dur * 1000 - trace.end[i] + trace.start[i]) > 1 || other.args.waited_for !== cause) ++different;
    }
    check(different === 0, different + " events differ from trace.json");

    // Zoom keeps the time under the pointer, a drag moves it along.
    const frameOf = () => canvas.getBoundingClientRect(), x = 220, y = () => timeline.layout.rows[1].y + 4;
    const timeAt = px => timeline.view.from + (px - timeline.layout.left) / (timeline.layout.right - timeline.layout.left) * (timeline.view.to - timeline.view.from);
    const spot = timeAt(x), span = timeline.view.to - timeline.view.from;
    canvas.dispatchEvent(new WheelEvent("wheel", {clientX: frameOf().left + x, clientY: frameOf().top + y(), deltaY: -300, ctrlKey: true, bubbles: true, cancelable: true}));
    check(timeline.view.to - timeline.view.from < 0.6 * span, "the wheel zooms");
    check(Math.abs(timeAt(x) - spot) < 0.01 * span, "the time under the pointer stays");
    const held = timeAt(x);
    drag(canvas, [frameOf().left + x, frameOf().top + y()], [frameOf().left + x - 60, frameOf().top + y()]);
    check(Math.abs(timeAt(x - 60) - held) < 0.001 * span, "a drag takes the time along");
    check(timeline.marked === null, "a drag is no click");
    named("whole step").click();
    check(Math.abs(timeline.view.to - 1.02 * timeline.end) < 0.05 * timeline.end, "the whole step");

    // A click on a box, and on a gap before one: the chain, link by link as trace.json has it.
    const click = (px, py) => drag(canvas, [frameOf().left + px, frameOf().top + py], [frameOf().left + px, frameOf().top + py]);
    const xOf = time => timeline.layout.left + (time - timeline.view.from) / (timeline.view.to - timeline.view.from) * (timeline.layout.right - timeline.layout.left);
    const links = events => events.every((event, i) => {
      const next = there.get(nameOf(event)).args.waited_for;
      return i + 1 < events.length ? actionName(trace, events[i + 1]) === next : next === undefined;
    });
    const row = timeline.layout.rows[1], own = trace.rows[1].compute, late = own[own.length - 2], early = own[0];
    click(xOf((trace.start[late] + trace.end[late]) / 2), row.y + 3);
    check(timeline.marked?.events[0] === late && timeline.marked.events.length > 2 && links(timeline.marked.events), "the chain of a box");
    check(document.querySelector(".said").textContent.includes("events one after the other"), "the chain in words");
    check(trace.start[early] > 0, "rank 1 begins later");
    click(xOf(trace.start[early] / 2), row.y + 3);
    check(timeline.marked?.events[0] === early && links(timeline.marked.events), "the chain of a gap");
    named("critical path").click();
    check(timeline.marked.events[0] === lastEvent(trace) && links(timeline.marked.events), "the critical path");
    check(Math.abs(trace.end[timeline.marked.events[0]] - trace.length) < 1, "which ends last");

    // The same with keys.
    const press = (key, more = {}) => canvas.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true, ...more}));
    press("Escape");
    check(timeline.marked === null, "Esc");
    press("+");
    check(timeline.view.to - timeline.view.from < span, "+ zooms");
    press("0"), press("."), press("."), press("Enter");
    check(timeline.marked?.panel === timeline.panels[0] && links(timeline.marked.events), "Enter shows a chain");
    const first = timeline.focus.row.rank;
    press("ArrowUp");
    check(first === 1 && timeline.focus.row.rank === 0 && document.querySelector(".said").textContent.includes("of rank 0"), "up is the rank above");

    // What comes into sight without scrolling is drawn.
    const board = document.querySelector(".board");
    board.hidden = true;
    const drawn = () => {
      const top = -frameOf().top;
      return timeline.band[0] <= Math.max(top, 0) && timeline.band[1] >= Math.min(top + innerHeight, timeline.layout.height);
    };
    for (let tries = 0; tries < 30 && !drawn(); ++tries) await frame();  // the browser says so when it lays out
    check(drawn(), "rows in sight are drawn");
    board.hidden = false;

    // What is under the pointer is said; what the page gives away can be read.
    canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: frameOf().left + xOf((trace.start[late] + trace.end[late]) / 2), clientY: frameOf().top + row.y + 3, pointerId: 1}));
    check(/of rank 1/.test(document.querySelector(".tip").textContent) && /ms|µs/.test(document.querySelector(".tip").textContent), "the tip says " + document.querySelector(".tip").textContent);
    check(planSnippet(plan).startsWith("plan:\n  file: ") && planSnippet(plan).includes("/planned/plan.yaml"), "the snippet");
    check(plansCsv(PLANS).trim().split("\n").length === PLANS.length + 1, "CSV has a line a plan");
    // Perfetto gets the events of trace.json, once it answers.
    const sent = [], opened = window.open, other = new MessageChannel().port1;
    other.postMessage = message => sent.push(message);
    window.open = () => other;
    named("Perfetto").click();
    window.open = opened;
    dispatchEvent(new MessageEvent("message", {data: "PONG"}));  // of another window
    check(!sent.some(message => message.perfetto), "an answer of another window gets nothing");
    dispatchEvent(new MessageEvent("message", {data: "PONG", source: other}));
    const handed = sent.find(message => message.perfetto), slices = handed && JSON.parse(new TextDecoder().decode(handed.perfetto.buffer)).traceEvents.filter(event => event.ph === "X");
    const ofPlan = slices?.filter(event => event.pid <= trace.ranks && event.tid === 1) ?? [];
    check(ofPlan.length === trace.rows.reduce((sum, row) => sum + row.compute.length, 0) && ofPlan.every(event => {
      const twin = there.get("compute " + event.name) ?? there.get("optimizer " + event.name);
      return twin && Math.abs(twin.ts - event.ts) < 0.001 && Math.abs(twin.dur - event.dur) < 0.001 && twin.args.waited_for === event.args.waited_for;
    }), "Perfetto gets " + ofPlan.length + " actions");
    dispatchEvent(new Event("beforeprint"));
    const svg = document.querySelector(".printed svg");
    check(svg && svg.querySelectorAll("rect").length > trace.count, "the timeline as SVG");
    dispatchEvent(new Event("afterprint"));

    // Below: a fold a case, which links open; nothing is too wide.
    const folds = all("#cases ~ details");
    check(folds.length === Number(document.body.dataset.cases), "cases " + folds.length);
    check(document.documentElement.scrollWidth <= innerWidth, "the page is wider than its window");
    check(innerWidth <= 500, "the window has " + innerWidth);
    check(!folds.some(one => one.open), "cases are folded");
    location.hash = "#" + folds[3].id;
    await frame(), await frame();
    check(folds[3].open, "a link to a case opens it");
    for (const link of all('a[href^="#"]')) check(document.getElementById(link.getAttribute("href").slice(1)), "no target of " + link.href);
    for (const cell of all("td, .headline")) check(!/\d\.\d{6}/.test(cell.textContent), "six decimals in " + cell.textContent);
    check(all("button, select, canvas").every(one => one.textContent.trim() || one.getAttribute("aria-label")), "every control has a name");
  } catch (error) {
    wrong.push(error.stack);
  }
  document.body.append(Object.assign(document.createElement("p"), {textContent: "CHECKED: " + (wrong.join("; ") || "fine")}));
});
