// Figures that answer to the pointer and to the arrow keys; a trial is highlighted everywhere it is drawn or listed.

const ofTrial = new Map();
for (const element of document.querySelectorAll("[data-trial]")) {
  const key = element.dataset.trial;
  if (!ofTrial.has(key)) ofTrial.set(key, []);
  ofTrial.get(key).push(element);
}
let lit = "", pinned = "";
const highlight = (key) => {
  if (key === lit) return;
  for (const element of ofTrial.get(lit) ?? []) element.classList.remove("lit");
  for (const element of ofTrial.get(key) ?? []) element.classList.add("lit");
  document.body.classList.toggle("some-lit", Boolean(key));
  lit = key;
};
const pin = (key) => {
  pinned = pinned === key ? "" : key;
  highlight(pinned);
};

const tip = byId("tip");
const tell = (element, text) => {
  tip.textContent = text;
  tip.classList.toggle("shown", Boolean(text));
  if (!text) return;
  const at = element.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(4, at.left + at.width / 2 - own.width / 2), innerWidth - own.width - 4);
  const above = at.top - own.height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : at.bottom + 8}px`;
};

const nearest = (points, x, y) => {
  let best = null, least = 18 ** 2; // pixels
  for (const point of points) {
    const box = point.getBoundingClientRect();
    const dx = Math.max(box.left - x, 0, x - box.right), dy = Math.max(box.top - y, 0, y - box.bottom);
    const far = dx * dx + dy * dy;
    if (far < least) [best, least] = [point, far];
  }
  return best;
};

const answering = (figure) => {
  const points = [...figure.querySelectorAll("title")].filter((title) => title.parentElement.tagName === "g").map((title) => {
    const point = title.parentElement;
    point.dataset.say = title.textContent;
    title.remove(); // else the browser shows it as well, a second later
    return point;
  });
  const choose = (point) => {
    figure.querySelector(".at")?.classList.remove("at");
    point?.classList.add("at");
    tell(point, point?.dataset.say ?? "");
    highlight(point?.dataset.trial ?? pinned);
  };
  figure.addEventListener("pointermove", (event) => choose(event.target.closest("[data-say]") ?? nearest(points, event.clientX, event.clientY)));
  figure.addEventListener("pointerleave", () => choose(null));
  figure.addEventListener("blur", () => choose(null));
  figure.addEventListener("click", () => pin(figure.querySelector(".at")?.dataset.trial ?? ""));
  figure.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter") pin(figure.querySelector(".at")?.dataset.trial ?? "");
    if (!step || !points.length) return;
    event.preventDefault();
    const at = points.indexOf(figure.querySelector(".at"));
    choose(points[(at + step + points.length) % points.length]);
  });
};
document.querySelectorAll(".figure").forEach(answering);

for (const row of document.querySelectorAll("tr[data-trial]")) {
  row.addEventListener("pointerenter", () => highlight(row.dataset.trial));
  row.addEventListener("pointerleave", () => highlight(pinned));
  row.addEventListener("click", (event) => { if (!event.target.closest("a")) pin(row.dataset.trial); });
}
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  tell(null, "");
  for (const point of document.querySelectorAll(".figure .at")) point.classList.remove("at");
  pinned = "";
  highlight("");
});
