// What the explorer knows: blocks of compressed JSON, unpacked when they are first needed.

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

let index;
const chosen = { a: 0, b: 0, metric: 0 };

const score = (trial, query) => {
  const value = index.scores[chosen.metric][trial][query];
  return value === null ? NaN : value / 10000;
};
const shown = (value, sign = false) =>
  Number.isNaN(value) ? "–" : (sign && value > 0 ? "+" : "") + value.toFixed(3).replace("-", "−");

const blockOf = async (at) => {
  const number = index.blocks.findLastIndex((first) => first <= at);
  return [await once(`block-${number}`), at - index.blocks[number]];
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
  for (const [from, written] of pieces) {
    if (from > start || start > from + written.length) continue; // its characters are at most its units
    const text = characters(written);
    if (start <= from + text.length && end <= from + text.length) return piece(text, start - from, end - from);
  }
  return null;
};

// The rule of precision@k: a passage is relevant if its overlap with a place is at least half of the shorter of both.
const relevant = (where, query) =>
  query.evidence.some((places) => places.some(([doc, start, end]) => {
    if (doc !== where.doc) return false;
    if (query.whole) return true;
    const shared = Math.min(where.end, end) - Math.max(where.start, start);
    return shared > 0 && 2 * shared >= Math.min(where.end - where.start, end - start);
  }));

// Where evidence is in a passage, in its own characters.
const evidenceIn = (where, query) => {
  if (query.whole) return [];
  const cuts = query.evidence.flat().flatMap(([doc, start, end]) => {
    const [from, to] = [Math.max(start, where.start) - where.start, Math.min(end, where.end) - where.start];
    return doc === where.doc && from < to ? [[from, to]] : [];
  }).sort((one, two) => one[0] - two[0]);
  const apart = [];
  for (const [from, to] of cuts) {
    const begin = Math.max(from, apart.at(-1)?.[1] ?? 0);
    if (begin < to) apart.push([begin, to]);
  }
  return apart;
};
