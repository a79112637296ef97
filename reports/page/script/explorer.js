// The list of queries, what filters and sorts it, and the address that leads to what is shown.

const explorer = byId("explorer");
const CHOICES = ["a", "b", "metric"], FILTERS = ["which", "type", "filter"];
let current = -1, sorting = { by: "difference", down: false }, asked = 0, searched = null;

// What is written in the search field: a text, or between slashes a regular expression.
const wanted = () => {
  const text = byId("filter").value.trim().toLowerCase(), pattern = text.match(/^\/(.+)\/$/);
  try {
    const expression = pattern && new RegExp(pattern[1], "i");
    if (expression) return (shown) => expression.test(shown);
  } catch { /* not a regular expression, or not yet */ }
  return (shown) => shown.includes(text);
};
const matches = (row, test) =>
  test(`${row.query.id} ${row.query.text} ${row.query.type ?? ""} ${row.query.answer ?? ""}`.toLowerCase()) ||
  (searched !== null && test(searched[row.at]));
const WHICH = {
  all: () => true, differ: ({ difference }) => Math.abs(difference) > 1e-9,
  better: ({ difference }) => difference > 1e-9, worse: ({ difference }) => difference < -1e-9,
};

const everyRow = () => index.queries.map((query, at) => {
  const a = score(chosen.a, at), b = score(chosen.b, at);
  return { at, query, a, b, difference: b - a };
});
const rowsShown = () => {
  const test = wanted(), kind = byId("type").value;
  const found = everyRow().filter((row) => matches(row, test) && WHICH[byId("which").value](row) &&
    (kind === "all" || row.query.type === kind));
  const key = (row) => (sorting.by === "query" ? row.query.text : row[sorting.by]);
  return found.sort((one, two) => {
    const [x, y] = [key(one), key(two)];
    if (typeof x === "string") return sorting.down ? y.localeCompare(x) : x.localeCompare(y);
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || one.at - two.at;
    return (sorting.down ? y - x : x - y) || one.at - two.at;
  });
};

const list = () => {
  const rows = rowsShown();
  byId("queries").replaceChildren(
    ...rows.map((row) => {
      const button = make("button", { type: "button", "data-query": row.at, dir: "auto" }, row.query.text || row.query.id);
      button.addEventListener("click", () => show(row.at, true));
      const sign = row.difference > 1e-9 ? "better" : row.difference < -1e-9 ? "worse" : "";
      return make("tr", row.at === current ? { class: "current" } : {},
        make("td", {}, button), make("td", {}, shown(row.a)), make("td", {}, shown(row.b)),
        make("td", { class: sign }, shown(row.difference, true)));
    }));
  const counts = ["better", "worse"].map((which) => rows.filter(WHICH[which]).length);
  const equal = rows.filter(({ difference }) => Math.abs(difference) <= 1e-9).length;
  const without = rows.length - counts[0] - counts[1] - equal;
  byId("count").textContent = rows.length
    ? `${rows.length} of ${index.queries.length} queries; B is better on ${counts[0]}, worse on ${counts[1]}, equal on ${equal}` +
      (without ? `; ${without} without a value` : "")
    : "no matching query";
  for (const header of byId("querylist").tHead.rows[0].cells) {
    const own = header.dataset.sort === sorting.by;
    if (own) header.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    else header.removeAttribute("aria-sort");
  }
  scatter(rows);
  return rows;
};

