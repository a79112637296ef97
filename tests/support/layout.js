// text that is cut off by its box, and texts of a figure that overlap
const found = [];
const visible = (one) => one.checkVisibility();
const words = (one) => (one.textContent || "").trim().slice(0, 60);
for (const one of document.querySelectorAll("p, h1, h2, h3, h4, li, dt, dd, summary, label, button, .answer")) {
  if (!visible(one)) continue;
  if (one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).overflowX !== "auto" && one.clientWidth && getComputedStyle(one).display !== "inline") found.push(["clipped", one.tagName, words(one), one.scrollWidth, one.clientWidth]);
}
for (const svg of document.querySelectorAll(".figure svg, #scatter svg")) {
  if (!visible(svg)) continue;
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll("text")].map((one) => [one, one.getBoundingClientRect()]);
  for (const [at, [one, box]] of boxes.entries()) {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) found.push(["outside", svg.getAttribute("aria-label").slice(0, 40), words(one)]);
    for (const [other, its] of boxes.slice(at + 1)) {
      const across = Math.min(box.right, its.right) - Math.max(box.left, its.left), down = Math.min(box.bottom, its.bottom) - Math.max(box.top, its.top);
      if (across > 1 && down > 2.5) found.push(["overlap", words(one), words(other), across, down]);
    }
  }
}
const cells = [...document.querySelectorAll("main section table:not(#querylist)")].filter(visible).flatMap((table) => [...table.rows].flatMap((row) => [...row.cells])).filter((cell) => cell.scrollWidth > cell.clientWidth + 1);
found.push(...cells.map((cell) => ["cell", words(cell), cell.scrollWidth, cell.clientWidth]));
return found;
