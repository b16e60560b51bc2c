"use strict";
// The table of runs: sorted by a heading, filtered by words and conditions, with the columns that the reader chooses.
// Without this script it is a plain table.
(() => {
  const find = (name) => document.getElementById(name);
  const { numbers } = JSON.parse(find("page-data").textContent);
  const body = find("runs").tBodies[0], heads = [...find("runs").tHead.rows[0].cells];
  const rows = [...body.rows].map((row, at) => ({ row, at, text: row.textContent.toLowerCase() }));
  const filter = find("filter"), count = find("count"), reset = find("reset");
  // The grammar of analysis/run/checks/limits.py.
  const FORM = /^([\w/.-]+)(>=|<=|>|<)(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)(%?)$/;
  const COMPARE = { ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, "<": (a, b) => a < b };
  const given = heads.map((head) => head.getAttribute("aria-sort"));
  const boxes = [...document.querySelectorAll("#columns input")];
  const HASH = "#columns=";
  let order = null;

  const condition = (word) => {
    const [, name, sign, limit, percent] = word.match(FORM) ?? [];
    if (!name) return null;
    const values = numbers[name.toLowerCase()];
    if (!values) return { unknown: name };
    const bound = Number(limit) / (percent ? 100 : 1);
    return { holds: ({ at }) => values[at] !== null && COMPARE[sign](values[at], bound) };
  };

  const show = () => {
    const words = filter.value.replace(/\s*(>=|<=|>|<)\s*/g, "$1").split(/[\s,]+/).filter(Boolean);
    const asked = words.map((word) => condition(word) ?? { holds: ({ text }) => text.includes(word.toLowerCase()) });
    const unknown = asked.find((one) => one.unknown);
    const shown = unknown ? rows : rows.filter((one) => asked.every(({ holds }) => holds(one)));
    for (const one of rows) one.row.hidden = !shown.includes(one);
    count.textContent = unknown ? `${unknown.unknown}?` : `${shown.length} / ${rows.length}`;
    count.classList.toggle("wrong", Boolean(unknown));
    reset.disabled = !filter.value && !order && boxes.every((box) => box.checked === box.defaultChecked);
  };

  // The columns that are not the main ones are in the address, so that a link shows the same table.
  const chosen = () => {
    if (!location.hash.startsWith(HASH)) return null;
    return decodeURIComponent(location.hash.slice(HASH.length)).split(",");
  };

  const showColumns = () => {
    for (const box of boxes) {
      const place = heads.findIndex((head) => head.dataset.column === box.value);
      heads[place].hidden = !box.checked;
      for (const { row } of rows) row.cells[place].hidden = !box.checked;
    }
    const same = boxes.every((box) => box.checked === box.defaultChecked);
    const names = boxes.filter((box) => box.checked).map((box) => box.value);
    const address = same ? location.href.split("#")[0] : HASH + names.join(",");
    if (!same || chosen()) history.replaceState(null, "", address);
    show();
  };

  const readColumns = () => {
    const names = chosen();
    if (!names) return;
    for (const box of boxes) box.checked = names.includes(box.value);
    showColumns();
  };

  const valueOf = (column) => {
    if (numbers[column]) return ({ at }) => numbers[column][at];
    const place = heads.findIndex((head) => head.dataset.column === column);
    return ({ row }) => row.cells[place].textContent;
  };

  const sort = (column, down) => {
    order = column && { column, down };
    const value = valueOf(column), way = down ? -1 : 1;
    const unknown = (one) => value(one) === null || value(one) === "-";
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      return way * (typeof x === "number" ? x - y : x.localeCompare(y, undefined, { numeric: true }));
    };
    // Unknown values are last in both orders.
    const by = (a, b) => unknown(a) - unknown(b) || (unknown(a) ? 0 : compare(a, b)) || a.at - b.at;
    body.append(...(column ? [...rows].sort(by) : rows).map(({ row }) => row));
    for (const [at, head] of heads.entries()) {
      const sorted = column ? head.dataset.column === column && (down ? "descending" : "ascending") : given[at];
      if (sorted) head.setAttribute("aria-sort", sorted);
      else head.removeAttribute("aria-sort");
    }
    show();
  };

  for (const head of heads) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const { column, first } = head.dataset;
      sort(column, order?.column === column ? !order.down : first === "down");
    });
  }
  filter.addEventListener("input", show);
  reset.addEventListener("click", () => {
    filter.value = "";
    for (const box of boxes) box.checked = box.defaultChecked;
    showColumns();
    sort(null);
  });
  for (const box of boxes) box.addEventListener("change", showColumns);
  addEventListener("hashchange", readColumns);
  find("controls").hidden = false;
  const below = () => document.documentElement.style.setProperty("--controls", `${find("controls").offsetHeight}px`);
  addEventListener("resize", below);
  below();
  show();
  readColumns();
  window.logparse = { ready: Promise.resolve(), sort, show };
})();
