// The retrieval itself: where in each document evidence lies, and what each trial brought of it.

const retrieval = (query, block, place) => {
  const trials = [...new Set([chosen.a, chosen.b, ...index.trials.keys()])];
  const brought = trials.map((trial) => block.rows[trial][place][0].map((number, rank) => ({ ...passage(number), rank: rank + 1 })));
  const evidence = query.evidence.flat().map(([doc, start, end]) => ({ doc, start, end }));
  const holds = new Set(evidence.map((one) => one.doc));
  const others = brought.slice(0, chosen.a === chosen.b ? 1 : 2).flat().map((one) => one.doc);
  const documents = [...new Set([...holds, ...others])];
  const few = (at) => at < (chosen.a === chosen.b ? 1 : 2);
  const group = (doc) => {
    const [name, , length] = index.documents[doc];
    const rows = [];
    if (holds.has(doc)) rows.push(track("evidence", evidence.filter((one) => one.doc === doc), length, query, "evidence"));
    for (const [at, trial] of trials.entries()) {
      const own = brought[at].filter((one) => one.doc === doc);
      // Of documents without evidence, only what A and B brought is shown.
      if (!few(at) && !holds.has(doc)) continue;
      const label = few(at) ? `${trial === chosen.a ? "A" : "B"} · ${index.trials[trial]}` : index.trials[trial];
      rows.push(track(label, own, length, query, few(at) ? "chosen" : "other"));
    }
    return make("div", { class: "document" }, make("p", { class: "where" }, `${name} · ${length.toLocaleString("en")} characters`), ...rows);
  };
  const rest = documents.filter((doc) => !holds.has(doc));
  const more = make("details", {}, make("summary", {}, `${rest.length} more ${rest.length === 1 ? "document" : "documents"} without evidence, of which A or B brought passages`));
  more.addEventListener("toggle", () => {
    if (more.open && more.childElementCount === 1) more.append(make("div", { class: "tracks" }, ...rest.map(group)));
  });
  return make("details", { class: "retrieval", open: "" },
    make("summary", {}, "Where evidence lies in the documents, and what each trial brought of it"),
    make("div", { class: "tracks" }, ...[...holds].map(group)), rest.length ? more : "");
};

const track = (label, spans, length, query, kind) => {
  const bar = make("div", { class: "bar" });
  const says = [];
  for (const span of spans) {
    const holds = kind !== "evidence" && relevant(span, query);
    const part = make("span", { class: holds ? "span holds" : "span" });
    const whole = query.whole && kind === "evidence";
    part.style.left = `${whole ? 0 : (100 * span.start) / length}%`;
    part.style.width = `${whole ? 100 : (100 * (span.end - span.start)) / length}%`;
    const words = whole ? "the whole document" : `${span.start}–${span.end}${span.rank ? `, rank ${span.rank}` : ""}${holds ? ", evidence" : ""}`;
    says.push(words);
    part.addEventListener("pointerenter", () => tell(part, `${label}: ${words}`));
    part.addEventListener("pointerleave", () => tell(null, ""));
    if (kind === "chosen") {
      part.addEventListener("click", () => {
        const card = document.querySelector(`[data-side="${label[0]}"] [data-rank="${span.rank}"]`);
        card?.scrollIntoView({ block: "center" });
      });
    }
    bar.append(part);
  }
  const message = says.length ? says.join("; ") : "nothing of this document";
  return make("div", { class: `track ${kind}`, role: "img", "aria-label": `${label}: ${message}` }, make("span", { class: "name" }, label), bar);
};
