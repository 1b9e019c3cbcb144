// What the report can do beyond being read: sort tables, print, open what a link leads to.
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
