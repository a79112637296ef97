"use strict";
// Everything shown comes from documents and models and is untrusted: it is only set as text, never as markup.
(() => {
  const make = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };
  const byId = (id) => document.getElementById(id);

  // -- tables that sort

  const sortable = (table) => {
    for (const [column, header] of [...table.tHead.rows[0].cells].entries()) {
      const button = make("button", { type: "button" }, header.textContent);
      header.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = header.getAttribute("aria-sort") !== "descending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        header.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
        const rows = [...table.tBodies[0].rows].map((row) => [key(row), row]);
        rows.sort(([one], [two]) => compared(one, two, down));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    }
  };
  const compared = (one, two, down) => {
    if (one === "" || two === "") return (one === "") - (two === ""); // rows without a value come last
    const numbers = [Number(one), Number(two)];
    const order = numbers.some(Number.isNaN) ? one.localeCompare(two) : numbers[0] - numbers[1];
    return down ? -order : order;
  };
  document.querySelectorAll("table.sortable").forEach(sortable);

  // -- the query explorer

  const explorer = byId("explorer");
  if (!explorer) return;

  const unpacked = async (id) => {
    const bytes = Uint8Array.from(atob(byId(id).textContent.trim()), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  const kept = new Map();
  const once = (id) => {
    if (!kept.has(id)) kept.set(id, unpacked(id));
    return kept.get(id);
  };
  // Offsets count Unicode code points; a JavaScript string counts UTF-16 units, two for code points above U+FFFF.
  const characters = (text) => (/[\ud800-\udfff]/.test(text) ? Array.from(text) : text);
  const piece = (text, start, end) => (typeof text === "string" ? text.slice(start, end) : text.slice(start, end).join(""));

  let index, chosen = { a: 0, b: 0, metric: 0 }, current = -1, sorting = { by: "difference", down: false }, asked = 0;

  const score = (trial, query) => {
    const value = index.scores[chosen.metric][trial][query];
    return value === null ? NaN : value / 10000;
  };
  const shown = (value, sign = false) =>
    Number.isNaN(value) ? "–" : (sign && value > 0 ? "+" : "") + value.toFixed(3).replace("-", "−");

  const rowsShown = () => {
    const wanted = byId("filter").value.trim().toLowerCase();
    const rows = index.queries.map((query, at) => {
      const a = score(chosen.a, at), b = score(chosen.b, at);
      return { at, query, a, b, difference: b - a };
    });
    const found = rows.filter(({ query }) => `${query.id} ${query.text} ${query.type ?? ""}`.toLowerCase().includes(wanted));
    const key = (row) => (sorting.by === "query" ? row.query.text : row[sorting.by]);
    found.sort((one, two) => {
      const [x, y] = [key(one), key(two)];
      if (typeof x === "string") return sorting.down ? y.localeCompare(x) : x.localeCompare(y);
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || one.at - two.at;
      return (sorting.down ? y - x : x - y) || one.at - two.at;
    });
    return found;
  };

  const list = () => {
    const rows = rowsShown();
    byId("queries").replaceChildren(
      ...rows.map((row) => {
        const button = make("button", { type: "button", "data-query": row.at, dir: "auto" }, row.query.text || row.query.id);
        button.addEventListener("click", () => show(row.at, true));
        return make("tr", { "aria-selected": String(row.at === current) },
          make("td", {}, button), make("td", {}, shown(row.a)), make("td", {}, shown(row.b)),
          make("td", {}, shown(row.difference, true)));
      }));
    byId("count").textContent = rows.length ? `${rows.length} of ${index.queries.length} queries` : "no matching query";
    for (const header of byId("querylist").tHead.rows[0].cells) {
      const own = header.dataset.sort === sorting.by;
      if (own) header.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    }
    return rows;
  };

  const passage = (number) => {
    const [docs, starts, lengths] = index.passages;
    return { doc: docs[number], start: starts[number], end: starts[number] + lengths[number] };
  };
  const named = ({ doc, start, end }) => `${index.documents[doc][0]}:${start}–${end}`;

  const textOf = async ({ doc, start, end }) => {
    const block = index.documents[doc][1];
    if (block < 0) return null;
    const pieces = (await once(`text-${block}`))[doc] ?? [];
    const found = pieces.find(([from, text]) => from <= start && start <= from + text.length);
    if (!found) return null;
    const text = characters(found[1]);
    return start - found[0] <= text.length ? piece(text, start - found[0], end - found[0]) : null;
  };

  // The rule of precision@k: a passage is relevant if its overlap with a place is at least half of the shorter of both.
  const relevant = (where, query) =>
    query.evidence.some((places) => places.some(([doc, start, end]) => {
      if (doc !== where.doc) return false;
      if (query.whole) return true;
      const shared = Math.min(where.end, end) - Math.max(where.start, start);
      return shared > 0 && 2 * shared >= Math.min(where.end - where.start, end - start);
    }));

  const marked = (where, text, query) => {
    const cuts = [];
    if (!query.whole) {
      for (const [doc, start, end] of query.evidence.flat()) {
        const [from, to] = [Math.max(start, where.start) - where.start, Math.min(end, where.end) - where.start];
        if (doc === where.doc && from < to) cuts.push([from, to]);
      }
    }
    cuts.sort((one, two) => one[0] - two[0]);
    const chars = characters(text), parts = [];
    let at = 0;
    for (const [from, to] of cuts) {
      if (to <= at) continue;
      parts.push(piece(chars, at, Math.max(at, from)), make("mark", {}, piece(chars, Math.max(at, from), to)));
      at = to;
    }
    return [...parts, piece(chars, at)];
  };

  const judgment = (one) =>
    one.failed ? `no judgment: ${one.failed}` :
      [`grade ${one.grade}`, one.why, one.quote ? `“${one.quote}”` : "", ...(one.flags ?? [])].filter(Boolean).join(" · ");

  const judgedPassages = (verdicts, rank) =>
    Object.entries(verdicts ?? {}).flatMap(([judge, verdict]) =>
      verdict.findings.filter((finding) => finding.rank === rank).flatMap((finding) =>
        finding.judgments.map((one) => make("p", { class: "judged", dir: "auto" }, `${judge}: ${judgment(one)}`))));

  const card = async (where, head, query, extra = []) => {
    const text = await textOf(where), holds = relevant(where, query);
    const item = make("li", { class: holds ? "passage holds" : "passage" },
      make("div", { class: "where" }, `${head}${named(where)}${holds ? " · ✓ evidence" : ""}`));
    item.append(text === null ? make("p", { class: "soft" }, "(text omitted to keep the page small)")
      : make("p", text.length > 4000 ? { class: "text long", dir: "auto", tabindex: "0" } : { class: "text", dir: "auto" },
        ...marked(where, text, query)));
    item.append(...extra);
    return item;
  };

  const column = async (trial, query, block, at) => {
    const [keeps, scores, drops, tokens] = block.rows[trial][at];
    const verdicts = block.judged?.[trial]?.[at];
    const cards = await Promise.all(keeps.map((number, rank) =>
      card(passage(number), `${rank + 1} · score ${scores[rank]} · ${tokens[rank]} tokens · `, query,
        judgedPassages(verdicts, rank + 1))));
    const ends = cutoff(tokens);
    if (ends !== null) cards.splice(ends.before, 0, make("li", { class: "cutoff" }, ends.text));
    const parts = [make("h4", {}, index.trials[trial]),
      make("p", { class: "soft" }, `${index.metrics[chosen.metric]} ${shown(score(trial, current))}`),
      cards.length ? make("ol", { class: "passages" }, ...cards) : make("p", {}, "No passage was selected.")];
    for (const [judge, verdict] of Object.entries(verdicts ?? {})) {
      const items = verdict.findings.filter((finding) => finding.item !== undefined);
      const lines = [...verdict.flags, ...items.flatMap((finding) =>
        finding.judgments.map((one) => `${finding.item} → ${judgment({ ...one, quote: finding.item.includes(one.quote) ? "" : one.quote })}`))];
      if (lines.length) parts.push(make("p", { class: "judged", dir: "auto" }, `${judge}: ${lines.join(" | ")}`));
    }
    const steps = new Map();
    for (let n = 0; n < drops.length; n += 2) {
      const [step, why] = block.reasons[drops[n + 1]];
      if (!steps.has(step)) steps.set(step, []);
      steps.get(step).push([drops[n], why]);
    }
    for (const [step, dropped] of steps) {
      const evident = dropped.filter(([number]) => relevant(passage(number), query)).length;
      const summary = `${step} dropped ${dropped.length}${evident ? `, ${evident} of them with evidence` : ""}`;
      const fold = make("details", { class: "dropped" }, make("summary", {}, summary));
      fold.addEventListener("toggle", async () => {
        if (!fold.open || fold.childElementCount > 1) return;
        const shownFirst = [...dropped].sort(([x], [y]) => relevant(passage(y), query) - relevant(passage(x), query));
        fold.append(make("ol", { class: "passages" }, ...(await Promise.all(shownFirst.map(([number, why]) =>
          card(passage(number), "", query, [make("div", { class: "where" }, why)]))))));
      });
      parts.push(fold);
    }
    return make("article", {}, ...parts);
  };

  // Passages beyond the metric's cutoff do not count; a line marks the cutoff.
  const cutoff = (tokens) => {
    const { tokens: budget, passages } = index.cutoffs[chosen.metric];
    const name = index.metrics[chosen.metric];
    if (passages !== undefined) return passages < tokens.length ? { before: passages, text: `${name} ends here` } : null;
    if (budget === undefined) return null;
    let spent = 0;
    for (const [rank, count] of tokens.entries()) {
      spent += count;
      if (spent === budget && rank + 1 < tokens.length) return { before: rank + 1, text: `${name} ends here` };
      if (spent > budget) return { before: rank + 1, text: `${name} ends ${count - (spent - budget)} tokens into the passage above` };
    }
    return null;
  };

  const outcome = (trial, at, item) => index.outcomes[index.outcome_of[trial][at][item]];

  const show = async (at, focus = false) => {
    current = at;
    const turn = ++asked, query = index.queries[at];
    for (const row of byId("queries").rows) {
      row.setAttribute("aria-selected", String(Number(row.querySelector("button").dataset.query) === at));
    }
    const number = index.blocks.findLastIndex((first) => first <= at);
    const block = await once(`block-${number}`), place = at - index.blocks[number];
    const evidence = await Promise.all(query.evidence.map(async (places, item) => {
      const [doc, start, end] = places[0], where = { doc, start, end };
      const text = query.whole ? "the document as a whole" : await textOf(where);
      const more = places.length > 1 ? ` and ${places.length - 1} equivalent places` : "";
      const outcomes = `whole selection of A: ${outcome(chosen.a, at, item)} · of B: ${outcome(chosen.b, at, item)}`;
      return make("li", {}, make("div", { class: "where" }, (query.whole ? index.documents[doc][0] : named(where)) + more),
        make("p", { class: "text", dir: "auto" }, text ?? ""), make("div", { class: "where" }, outcomes));
    }));
    const pair = await Promise.all([...new Set([chosen.a, chosen.b])].map((trial) => column(trial, query, block, place)));
    if (turn !== asked) return; // another query was chosen meanwhile
    const detail = byId("detail");
    detail.replaceChildren(
      make("a", { class: "back", href: "#querylist" }, "back to the list"),
      make("h3", { dir: "auto" }, query.text || query.id),
      make("p", { class: "where" }, [query.id, query.type].filter(Boolean).join(" · ")),
      query.answer ? make("p", { dir: "auto" }, `Reference answer: ${query.answer}`) : "",
      query.evidence.length ? make("ol", { class: "evidence" }, ...evidence) : make("p", {}, "The corpus has no answer."),
      make("div", { class: "pair" }, ...pair));
    detail.dataset.query = query.id;
    if (focus && matchMedia("(max-width: 60rem)").matches) detail.scrollIntoView();
  };

  const fill = (id, names, at) => {
    byId(id).replaceChildren(...names.map((name, number) => make("option", { value: number }, name)));
    byId(id).value = String(at);
  };

  const start = async () => {
    index = await once("index");
    chosen = { a: 0, b: Math.min(1, index.trials.length - 1), metric: 0 };
    fill("a", index.trials, chosen.a);
    fill("b", index.trials, chosen.b);
    fill("metric", index.metrics, 0);
    for (const id of ["a", "b", "metric"]) {
      byId(id).addEventListener("change", () => {
        chosen[id] = Number(byId(id).value);
        list();
        if (current >= 0) show(current);
      });
    }
    byId("filter").addEventListener("input", list);
    for (const header of byId("querylist").tHead.rows[0].cells) {
      header.querySelector("button").addEventListener("click", () => {
        const by = header.dataset.sort;
        sorting = { by, down: sorting.by === by ? !sorting.down : by !== "query" };
        list();
      });
    }
    byId("queries").addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const buttons = [...byId("queries").querySelectorAll("button")];
      const next = buttons[buttons.indexOf(document.activeElement) + step];
      if (next) { next.focus(); show(Number(next.dataset.query)); }
    });
    const rows = list();
    if (rows.length) await show(rows[0].at);
    explorer.dataset.ready = "true";
  };
  start().catch((error) => {
    byId("detail").textContent = `The explorer needs a newer browser (${error.message}).`;
    throw error;
  });
})();
