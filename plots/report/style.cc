#include "plots/report/style.h"

#include "plots/figure/theme.h"

namespace pfeife::plots {

namespace {

/// What is paper, ink or rule in light mode, in the page and in its drawings, whose colours are
/// attributes; fills that mean something stay, and so does what is written on them.
std::string dark_style() {
  struct Pair {
    Color light, dark;
  };
  const Pair pairs[] = {{kPaper, kDarkPaper},
                        {kInk, {0xe6, 0xe9, 0xed}},
                        {kMuted, {0xa3, 0xac, 0xb6}},
                        {kRule, {0x3a, 0x42, 0x4c}},
                        {kIdle, {0x2a, 0x30, 0x38}},
                        {mix(kIdle, kPaper, 0.5), {0x20, 0x25, 0x2c}},
                        {kAlarm, {0xff, 0x8a, 0x7a}},
                        {kLaunch, kDarkLaunch},
                        {kWaiting, {0x98, 0xa0, 0xaa}},
                        {kCoolDown.light, kCoolDown.dark},
                        {kWarmUp.light, kWarmUp.dark},
                        {kSteadyState.light, kSteadyState.dark},
                        {kImbalance.light, kImbalance.dark}};
  std::string css;
  for (const auto& [light, dark] : pairs)
    css += "svg[fill=\"" + hex(light) + "\"],svg [fill=\"" + hex(light) + "\"]{fill:" + hex(dark) +
           "}svg [stroke=\"" + hex(light) + "\"]{stroke:" + hex(dark) + "}";
  css += "svg [fill=\"" + hex(fill(Paint::Optimizer)) + "\"]{stroke:" + hex(pairs[2].dark) + "}";
  const std::string ink = hex(pairs[1].dark), rule = hex(pairs[3].dark), idle = hex(pairs[4].dark);
  return "@media (prefers-color-scheme:dark){@media not print{" + css + "body{color:" + ink +
         ";background:" + hex(pairs[0].dark) + "}h2{border-color:" + rule +
         "}details,th,td{border-color:" + rule + "}details>summary,pre{background:" + idle +
         "}dt,.muted{color:" + hex(pairs[2].dark) + "}.alarm{color:" + hex(pairs[6].dark) +
         "}tr.best td{background:#23344d}" +
         "td[style]{background-blend-mode:multiply;color:#111}}}\n";
}

}  // namespace

std::string report_style() {
  const std::string ink = hex(kInk), muted = hex(kMuted), rule = hex(kRule), idle = hex(kIdle);
  const std::string best = hex(mix(fill(Paint::Forward), kPaper, 0.75));
  return ":root{color-scheme:light dark}\n"
         "body{font:15px/1.5 " +
         std::string(kFonts) + ";color:" + ink + ";background:" + hex(kPaper) +
         ";max-width:1330px;margin:0 auto;padding:24px 28px 60px}\n"
         "h1{font-size:26px;line-height:1.25;margin:0 0 4px}\n"
         "h2{font-size:19px;margin:40px 0 10px;padding-top:10px;border-top:1px solid " +
         rule +
         "}\n"
         "h3{font-size:15px;margin:22px 0 6px}\n"
         "p{margin:6px 0;max-width:75ch}\n"
         "a{color:inherit}\n"
         "nav a{margin-right:18px}\n"
         "nav{margin:12px 0}\n"
         "dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 18px;margin:10px 0}\n"
         "dt{color:" +
         muted +
         "}\n"
         "dd{margin:0;overflow-wrap:anywhere}\n"
         "dl.terms{grid-template-columns:minmax(130px,max-content) minmax(0,85ch);gap:7px 18px}\n"
         "dl.terms dt{color:inherit;font-weight:bold}\n"
         ".muted{color:" +
         muted +
         "}\n"
         ".alarm{color:" +
         hex(kAlarm) +
         ";font-weight:bold}\n"
         ".notes{border-left:4px solid " +
         hex(fill(Paint::Backward)) +
         ";padding:2px 14px;margin-top:14px;margin-bottom:14px}\n"
         ".notes ul{margin:4px 0;padding-left:18px}\n"
         ".wide{overflow-x:auto;margin-top:8px;margin-bottom:8px}\n"
         "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}\n"
         "th,td{padding:4px 4px;text-align:left;border-bottom:1px solid " +
         rule +
         ";white-space:nowrap}\n"
         "th{white-space:normal;vertical-align:bottom;border-bottom:2px solid " +
         muted +
         "}\n"
         "th.number,td.number{text-align:right}\n"
         "th button{all:unset;cursor:pointer;font-weight:bold}\n"
         "th button:hover,th button:focus-visible{text-decoration:underline}\n"
         "th[aria-sort=ascending] button::after{content:' ▲';font-size:9px}\n"
         "th[aria-sort=descending] button::after{content:' ▼';font-size:9px}\n"
         "tr.best td{background:" +
         best +
         "}\n"
         "figure{margin:0}\n"
         "details{border:1px solid " +
         rule +
         ";border-radius:4px;margin:10px 0}\n"
         "details>*{margin-left:14px;margin-right:14px}\n"
         "details>summary{margin:0;padding:8px 14px;cursor:pointer;background:" +
         idle +
         "}\n"
         "details details>summary{background:none}\n"
         "summary b{margin-right:10px;overflow-wrap:anywhere}\n"
         ".multiples{display:grid;grid-template-columns:repeat(auto-fill,minmax(260px,320px));"
         "gap:6px 14px}\n"
         ".legend{display:flex;flex-wrap:wrap;gap:2px 14px}\n"
         "figcaption{font-weight:bold;font-size:13.5px;margin-bottom:2px}\n"
         "svg{max-width:100%;height:auto;display:block}\n"
         "pre{background:" +
         idle +
         ";padding:12px 14px;overflow-x:auto;font-size:12.5px;line-height:1.4}\n"
         "@media (max-width:700px){body{padding:12px 10px "
         "40px}dl,dl.terms{grid-template-columns:1fr}"
         "details>*{margin-left:6px;margin-right:6px}nav a{display:inline-block;margin-right:12px}"
         "}\n"
         // At its own size, with letters that can be read, and scrolled.
         "@media screen and (max-width:1000px){.wide svg{max-width:none}}\n" +
         dark_style() +
         "@media print{body{max-width:none;padding:0;font-size:11px}nav{display:none}"
         "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}"
         "table{font-size:8.5px}th,td{padding:2px "
         "5px;white-space:normal}td.number{white-space:nowrap}"
         ".wide,pre{overflow:visible}pre{white-space:pre-wrap}"
         "h2,h3,summary,figcaption,p.muted{break-after:avoid}#cases~details "
         "details:not(.best),#config,"
         "#config+pre,.on-screen{display:none}"
         "h2{margin:16px 0 6px;padding-top:6px}h3{margin:8px 0 3px}"
         ".multiples{grid-template-columns:repeat(4,1fr);gap:2px 8px}"
         "figure svg{max-height:112mm}.multiples svg{max-height:34mm}"
         "details>summary{padding:3px 8px}details>*{margin-left:6px;margin-right:6px}"
         // The large table begins a page, and so does a case; its plan stands on one page with the
         // timeline.
         "#results,#links,#cases,#cases~details~details{break-before:page}"
         ".best dl{font-size:8.5px;margin:4px 0}"
         "figure,tr,p,details.best{break-inside:avoid}@page{size:landscape;margin:12mm}}\n";
}

std::string report_script() {
  return R"js(
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      table.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const compare = (a, b) => {
        const x = key(a), y = key(b);
        if (x === "" || y === "") return (x === "") - (y === "");  // nothing comes last, both ways
        const order = isNaN(x) || isNaN(y) ? x.localeCompare(y, undefined, {numeric: true}) : x - y;
        return up ? order : -order;
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
// A drawing that would be shrunk to the height of a page loses its strips of memory for the print.
const rows = drawing => {
  const box = drawing.viewBox.baseVal, whole = box.height;
  if (whole < 0.45 * box.width) return () => {};
  const moved = [...drawing.querySelectorAll(".strips")].flatMap(strips => {
    const panel = strips.parentNode, axis = panel.querySelector(".axis");
    panel.style.transform = `translateY(${box.height - whole}px)`;
    axis.style.transform = `translateY(${-strips.dataset.height}px)`;
    strips.style.display = "none";
    box.height -= strips.dataset.height;
    return [panel, axis, strips];
  });
  drawing.setAttribute("height", box.height);
  return () => {
    moved.forEach(part => part.removeAttribute("style"));
    drawing.setAttribute("height", box.height = whole);
  };
};
let printed = [];
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("#cases ~ details, details.best")) part.open = true;
  printed = [...document.querySelectorAll("details.best svg")].map(rows);
});
addEventListener("afterprint", () => printed.forEach(restore => restore()));
// A link to what lies in a fold opens it.
const unfold = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let part = target; part; part = part.parentElement)
    if (part.tagName === "DETAILS") part.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
)js";
}

}  // namespace pfeife::plots
