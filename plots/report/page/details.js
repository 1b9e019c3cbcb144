// What is known of a plan besides its timeline: figures, files, and where time and memory of each rank go.

/// A bar of parts: [[name, value, colour]], to `whole`; a line at `limit`. It is about so many pixels wide.
function barOf(parts, whole, words, limit = undefined, pixels = 420) {
  const shown = parts.filter(([, value]) => value > 0), sum = shown.reduce((total, [, value]) => total + value, 0), scale = Math.max(whole, sum, 1);
  return el("div.stack", {role: "img", "aria-label": shown.map(([name, value]) => name + " " + words(value)).join(", ")},
    shown.map(([name, value, color]) => {
      const share = value / scale;
      return el("i", {style: `width:${(100 * share).toFixed(3)}%;background:${color};color:${inkOn(color)}`, title: `${name}: ${words(value)}, ${percentText(value / sum)}`},
        share * pixels > 6.5 * words(value).length ? words(value) : "");
    }),
    limit && limit < scale * 1.001 ? el("b.limit", {style: `left:${(100 * Math.min(limit / scale, 1)).toFixed(3)}%`, title: "limit " + words(limit)}) : null);
}
const keyOfParts = parts => el("div.legend", {}, parts.map(([name, color]) => el("span", {}, el("i", {style: `background:${color}`}), name)));

/// A row a rank: its step by cause, its memory at the peak by content, and the work of its stages.
function ranksTable(plan) {
  const ranks = Math.max(plan.times.length, plan.peaks.length);
  if (!ranks) return null;
  const step = Math.max(1, ...plan.times.map(times => times.reduce((a, b) => a + b, 0)));
  const peak = Math.max(1, ...plan.peaks), limit = Math.min(...plan.limits), room = limit < 1.6 * peak ? Math.max(limit, peak) : peak;
  const work = Array.from({length: ranks}, () => []);
  for (const [rank, forward, backward] of plan.stages) work[rank]?.push([forward, backward]);
  const most = Math.max(1, ...work.map(stages => stages.reduce((sum, [f, b]) => sum + f + b, 0)));
  const timesSeen = DATA.causes.map((cause, i) => [...cause, i]).filter(([, , i]) => plan.times.some(times => times[i] > 0));
  const memorySeen = DATA.contents.map((content, i) => [...content, i]).filter(([, , i]) => plan.contents.some(one => one[i] > 0));
  const rows = Array.from({length: ranks}, (_, rank) => el("tr", {}, el("th", {scope: "row"}, rank, rank === plan.critical && plan.times.length ? el("span.muted", {title: "ends last"}, " last") : null),
    plan.times.length ? el("td", {}, barOf(timesSeen.map(([name, color, i]) => [name, plan.times[rank][i], color]), step, value => timeText(value, step))) : null,
    plan.peaks.length ? el("td", {}, plan.contents[rank] ? barOf(memorySeen.map(([name, color, i]) => [name, plan.contents[rank][i], color]), room, value => bytesText(value, room), plan.limits[rank])
      : barOf([[DATA.memory, plan.peaks[rank], DATA.contents[0][1]]], room, value => bytesText(value, room), plan.limits[rank])) : null,
    plan.peaks.length ? el("td.number" + (plan.peaks[rank] > plan.limits[rank] ? ".alarm" : ""), {}, bytesText(plan.peaks[rank], peak)) : null,
    plan.stages.length ? el("td", {}, barOf(work[rank].flatMap(([f, b]) => [["forward", f, DATA.paints[0][0]], ["backward", b, DATA.paints[1][0]]]), most, value => timeText(value, most), undefined, 190)) : null));
  const head = (text, parts) => el("th", {scope: "col"}, text, parts ? keyOfParts(parts) : null);
  return el("div.wide", {}, el("table.ranks", {}, el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "rank"),
    plan.times.length ? head(`where its step goes, ${plan.case.engine}`, timesSeen) : null,
    plan.peaks.length ? head("memory at its peak, estimated" + (isFinite(limit) ? `; limit ${bytesText(limit)}` : ""), memorySeen) : null,
    plan.peaks.length ? el("th.number", {scope: "col"}, DATA.memory) : null,
    plan.stages.length ? head("a microbatch, estimated", [["forward", DATA.paints[0][0]], ["backward", DATA.paints[1][0]]]) : null)), el("tbody", {}, rows)));
}

const folderOf = plan => "./" + [...plan.case.name.split("/"), plan.name].map(part => encodeURIComponent(part).replace(/%(3D|2C)/g, decodeURIComponent)).join("/");

/// What a config says to take this plan as it is.
const planSnippet = plan => `plan:\n  file: ${plan.case.name}/${plan.name}/plan.yaml  # ${plan.schedule}\n`;

function planDetails(plan) {
  const term = (name, ...content) => content.every(part => part == null || part === "") ? null : [el("dt", {}, name), el("dd", {}, content)];
  const times = ["estimated", "simulated", "measured"].filter(engine => plan[engine] !== undefined).map(engine => engine + " " + timeText(plan[engine])).join(", ");
  return [
    el("dl", {}, term("schedule", plan.schedule), term("times", times), term("utilization", plan.utilization ? percentText(plan.utilization) : ""), term("cuts", plan.cuts), term("offloaded", plan.hosts),
      term("not possible", plan.time ? "" : plan.reason), term("not measured", plan.failure)),
    ranksTable(plan),
  ];
}

function planFiles(plan) {
  if (!plan.time || !DATA.files) return [];
  const copied = el("span.muted", {"aria-live": "polite"});
  const copy = el("button.chip", {type: "button", title: planSnippet(plan), click: () => {
    const done = () => { copied.textContent = " copied; its path is from the results' folder"; };
    if (navigator.clipboard) return navigator.clipboard.writeText(planSnippet(plan)).then(done, () => { copied.textContent = " " + planSnippet(plan); });
    copied.textContent = " " + planSnippet(plan);
  }}, "copy as plan:");
  const hints = {"plan.yaml": "the plan", "schedule.csv": "what each rank does", "timeline.svg": "a drawing for papers", "trace.json": "all events, for ui.perfetto.dev"};
  return [copy, copied, ...Object.entries(hints).map(([file, title]) => el("a", {href: folderOf(plan) + "/" + file, title}, file))];
}
