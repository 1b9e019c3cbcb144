// How fast a report page is: first paint of four visits, and frames a second while a plan is panned at four zooms.
// In headless Chromium, 1440 x 900, without a GPU. Usage: node --experimental-websocket page_speed.mjs REPORT.html
import {spawn} from "node:child_process";
import {mkdtempSync} from "node:fs";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";

const file = resolve(process.argv[2]), folder = mkdtempSync(join(tmpdir(), "page_speed"));
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--window-size=1440,900"];
const browser = spawn("chromium", [...flags, "--user-data-dir=" + folder, "--remote-debugging-port=0", "about:blank"], {stdio: ["ignore", "ignore", "pipe"]});
const port = await new Promise(found => {
  let said = "";
  browser.stderr.on("data", more => { const at = (said += more).match(/ws:\/\/127.0.0.1:(\d+)/); if (at) found(at[1]); });
});
const pages = await (await fetch(`http://127.0.0.1:${port}/json`)).json();
const socket = new WebSocket(pages.find(one => one.type === "page").webSocketDebuggerUrl);
await new Promise(open => socket.onopen = open);
const waiting = new Map();
socket.onmessage = event => { const {id, result} = JSON.parse(event.data); waiting.get(id)?.(result); };
let calls = 0;
const call = (method, params = {}) => new Promise(done => { waiting.set(++calls, done); socket.send(JSON.stringify({id: calls, method, params})); });
const value = async expression => (await call("Runtime.evaluate", {expression, awaitPromise: true, returnByValue: true})).result?.value;
await call("Page.enable");
for (let visit = 0; visit < 4; ++visit) {
  await call("Page.navigate", {url: "file://" + file + "?" + visit});
  await new Promise(later => setTimeout(later, 2500));
  console.log("first paint", await value(`performance.getEntriesByType("paint")[0].startTime.toFixed(0)`), "ms");
}
const panned = part => `(async () => {
  const {timeline} = instrument.view, end = timeline.end;
  scrollTo(0, document.querySelector("canvas").getBoundingClientRect().top + scrollY);
  let frames = 0;
  for (const begun = performance.now(); performance.now() - begun < 3000; ++frames) {
    const from = end * (frames % 60) / 60 * Math.min(0.2, 1.01 - ${part});
    timeline.show({from, to: from + end * ${part}});
    await new Promise(requestAnimationFrame);
  }
  return frames / 3;
})()`;
for (const part of [1, 0.5, 0.1, 0.01]) console.log(`${part * 100} % of the step in sight: ${(await value(panned(part))).toFixed(1)} frames a second`);
socket.close();
browser.kill();
