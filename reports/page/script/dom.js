// Everything shown comes from documents and models and is untrusted: it is only set as text, never as markup.
const make = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};
const byId = (id) => document.getElementById(id);
const options = (select, names, chosen = 0) => {
  select.replaceChildren(...names.map((name, at) => make("option", { value: at }, name)));
  select.value = String(chosen);
};
const download = (name, text) => {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
};
// Links within the page. In a notebook's frame, the browser would load the notebook itself into the frame; and a link
// that was followed before must lead there again.
const followers = [];
const follow = (hash) => {
  try {
    history.pushState(null, "", hash);
  } catch { /* a frame has no address */ }
  if (!followers.some((one) => one(hash))) byId(hash.slice(1))?.scrollIntoView();
};
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#"]');
  if (!link) return;
  event.preventDefault();
  follow(link.getAttribute("href"));
});
addEventListener("hashchange", () => followers.some((one) => one(location.hash)));
const NUMBER = /^[-+−]?[\d.,]+$/;
const csv = (rows) =>
  rows.map((row) => row.map((cell) => {
    const text = String(cell ?? "");
    const formula = /^[-=+@\t\r]/.test(text) && !NUMBER.test(text);
    const safe = formula ? `'${text}` : text; // a spreadsheet must not take a text for a formula
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }).join(",")).join("\n") + "\n";