// A point per query; queries with the same two scores share a point, which grows with their number.
const SIZE = 240;
const scatter = (rows) => {
  const svg = (tag, attributes, ...children) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const values = rows.flatMap(({ a, b }) => [a, b]).filter((value) => !Number.isNaN(value));
  const top = Math.max(1e-9, ...values), low = Math.min(0, ...values);
  const place = (value) => 24 + ((value - low) / (top - low)) * (SIZE - 34);
  const groups = new Map();
  for (const row of rows) {
    if (Number.isNaN(row.difference)) continue;
    const key = `${row.a} ${row.b}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  const points = [...groups.values()].map((group) => {
    const [{ a, b }] = group, count = group.length;
    const point = svg("circle", { cx: place(a), cy: SIZE - place(b), r: Math.min(14, 2.5 + Math.sqrt(count)), class: b > a ? "better" : b < a ? "worse" : "equal" });
    point.addEventListener("pointerenter", () => tell(point, `A ${shown(a)}, B ${shown(b)}: ` +
      (count === 1 ? group[0].query.text.slice(0, 120) : `${count} queries; each click shows the next`)));
    point.addEventListener("pointerleave", () => tell(null, ""));
    point.addEventListener("click", () => {
      const next = (group.findIndex(({ at }) => at === current) + 1) % count;
      show(group[next].at, true);
    });
    return point;
  });
  const line = svg("line", { x1: place(low), y1: SIZE - place(low), x2: place(top), y2: SIZE - place(top), class: "diagonal" });
  const words = (x, y, text, more = {}) => svg("text", { x, y, ...more }, text);
  byId("scatter").replaceChildren(svg("svg", { viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": "Score of A against score of B, a point per query; the list has the numbers" },
    ...(points.length ? [line] : []), ...points, !points.length ? "" : words(SIZE - 8, SIZE - 6, `A ${shown(low)} … ${shown(top)}`, { "text-anchor": "end" }), points.length ? words(6, 12, "B") : ""));
};

const show = async (at, focus = false) => {
  current = at;
  const turn = ++asked, query = index.queries[at];
  for (const row of byId("queries").rows) {
    const own = Number(row.querySelector("button").dataset.query) === at;
    row.classList.toggle("current", own);
    const frame = row.closest(".list");
    const [top, bottom] = [row.offsetTop - byId("querylist").tHead.offsetHeight, row.offsetTop + row.offsetHeight];
    if (own && (top < frame.scrollTop || bottom > frame.scrollTop + frame.clientHeight)) frame.scrollTop = top;
  }
  const [block, place] = await blockOf(at);
  const evidence = await evidenceOf(query, at);
  const pair = await Promise.all([...new Set([chosen.a, chosen.b])].map((trial) => column(trial, at, query, block, place)));
  if (turn !== asked) return; // another query was chosen meanwhile
  const detail = byId("detail");
  detail.replaceChildren(
    make("a", { class: "back", href: "#querylist" }, "back to the list"),
    make("h3", { dir: "auto" }, query.text || query.id),
    make("p", { class: "where" }, [query.id, query.type].filter(Boolean).join(" · ")),
    query.answer ? make("p", { dir: "auto" }, `Reference answer: ${query.answer}`) : "",
    query.evidence.length ? make("ol", { class: "evidence" }, ...evidence) : make("p", {}, "The corpus has no answer."),
    retrieval(query, block, place), make("div", { class: "pair" }, ...pair), asJson(query, at, block, place));
  detail.dataset.query = query.id;
  detail.scrollTop = 0;
  if (focus) remember();
  if (focus && matchMedia("(max-width: 60rem)").matches) detail.scrollIntoView();
};

// -- the address: names, not numbers, so that it means the same in a later report

const remember = () => {
  const state = new URLSearchParams();
  for (const id of ["a", "b"]) state.set(id, index.trials[chosen[id]]);
  state.set("metric", index.metrics[chosen.metric]);
  if (current >= 0) state.set("query", index.queries[current].id);
  for (const id of FILTERS) if (!["", "all"].includes(byId(id).value)) state.set(id, byId(id).value);
  if (byId("deep").checked) state.set("deep", "yes");
  if (sorting.by !== "difference" || sorting.down) state.set("sort", `${sorting.by}${sorting.down ? " down" : ""}`);
  try {
    history.replaceState(null, "", `#${state}`);
  } catch { /* a page inside a notebook has no address */ }
};
const leadsToQueries = (hash) => {
  const state = new URLSearchParams(hash.slice(1));
  return [...CHOICES, ...FILTERS, "query", "sort", "deep"].some((name) => state.has(name));
};
const recall = async (hash) => {
  const state = new URLSearchParams(hash.slice(1));
  const names = { a: index.trials, b: index.trials, metric: index.metrics };
  for (const id of CHOICES) {
    const at = names[id].indexOf(state.get(id));
    if (at >= 0) { chosen[id] = at; byId(id).value = String(at); }
  }
  for (const id of FILTERS) {
    const value = state.get(id) ?? (id === "filter" ? "" : "all");
    if (id === "filter" || [...byId(id).options].some((option) => option.value === value)) byId(id).value = value;
  }
  const [by, down] = (state.get("sort") ?? "difference").split(" ");
  sorting = { by, down: Boolean(down) };
  byId("deep").checked = state.has("deep");
  await search();
  const rows = rowsShown(), at = index.queries.findIndex((query) => query.id === state.get("query"));
  if (at >= 0 || rows.length) await show(at >= 0 ? at : rows[0].at);
  explorer.scrollIntoView();
};

