"use strict";
// Draws the charts of the page and keeps them together: one axis, one zoom, one smoothing, one set of runs.
(() => {
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const rows = unpack(page.rows);
  const others = Object.fromEntries(["evaluations", "marks", "starts"].map((name) => [name, unpack(page.other_rows[name] ?? {})]));
  const state = {
    axis: page.axes[0], domain: null, smoothing: 0, hidden: new Set(), unmarked: new Set(), zero: false, outliers: false, log: false, at: null,
  };
  const views = new Map();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Rows on either side that a smoothed row is the mean of, by notch of the slider, as a share of a run's rows.
  const NOTCHES = [0, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15];
  const NAMED = ["rows", "smoothed", ...Object.keys(others)];
  const SVG_UP_TO = 1500;
  const ERRORS_ONLY = 1;
  const charts = [...document.querySelectorAll(".chart")];
  const along = (chart) => !("none" in page.charts[chart.dataset.chart]);

  function unpack(columns) {
    const names = Object.keys(columns);
    const length = columns.run?.at.length ?? 0;
    const value = names.map((name) => {
      const column = columns[name];
      return column.words ? (i) => (column.at[i] === null ? null : column.words[column.at[i]]) : (i) => column[i];
    });
    return Array.from({ length }, (_, i) => Object.fromEntries(names.map((name, n) => [name, value[n](i)])));
  }

  // ---- what is shown

  function inside(row) {
    const x = row[state.axis];
    const within = !state.domain || (x >= state.domain[0] && x <= state.domain[1]);
    return x !== null && within && !state.hidden.has(row.run);
  }

  /** Whether some of a start is shown. */
  function overlaps(start) {
    const [low, high] = state.domain ?? [-Infinity, Infinity];
    return start[state.axis] !== null && start[`${state.axis}_to`] >= low && start[state.axis] <= high && !state.hidden.has(start.run);
  }

  function extent() {
    const places = rows.filter((row) => !state.hidden.has(row.run)).map((row) => row[state.axis]).filter((x) => x !== null);
    return [places.reduce((a, b) => Math.min(a, b), Infinity), places.reduce((a, b) => Math.max(a, b), -Infinity)];
  }

  function half(run) {
    const share = NOTCHES[state.smoothing];
    return share ? Math.max(1, Math.round(share * run.length)) : 0;
  }

  /** How many rows of the log a point stands for. */
  function perPoint(run) {
    return run.reduce((sum, row) => sum + row.rows, 0) / Math.max(1, run.length);
  }

  function counted() {
    return page.runs.map((name) => rows.filter((row) => row.run === name && row.counted));
  }

  function smoothed() {
    return state.smoothing ? counted().flatMap((run) => rolling(run, half(run))) : [];
  }

  /** Each row with the means of the `reach` rows on either side, of one start. */
  function rolling(run, reach) {
    const made = run.map((row) => ({ run: row.run, segment: row.segment, [state.axis]: row[state.axis] }));
    for (const column of page.series) {
      const sums = [0], known = [0];
      run.forEach((row, i) => {
        const value = row[column] ?? null;
        sums.push(sums[i] + (value ?? 0));
        known.push(known[i] + (value === null ? 0 : 1));
      });
      made.forEach((row, i) => {
        const from = Math.max(0, i - reach), to = Math.min(run.length, i + reach + 1);
        const n = known[to] - known[from];
        row[column] = n ? (sums[to] - sums[from]) / n : null;
      });
    }
    return made;
  }

  /** The data of the page that a chart draws. */
  function named(chart) {
    const spec = page.charts[chart.dataset.chart][state.axis];
    return new Set([spec.data, ...spec.layer.map((layer) => layer.data)].map((data) => data?.name).filter((name) => NAMED.includes(name)));
  }

  async function refresh() {
    const data = {
      rows: rows.filter(inside),
      smoothed: smoothed().filter(inside),
      evaluations: others.evaluations.filter(inside),
      marks: others.marks.filter((mark) => inside(mark) && !state.unmarked.has(mark.kind)),
      starts: others.starts.filter(overlaps),
    };
    const [low, high] = state.domain ?? [null, null];
    document.getElementById("reset").disabled = !state.domain;
    const changes = charts.filter(along).filter((chart) => views.has(chart.dataset.chart)).map((chart) => {
      const view = views.get(chart.dataset.chart).signal("x_min", low).signal("x_max", high);
      const ends = page.charts[chart.dataset.chart][state.axis].usermeta.ends;
      if (ends) view.signal("y_low", state.zero ? 0 : ends.low).signal("y_high", state.outliers ? ends.highest * 1.02 : ends.high);
      for (const name of named(chart)) view.data(name, data[name]);
      return view.runAsync();
    });
    await Promise.all(changes);
    remember();
    point(null);
  }

  function zoom(domain) {
    const [low, high] = extent();
    const [from, to] = domain ? [Math.max(low, domain[0]), Math.min(high, domain[1])] : [low, high];
    state.domain = to > from && (from > low || to < high) ? [from, to] : null;
    return refresh();
  }

  // ---- drawing

  async function draw(chart) {
    const name = chart.dataset.chart, specs = page.charts[name];
    const look = dark.matches ? "dark" : "light", spec = specs[state.axis] ?? specs.none;
    const own = Object.values(spec.datasets ?? {}).map((held) => held.length);
    const result = await vegaEmbed(chart, scaled(name, structuredClone(spec)), {
      mode: "vega-lite",
      config: page.looks[look],
      renderer: Math.max(rows.length, ...own) > SVG_UP_TO ? "canvas" : "svg",
      actions: { export: true, source: false, compiled: false, editor: false },
      i18n: { PNG_ACTION: page.words.png, SVG_ACTION: page.words.svg, CLICK_TO_VIEW_ACTIONS: page.words.menu },
      downloadFileName: name,
      scaleFactor: { png: 2, svg: 1 },
      tooltip: { theme: look },
      // Empty data, as while nothing is smoothed, is no reason to warn.
      logLevel: ERRORS_ONLY,
    });
    offerCsv(chart, result.spec);
    views.get(name)?.finalize();
    views.set(name, result.view.background(getComputedStyle(document.body).backgroundColor));
    document.documentElement.dataset.drawn = look;
  }

  /** The chart of the loss on a logarithmic scale, where that is asked for. */
  function scaled(name, spec) {
    if (name !== "loss" || !state.log) return spec;
    for (const { encoding } of spec.layer) {
      if (encoding.y?.field) encoding.y.scale = { type: "log", nice: false };
    }
    return spec;
  }

  /** One more entry in the menu of a chart: its data for a spreadsheet. */
  function offerCsv(chart, spec) {
    const link = Object.assign(document.createElement("a"), { textContent: page.words.csv, href: "#" });
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const url = URL.createObjectURL(new Blob([csvOf(chart, spec)], { type: "text/csv" }));
      Object.assign(document.createElement("a"), { href: url, download: `${chart.dataset.chart}.csv` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 1000);
    });
    chart.querySelector(".vega-actions")?.append(link);
  }

  /** The rows that a chart draws: along the run those in the zoom, otherwise its own data. */
  function csvOf(chart, spec) {
    const read = page.reads[chart.dataset.chart];
    if (read) {
      const names = ["run", ...page.axes, read.column, "counted", "why", "rows"];
      return table(names, rows.filter((row) => inside(row) && (row[read.column] ?? null) !== null));
    }
    const data = spec.data ?? spec.layer[0].data, made = data.values ?? spec.datasets[data.name];
    return table(Object.keys(made[0] ?? {}), made);
  }

  function table(names, made) {
    // A spreadsheet takes text that begins so for a formula.
    const harmless = (value) => (typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? ""));
    const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const cell = (value) => quoted(harmless(value));
    return [names, ...made.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\n") + "\n";
  }

  // ---- the address: a link shows the same part of the run

  function remember() {
    const parts = {
      ...(state.domain ? { from: state.domain[0].toPrecision(8) / 1, to: state.domain[1].toPrecision(8) / 1 } : {}),
      ...(state.axis === page.axes[0] ? {} : { axis: state.axis }),
      ...(state.smoothing ? { smoothing: state.smoothing } : {}),
      ...(state.log ? { log: 1 } : {}),
    };
    const wanted = new URLSearchParams(parts).toString(), kept = location.hash.includes("=");
    if (wanted || kept) history.replaceState(null, "", wanted ? `#${wanted}` : location.pathname + location.search);
  }

  /** What the address asks for, into the state and the controls. */
  function restore() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const axis = asked.get("axis"), from = Number(asked.get("from") ?? NaN), to = Number(asked.get("to") ?? NaN);
    if (page.axes.includes(axis)) state.axis = axis;
    if (to > from) state.domain = [from, to];
    state.smoothing = Math.min(NOTCHES.length - 1, Math.max(0, Math.trunc(Number(asked.get("smoothing") ?? 0)) || 0));
    state.log = asked.has("log") && document.getElementById("log") !== null;
    for (const input of document.getElementsByName("axis")) input.checked = input.value === state.axis;
    for (const [name, value] of [["log", state.log], ["smoothing", state.smoothing]]) {
      const input = document.getElementById(name);
      if (input?.type === "checkbox") input.checked = value; else if (input) input.value = value;
    }
  }

  async function drawAll(which = charts) {
    for (const chart of which) {
      await draw(chart);
      // Between two charts the page takes the reader's clicks.
      await new Promise((done) => setTimeout(done));
    }
    await refresh();
  }

  // ---- hands

  /** Where a pointer is inside the frame of a chart, in pixels from its left edge. */
  function place(chart, event) {
    const view = views.get(chart.dataset.chart);
    const box = chart.querySelector("canvas, svg.marks").getBoundingClientRect();
    const left = box.left + view.origin()[0] + view.padding().left;
    return { x: Math.min(view.width(), Math.max(0, event.clientX - left)), left, top: box.top + view.origin()[1] + view.padding().top, view };
  }

  function value(view, x) {
    return view.scale("x").invert(x);
  }

  /** The row that is drawn nearest to a pointer; across counts more than down, so that the cross follows the hand. */
  function nearest(chart, event) {
    const { view, x, top } = place(chart, event), { column } = page.reads[chart.dataset.chart];
    const across = view.scale("x"), down = view.scale("y"), y = event.clientY - top;
    let found = null, least = Infinity;
    for (const row of rows) {
      if ((row[column] ?? null) === null || !inside(row)) continue;
      const height = Math.min(view.height(), Math.max(0, down(row[column])));
      const far = (across(row[state.axis]) - x) ** 2 + ((height - y) / 4) ** 2;
      if (far < least) [found, least] = [row, far];
    }
    return found;
  }

  /** Put a cross at `row` into every chart along the run, with the value that is there; with null take it away. */
  function point(row) {
    state.at = row;
    for (const chart of charts.filter(along)) {
      const view = views.get(chart.dataset.chart), read = page.reads[chart.dataset.chart];
      const cross = chart.querySelector(":scope > .cross") ?? chart.appendChild(crossed());
      cross.hidden = !row || !view || !read;
      if (cross.hidden) continue;
      const box = chart.querySelector("canvas, svg.marks").getBoundingClientRect(), frame = chart.getBoundingClientRect();
      const left = box.left - frame.left + view.origin()[0] + view.padding().left, top = box.top - frame.top + view.origin()[1] + view.padding().top;
      const value = row[read.column] ?? null, height = value === null ? NaN : view.scale("y")(value);
      cross.style.left = `${left + view.scale("x")(row[state.axis])}px`;
      cross.style.top = `${top}px`;
      cross.style.height = `${view.height()}px`;
      cross.classList.toggle("flipped", view.scale("x")(row[state.axis]) > view.width() / 2);
      cross.querySelector("i").hidden = !(height >= 0 && height <= view.height());
      cross.querySelector("i").style.top = `${height}px`;
      cross.querySelector("output").textContent = valueText(row, value, read);
    }
  }

  function crossed() {
    const cross = Object.assign(document.createElement("div"), { className: "cross" });
    cross.append(document.createElement("i"), document.createElement("output"));
    return cross;
  }

  function valueText(row, value, read) {
    const digits = read.significant
      ? { maximumSignificantDigits: read.significant } : { minimumFractionDigits: read.digits, maximumFractionDigits: read.digits };
    const shown = value === null ? "–" : `${(value * read.scale).toLocaleString("en", digits)} ${read.unit}`.trim();
    const parts = [...(page.runs.length > 1 ? [row.run] : []), `${page.words.step} ${Math.round(row.step).toLocaleString("en")}`, shown];
    return [...parts, ...(row.counted ? [] : [row.why])].join(" · ");
  }

  function hover(chart) {
    let asked = 0;
    chart.addEventListener("pointermove", (event) => {
      cancelAnimationFrame(asked);
      asked = requestAnimationFrame(() => views.has(chart.dataset.chart) && point(nearest(chart, event)));
    });
    chart.addEventListener("pointerleave", () => { cancelAnimationFrame(asked); point(null); });
  }

  function drag(chart) {
    let begin = null, box = null;
    const stop = () => { box?.remove(); begin = box = null; };
    chart.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && !event.target.closest("details")) begin = place(chart, event).x;
    });
    chart.addEventListener("pointermove", (event) => {
      if (begin === null) return;
      const at = place(chart, event);
      if (!box && Math.abs(at.x - begin) > 5) {
        chart.setPointerCapture(event.pointerId);
        box = chart.appendChild(Object.assign(document.createElement("div"), { className: "zoom" }));
      }
      if (!box) return;
      const origin = chart.getBoundingClientRect();
      box.style.left = `${at.left - origin.left + Math.min(begin, at.x)}px`;
      box.style.width = `${Math.abs(at.x - begin)}px`;
      box.style.top = `${at.top - origin.top}px`;
      box.style.height = `${at.view.height()}px`;
    });
    chart.addEventListener("pointerup", (event) => {
      const at = begin !== null && box ? place(chart, event) : null;
      const ends = at && [begin, at.x].sort((a, b) => a - b).map((x) => value(at.view, x));
      stop();
      if (ends) zoom(ends);
    });
    chart.addEventListener("pointercancel", stop);
    chart.addEventListener("dblclick", () => zoom(null));
  }

  function keys(event) {
    const [low, high] = state.domain ?? extent();
    const middle = (low + high) / 2, width = high - low;
    const moves = {
      "+": () => [middle - width / 4, middle + width / 4],
      "=": () => [middle - width / 4, middle + width / 4],
      "-": () => [middle - width, middle + width],
      ArrowLeft: () => shifted(low, high, -width / 5),
      ArrowRight: () => shifted(low, high, width / 5),
      0: () => null,
      Escape: () => null,
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    zoom(move());
  }

  function shifted(low, high, by) {
    const [least, most] = extent();
    const step = Math.min(most - high, Math.max(least - low, by));
    return [low + step, high + step];
  }

  function toggle(button) {
    const run = page.runs[Number(button.dataset.run)];
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    if (shown) state.hidden.delete(run); else state.hidden.add(run);
    return zoom(state.domain);
  }

  function smooth(notch) {
    state.smoothing = notch;
    nameSmoothing();
    return refresh();
  }

  function nameSmoothing() {
    const notch = state.smoothing;
    const widest = Math.max(0, ...counted().map((run) => (2 * half(run) + 1) * Math.round(perPoint(run))));
    document.getElementById("smoothed").textContent = notch ? page.words.mean.replace("{n}", widest.toLocaleString("en")) : page.words.off;
  }

  function switchAxis(axis) {
    Object.assign(state, { axis, domain: null });
    return drawAll(charts.filter(along));
  }

  // ---- places in a log

  async function copy(place) {
    const text = place.dataset.copy;
    // Of a page that a mail program shows the clipboard may be closed.
    await navigator.clipboard.writeText(text).catch(() => getSelection().selectAllChildren(place));
    place.classList.add("copied");
    setTimeout(() => place.classList.remove("copied"), 1500);
  }

  document.querySelectorAll(".place").forEach((place) => {
    Object.assign(place, { tabIndex: 0, title: page.words.copy });
    place.setAttribute("role", "button");
    place.addEventListener("click", () => copy(place));
    place.addEventListener("keydown", (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), copy(place)));
  });

  charts.filter(along).forEach((chart) => {
    drag(chart);
    if (chart.dataset.chart in page.reads) hover(chart);
    chart.addEventListener("keydown", (event) => event.target === chart && keys(event));
  });
  document.getElementsByName("axis").forEach((input) => input.addEventListener("change", () => switchAxis(input.value)));
  document.getElementById("smoothing").addEventListener("input", (event) => smooth(Number(event.target.value)));
  for (const name of ["zero", "outliers"]) {
    document.getElementById(name)?.addEventListener("change", (event) => { state[name] = event.target.checked; return refresh(); });
  }
  document.getElementById("log")?.addEventListener("change", (event) => {
    state.log = event.target.checked;
    return drawAll(charts.filter((chart) => chart.dataset.chart === "loss"));
  });
  document.querySelectorAll("input.kind").forEach((input) => input.addEventListener("change", () => {
    if (input.checked) state.unmarked.delete(input.value); else state.unmarked.add(input.value);
    return refresh();
  }));
  document.querySelectorAll("button.run").forEach((button) => button.addEventListener("click", () => toggle(button)));
  document.getElementById("reset").addEventListener("click", () => zoom(null));
  document.getElementById("controls").hidden = !charts.some(along);
  for (const [event, printing] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => {
      document.body.classList.toggle("printing", printing);
      // What is folded belongs on paper; afterwards it is as it was.
      document.querySelectorAll("main details:not(.chart *, figcaption *, .help)").forEach((folded) => {
        if (printing) Object.assign(folded.dataset, { was: folded.open });
        folded.open = printing || folded.dataset.was === "true";
      });
      dispatchEvent(new Event("resize"));
    });
  }
  dark.addEventListener("change", () => drawAll());

  // One explanation at a time, and none in the way of what is clicked next.
  const helps = [...document.querySelectorAll("details.help")];
  document.addEventListener("click", (event) => helps.forEach((help) => { if (!help.contains(event.target)) help.open = false; }));
  restore();
  nameSmoothing();
  window.logparse = { page, rows, state, views, zoom, smooth, ready: drawAll() };
})();
