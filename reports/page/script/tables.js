// Tables that sort (DataTables); those with factors also filter, group by them, and hide columns.

const compared = (one, two, down) => {
  if (one === "" || two === "") return (one === "") - (two === ""); // rows without a value come last
  const numbers = [Number(one), Number(two)];
  const order = numbers.some(Number.isNaN) ? String(one).localeCompare(two) : numbers[0] - numbers[1];
  return down ? -order : order;
};
DataTable.type("value", {
  detect: () => false,
  order: { asc: (one, two) => compared(one, two, false), desc: (one, two) => compared(one, two, true) },
});
DataTable.ext.errMode = "throw";

const sortable = (table) => {
  const factors = [...table.tHead.rows[0].cells].flatMap((cell, at) => (cell.classList.contains("factor") ? [at] : []));
  const shown = new DataTable(table, {
    paging: false, info: false, autoWidth: false, order: [], layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: null },
    columnDefs: [
      { targets: "_all", type: "value", orderSequence: ["desc", "asc"] },
      { targets: factors, visible: false },
    ],
    ...(factors.length ? { rowGroup: { enable: false, dataSrc: valueAt, startRender: (rows, group) => groupHead(shown, rows, group) } } : {}),
  });
  if (factors.length) toolbar(table, shown, factors);
};

let grouping = -1;
// A cell that sorts by another value than it shows is an object.
const valueAt = (row) => (typeof row[grouping] === "object" ? row[grouping].display : row[grouping]);
const groupHead = (shown, rows, group) => {
  const name = shown.column(grouping).header().textContent;
  const value = shown.cell(rows.indexes()[0], grouping).node().textContent;
  const count = rows.count();
  return make("tr", {}, make("th", { colspan: shown.columns(":visible").count(), class: "left", scope: "rowgroup" },
    `${name}: ${value || group} · ${count} ${count === 1 ? "trial" : "trials"}`));
};

const toolbar = (table, shown, factors) => {
  const heads = shown.columns().header().toArray().map((head) => head.textContent);
  const find = make("input", { type: "search", placeholder: "text of a row" });
  find.addEventListener("input", () => shown.search(find.value).draw());
  const verdict = heads.indexOf("verdict");
  const groupable = verdict < 0 ? factors : [...factors, verdict];
  const group = make("select");
  options(group, ["–", ...groupable.map((at) => heads[at])]);
  group.addEventListener("change", () => {
    grouping = groupable[Number(group.value) - 1] ?? -1;
    shown.rowGroup().enable(grouping >= 0);
    shown.order.fixed(grouping >= 0 ? { pre: [[grouping, "asc"]] } : {}).draw();
  });
  const filters = groupable.map((at) => {
    const values = [...new Set(shown.column(at).nodes().toArray().map((cell) => cell.textContent))].sort();
    const select = make("select");
    options(select, ["all", ...values]);
    select.addEventListener("change", () => {
      const wanted = values[Number(select.value) - 1];
      const search = wanted === undefined ? "" : (_, __, row) => shown.cell(row, at).node().textContent === wanted;
      shown.column(at).search(search).draw();
    });
    return make("label", {}, `${heads[at]} `, select);
  });
  const columns = make("details", { class: "columns" }, make("summary", {}, "columns"), ...heads.slice(1).map((head, at) => {
    const box = make("input", { type: "checkbox" });
    box.checked = shown.column(at + 1).visible();
    box.addEventListener("change", () => shown.column(at + 1).visible(box.checked));
    return make("label", { class: "check" }, box, ` ${head || "interval"}`);
  }));
  const save = make("button", { type: "button" }, "CSV");
  save.addEventListener("click", () => {
    const rows = shown.rows({ search: "applied", order: "applied" }).nodes().toArray();
    const visible = heads.map((_, at) => at).filter((at) => shown.column(at).visible());
    const names = visible.map((at) => (heads.indexOf(heads[at]) < at ? `${heads[at - 1]}, ${heads[at]}` : heads[at]));
    const cells = (row) => visible.map((at) => shown.cell(row, at).node().textContent);
    download("comparison.csv", csv([names, ...rows.map(cells)]));
  });
  table.closest(".scroll").before(make("div", { class: "controls" }, make("label", {}, "find ", find),
    make("label", {}, "group by ", group), ...filters, columns, save));
};
document.querySelectorAll("table.sortable").forEach(sortable);
