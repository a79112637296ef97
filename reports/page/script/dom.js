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
const csv = (rows) =>
  rows.map((row) => row.map((cell) => {
    const text = String(cell ?? "");
    const safe = /^[=+@\t]/.test(text) ? `'${text}` : text; // a spreadsheet must not take a text for a formula
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }).join(",")).join("\n") + "\n";
