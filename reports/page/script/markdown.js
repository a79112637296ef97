// Passages as Markdown, with evidence marked. The parser makes tokens; only known elements are built from them, by hand.

const parser = markdownit("commonmark", { html: false }).enable(["table", "strikethrough"]);
const BLOCKS = new Set(("p h1 h2 h3 h4 h5 h6 ul ol li blockquote table thead tbody tr th td strong em s pre code hr br").split(" "));
const [OPEN, CLOSE] = ["\ue000", "\ue001"]; // private use: they mark where evidence begins and ends

const looksLikeMarkdown = (text) =>
  /^(#{1,6} |[-*+] |\d+[.)] |> |\|.*\||```)/m.test(text) || /\*\*[^*\n]+\*\*|`[^`\n]+`|\[[^\]\n]+\]\([^)\n]+\)/.test(text);

// A mark at the beginning of a line would hide what makes it a heading or an item; it moves behind that.
const withMarks = (text, cuts) => {
  const chars = Array.from(text), made = [];
  let at = 0;
  for (const [from, to] of cuts) {
    const before = chars.slice(Math.max(0, from - 200), from).join("");
    const start = /(^|\n)[ \t]*$/.test(from <= 200 ? before : `x${before}`)
      ? from + (chars.slice(from, to).join("").match(/^\s*(?:(?:#{1,6}|[-*+]|\d+[.)]|>|\|)\s+)*/)?.[0].length ?? 0) : from;
    if (start >= to) continue;
    made.push(chars.slice(at, start).join(""), OPEN, chars.slice(start, to).join(""), CLOSE);
    at = to;
  }
  return made.join("") + chars.slice(at).join("");
};

const rendered = (text, cuts) => {
  const root = make("div", { class: "text markdown", dir: "auto" });
  let open = [root], marking = false;
  const put = (written) => {
    for (const part of written.split(/([\ue000\ue001])/)) {
      if (part === OPEN || part === CLOSE) marking = part === OPEN;
      else if (part) open.at(-1).append(marking ? make("mark", {}, part) : part);
    }
  };
  const build = (tokens) => {
    for (const token of tokens) {
      if (token.type === "inline") build(token.children);
      else if (token.type === "image") put(token.content || "image");
      else if (token.type === "text" || token.type === "html_inline" || token.type === "html_block") put(token.content);
      else if (token.type === "softbreak") put("\n");
      else if (["code_inline", "fence", "code_block"].includes(token.type)) {
        const code = make(token.type === "code_inline" ? "code" : "pre");
        open.at(-1).append(code);
        open.push(code);
        put(token.content);
        open.pop();
      } else if (BLOCKS.has(token.tag) && !token.hidden) {
        if (token.nesting < 0) open.pop();
        else {
          // Headings of a passage are none of the page's.
          const made = /^h[1-6]$/.test(token.tag) ? make("p", { class: "heading" }) : make(token.tag);
          open.at(-1).append(made);
          if (token.nesting > 0) open.push(made);
        }
      }
    }
  };
  build(parser.parse(withMarks(text.replace(/[\ue000\ue001]/g, "\ufffd"), cuts), {}));
  return root;
};
