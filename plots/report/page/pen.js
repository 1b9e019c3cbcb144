// A pen like a canvas' that writes an SVG: what the timeline shows now, for papers and slides.
const FONTS = getComputedStyle(document.documentElement).getPropertyValue("--fonts").trim() || "sans-serif";

function svgPen(width, height, measure) {
  const out = [], round = value => String(Math.round(value * 100) / 100);
  const text = words => String(words).replace(/[&<>]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;"})[c]);
  let path = "", dashes = [];
  const pen = {
    globalAlpha: 1, fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, font: "", textAlign: "left", textBaseline: "middle",
    fillRect(x, y, w, h) {
      if (w > 0 && h > 0)
        out.push(`<rect x="${round(x)}" y="${round(y)}" width="${round(w)}" height="${round(h)}" fill="${pen.fillStyle}"` + (pen.globalAlpha < 1 ? ` opacity="${pen.globalAlpha}"` : "") + "/>");
    },
    fillText(words, x, y) {
      const size = /([\d.]+)px/.exec(pen.font)[1], bold = pen.font.startsWith("bold") ? ' font-weight="bold"' : "";
      const anchor = {left: "start", center: "middle", right: "end"}[pen.textAlign];
      out.push(`<text x="${round(x)}" y="${round(y + 0.35 * size)}" font-size="${round(Number(size))}"${bold} text-anchor="${anchor}" fill="${pen.fillStyle}">${text(words)}</text>`);
    },
    measureText(words) { measure.font = pen.font; return measure.measureText(words); },
    setLineDash(next) { dashes = next; },
    beginPath() { path = ""; },
    moveTo(x, y) { path += "M" + round(x) + " " + round(y); },
    lineTo(x, y) { path += "L" + round(x) + " " + round(y); },
    stroke() {
      out.push(`<path d="${path}" fill="none" stroke="${pen.strokeStyle}" stroke-width="${pen.lineWidth}"` + (dashes.length ? ` stroke-dasharray="${dashes.join(" ")}"` : "") + "/>");
    },
    document() {
      return `<svg xmlns="${SVG_NAMESPACE}" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONTS.replace(/"/g, "'")}">${out.join("\n")}</svg>\n`;
    },
  };
  return pen;
}
