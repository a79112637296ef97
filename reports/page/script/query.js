// One query: its evidence, and the passages of two trials side by side.

const judgment = (one) =>
  one.failed ? `no judgment: ${one.failed}` :
    [`grade ${one.grade}`, one.why, one.quote ? `“${one.quote}”` : "", ...(one.flags ?? [])].filter(Boolean).join(" · ");

const judgedPassages = (verdicts, rank) =>
  Object.entries(verdicts ?? {}).flatMap(([judge, verdict]) =>
    verdict.findings.filter((finding) => finding.rank === rank).flatMap((finding) =>
      finding.judgments.map((one) => make("p", { class: "judged", dir: "auto" }, `${judge}: ${judgment(one)}`))));

const marked = (text, cuts) => {
  const chars = characters(text), parts = [];
  let at = 0;
  for (const [from, to] of cuts) {
    parts.push(piece(chars, at, from), make("mark", {}, piece(chars, from, to)));
    at = to;
  }
  return [...parts, piece(chars, at)];
};

// A passage as it is in the document, or as Markdown if it looks like that; the reader can change between both.
const body = (text, cuts) => {
  const plain = () => make("div", { class: "text plain", dir: "auto" }, ...marked(text, cuts));
  const scrolling = (made) => {
    if (text.length <= 4000) return made;
    made.classList.add("long");
    made.tabIndex = 0;
    // The evidence of a long passage is to be seen without scrolling for it.
    requestAnimationFrame(() => {
      const mark = made.querySelector("mark");
      if (mark) made.scrollTop = mark.offsetTop - made.offsetTop - 40;
    });
    return made;
  };
  const first = looksLikeMarkdown(text) ? rendered(text, cuts) : null;
  if (first === null) return [scrolling(plain())];
  let current = scrolling(first), source = false;
  const change = make("button", { type: "button", class: "change" }, "source");
  change.addEventListener("click", () => {
    source = !source;
    const next = scrolling(source ? plain() : rendered(text, cuts));
    current.replaceWith(next);
    current = next;
    change.textContent = source ? "Markdown" : "source";
  });
  return [change, current];
};

const card = async (where, head, query, extra = [], attributes = {}) => {
  const text = await textOf(where), holds = relevant(where, query);
  const item = make("li", { class: holds ? "passage holds" : "passage", ...attributes },
    make("div", { class: "where" }, `${head}${named(where)}${holds ? " · ✓ evidence" : ""}`));
  item.append(...(text === null ? [make("p", { class: "soft" }, "(text omitted to keep the page small)")]
    : body(text, evidenceIn(where, query))), ...extra);
  return item;
};

const FIRST = 4; // passages that a phone shows at once

const column = async (trial, at, query, block, place) => {
  const [keeps, scores, drops, tokens] = block.rows[trial][place];
  const verdicts = block.judged?.[trial]?.[place];
  const cards = await Promise.all(keeps.map((number, rank) =>
    card(passage(number), `${rank + 1} · score ${scores[rank]} · ${tokens[rank]} tokens · `, query,
      judgedPassages(verdicts, rank + 1), { "data-rank": rank + 1 })));
  const ends = cutoff(tokens);
  if (ends !== null) cards.splice(ends.before, 0, make("li", { class: "cutoff" }, ends.text));
  const further = matchMedia("(max-width: 42rem)").matches ? cards.splice(FIRST) : [];
  const parts = [make("h4", {}, index.trials[trial]),
    make("p", { class: "soft" }, `${index.metrics[chosen.metric]} ${shown(score(trial, at))}`),
    cards.length ? make("ol", { class: "passages" }, ...cards) : make("p", {}, "No passage was selected."),
    further.length ? make("details", { class: "dropped" }, make("summary", {}, `${further.length} more`), make("ol", { class: "passages" }, ...further)) : ""];
  for (const [judge, verdict] of Object.entries(verdicts ?? {})) {
    const items = verdict.findings.filter((finding) => finding.item !== undefined);
    const lines = [...verdict.flags, ...items.flatMap((finding) =>
      finding.judgments.map((one) => `${finding.item} → ${judgment({ ...one, quote: finding.item.includes(one.quote) ? "" : one.quote })}`))];
    if (lines.length) parts.push(make("p", { class: "judged", dir: "auto" }, `${judge}: ${lines.join(" | ")}`));
  }
  return make("article", { "data-side": trial === chosen.a ? "A" : "B" }, ...parts, ...dropped(drops, query, block));
};

const dropped = (drops, query, block) => {
  const steps = new Map();
  for (let n = 0; n < drops.length; n += 2) {
    const [step, why] = block.reasons[drops[n + 1]];
    if (!steps.has(step)) steps.set(step, []);
    steps.get(step).push([drops[n], why]);
  }
  return [...steps].map(([step, those]) => {
    const evident = those.filter(([number]) => relevant(passage(number), query)).length;
    const summary = `${step} dropped ${those.length}${evident ? `, ${evident} of them with evidence` : ""}`;
    const fold = make("details", { class: "dropped" }, make("summary", {}, summary));
    fold.addEventListener("toggle", async () => {
      if (!fold.open || fold.childElementCount > 1) return;
      const first = [...those].sort(([x], [y]) => relevant(passage(y), query) - relevant(passage(x), query));
      fold.append(make("ol", { class: "passages" }, ...(await Promise.all(first.map(([number, why]) =>
        card(passage(number), "", query, [make("div", { class: "where" }, why)]))))));
    });
    return fold;
  });
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

const evidenceOf = (query, at) => Promise.all(query.evidence.map(async (places, item) => {
  const [doc, start, end] = places[0], where = { doc, start, end };
  const text = query.whole ? "the document as a whole" : await textOf(where);
  const others = places.length - 1;
  const more = others ? ` and ${others} equivalent ${others === 1 ? "place" : "places"}` : "";
  const outcomes = `whole selection of A: ${outcome(chosen.a, at, item)} · of B: ${outcome(chosen.b, at, item)}`;
  return make("li", {}, make("div", { class: "where" }, (query.whole ? index.documents[doc][0] : named(where)) + more),
    ...body(text ?? "", []), make("div", { class: "where" }, outcomes));
}));

const asJson = (query, at, block, place) => {
  const fold = make("details", { class: "dropped" }, make("summary", {}, "as JSON"));
  fold.addEventListener("toggle", () => {
    if (!fold.open || fold.childElementCount > 1) return;
    const trials = Object.fromEntries([chosen.a, chosen.b].map((trial) => {
      const [keeps, scores, , tokens] = block.rows[trial][place];
      const passages = keeps.map((number, rank) => {
        const { doc, start, end } = passage(number);
        return { doc: index.documents[doc][0], start, end, score: scores[rank], tokens: tokens[rank] };
      });
      const values = index.metrics.map((metric, number) => [metric, index.scores[number][trial][at]]);
      const metrics = Object.fromEntries(values.map(([metric, value]) => [metric, value === null ? null : value / 10000]));
      return [index.trials[trial], { metrics, passages }];
    }));
    const evidence = query.evidence.map((places) => places.map(([doc, start, end]) => ({ doc: index.documents[doc][0], start, end })));
    fold.append(make("pre", { tabindex: "0" }, JSON.stringify({ id: query.id, text: query.text, evidence, trials }, null, 1)));
  });
  return fold;
};