// -- search in passages: texts of what A and B selected, unpacked once

const search = async () => {
  if (!byId("deep").checked) searched = null;
  else {
    searched = await Promise.all(index.queries.map(async (_, at) => {
      const [block, place] = await blockOf(at);
      const numbers = new Set([chosen.a, chosen.b].flatMap((trial) => block.rows[trial][place][0]));
      return (await Promise.all([...numbers].map((number) => textOf(passage(number))))).join("\n").toLowerCase();
    }));
  }
  list();
};

const start = async () => {
  index = await once("index");
  chosen.b = Math.min(1, index.trials.length - 1);
  options(byId("a"), index.trials, chosen.a);
  options(byId("b"), index.trials, chosen.b);
  options(byId("metric"), index.metrics);
  const kinds = [...new Set(index.queries.map((query) => query.type).filter(Boolean))].sort();
  byId("type").replaceChildren(...["all", ...kinds].map((kind) => make("option", { value: kind }, kind)));
  byId("kinds").hidden = !kinds.length;
  for (const id of CHOICES) {
    byId(id).addEventListener("change", async () => {
      chosen[id] = Number(byId(id).value);
      await search();
      if (current >= 0) await show(current);
      remember();
    });
  }
  for (const id of FILTERS) byId(id).addEventListener("input", () => { list(); remember(); });
  byId("deep").addEventListener("change", () => search().then(remember));
  byId("csv").addEventListener("click", () => {
    const head = ["id", "query", index.trials[chosen.a], index.trials[chosen.b], "difference"];
    const lines = rowsShown().map(({ query, a, b, difference }) => [query.id, query.text, ...[a, b, difference].map((value) => (Number.isNaN(value) ? "" : value.toFixed(4)))]);
    download("queries.csv", csv([head, ...lines]));
  });
  for (const header of byId("querylist").tHead.rows[0].cells) {
    header.querySelector("button").addEventListener("click", () => {
      const by = header.dataset.sort;
      sorting = { by, down: sorting.by === by ? !sorting.down : by !== "query" };
      list();
      remember();
    });
  }
  document.addEventListener("keydown", (event) => {
    const inList = document.activeElement?.closest(".list");
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    const key = event.key.toLowerCase();
    const step = (inList && { ArrowDown: 1, ArrowUp: -1 }[event.key]) || (!typing && !event.ctrlKey && !event.metaKey && { j: 1, k: -1 }[key]);
    if (!step) return;
    event.preventDefault();
    const buttons = [...byId("queries").querySelectorAll("button")];
    const at = buttons.findIndex((button) => Number(button.dataset.query) === current);
    const next = buttons[at + step];
    if (next) { next.focus(); show(Number(next.dataset.query), false).then(remember); }
  });
  followers.push((hash) => leadsToQueries(hash) && (recall(hash), true));
  if (leadsToQueries(location.hash)) await recall(location.hash);
  else {
    const rows = list();
    if (rows.length) await show(rows[0].at);
  }
  explorer.dataset.ready = "true";
};
start().catch((error) => {
  byId("detail").textContent = `The explorer needs a newer browser (${error.message}).`;
  throw error;
});
