// Passages as Markdown, with evidence marked. The parser makes tokens; only known elements are built from them, by hand.
// What is marked is found by place: each token's text is looked up in the source, from where the one before it ended.

const parser = markdownit("commonmark", { html: false }).enable(["table", "strikethrough"]).disable("text_join");
const BLOCKS = new Set(("p h1 h2 h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td strong em s pre code hr br").split(" "));

const looksLikeMarkdown = (text) =>
  /^(#{1,6} |[-*+] |\d+[.)] |> |\|.*\||```)/m.test(text) || /\*\*[^*\n]+\*\*|`[^`\n]+`|\[[^\]\n]+\]\([^)\n]+\)/.test(text);

const letters = (text) => text.replace(/[^\p{L}\p{N}]/gu, "");

// The passage as Markdown; null if the marked letters would not be those of the evidence (in a link's address, say).
const rendered = (text, cuts) => {
  // Offsets count code points, the parser UTF-16 units.
  const units = [0];
  for (const char of text) units.push(units.at(-1) + char.length);
  const wanted = cuts.map(([from, to]) => [units[from], units[to]]);
  const root = make("div", { class: "text markdown", dir: "auto" });
  const open = [root];
  const lines = [0];
  for (const [at, char] of [...text.matchAll(/\n/g)].map((found) => [found.index, found[0]])) lines.push(at + char.length);
  let cursor = 0, marked = "";
  const put = (shown, source = shown) => {
    const at = source ? text.indexOf(source, cursor) : -1;
    if (at < 0) return void open.at(-1).append(shown);
    cursor = at + source.length;
    const own = wanted.map(([from, to]) => [Math.max(from, at) - at, Math.min(to, cursor) - at]).filter(([from, to]) => from < to);
    if (shown !== source) { // an entity or an escaped character is marked as a whole
      open.at(-1).append(own.length ? make("mark", {}, shown) : shown);
      if (own.length) marked += source;
      return;
    }
    let done = 0;
    for (const [from, to] of own) {
      open.at(-1).append(shown.slice(done, from), make("mark", {}, shown.slice(from, to)));
      marked += shown.slice(from, to);
      done = to;
    }
    open.at(-1).append(shown.slice(done));
  };
  const byLine = (content) => content.split(/(?<=\n)/).forEach((line) => {
    put(line.replace(/\n$/, ""));
    if (line.endsWith("\n")) open.at(-1).append("\n");
  });
  const past = (end) => {
    const at = text.indexOf(end, cursor);
    if (at >= 0) cursor = at + end.length;
  };
  const build = (tokens) => {
    for (const token of tokens) {
      if (token.map && token.nesting >= 0) cursor = Math.max(cursor, lines[token.map[0]] ?? cursor);
      if (token.type === "inline") build(token.children);
      else if (token.type === "text_special") put(token.content, token.markup);
      else if (["text", "html_inline", "html_block", "image"].includes(token.type)) byLine(token.content);
      else if (token.type === "softbreak") open.at(-1).append("\n");
      else if (["code_inline", "fence", "code_block"].includes(token.type)) {
        const code = make(token.type === "code_inline" ? "code" : "pre");
        open.at(-1).append(code);
        open.push(code);
        if (token.type === "fence") past("\n"); // behind the word that names the language
        byLine(token.content);
        open.pop();
      } else if (token.type === "link_close" && text[cursor] === "]") past(text[cursor + 1] === "(" ? ")" : "]");
      else if (BLOCKS.has(token.tag) && !token.hidden) {
        if (token.nesting < 0) open.pop();
        else {
          // Headings of a passage are none of the page's.
          const made = /^h[1-6]$/.test(token.tag) ? make("p", { class: "heading" }) : make(token.tag);
          const first = token.attrGet("start");
          if (first !== null) made.setAttribute("start", first);
          open.at(-1).append(made);
          if (token.nesting > 0) open.push(made);
        }
      }
    }
  };
  build(parser.parse(text, {}));
  const evidence = wanted.map(([from, to]) => text.slice(from, to)).join("");
  return letters(marked) === letters(evidence) ? root : null;
};
