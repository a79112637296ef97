// A link to something folded unfolds it; a click on a run in a figure follows the link of its row.

const unfold = (hash) => {
  const target = byId(hash.slice(1));
  if (!target) return false;
  for (let one = target.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
  target.scrollIntoView();
  return true;
};
followers.push(unfold);
const followRow = (row) => {
  const link = row?.querySelector("a");
  if (link) follow(link.getAttribute("href"));
};
const atPoint = (figure) => {
  const key = figure.querySelector(".at")?.dataset.trial;
  if (key) followRow(document.querySelector(`tr[data-trial="${key}"]`));
};
for (const figure of document.querySelectorAll(".figure")) {
  figure.addEventListener("click", () => atPoint(figure));
  figure.addEventListener("keydown", (event) => { if (event.key === "Enter") atPoint(figure); });
}
for (const row of document.querySelectorAll("tr[data-trial]")) {
  row.addEventListener("click", (event) => { if (!event.target.closest("a")) followRow(row); });
}
if (location.hash) unfold(location.hash);
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("#runs details")) one.open = true;
});
