// A link to something folded unfolds it; a click on a run in a figure follows the link of its row.

const unfold = () => {
  const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let one = target; one; one = one.parentElement?.closest("details")) one.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", unfold);
for (const figure of document.querySelectorAll(".figure")) {
  figure.addEventListener("click", () => {
    const key = figure.querySelector(".at")?.dataset.trial;
    const link = key && document.querySelector(`tr[data-trial="${key}"] a`);
    if (link) location.hash = link.hash;
  });
}
unfold();
