// What a reader can do with a report: switch, filter, sort; and the pictures, drawn by Observable Plot.
(() => {
  "use strict";
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const PALETTE = 8, DASHES = ["", "6 3", "2 3", "8 3 2 3", "", "6 3", "2 3", "8 3 2 3"];
  const SYMBOLS = ["circle", "square", "triangle", "diamond2", "star", "wye", "cross", "asterisk"];
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  // Rows as objects; a column of text came as its distinct values and an index a row.
  const data = {};
  for (const one of page.data) {
    const rows = Array.from({ length: one.length }, () => ({}));
    for (const column of one.columns) {
      const value = column.texts ? (i) => column.texts[column.values[i]] ?? null : (i) => column.values[i];
      rows.forEach((row, i) => { row[column.name] = value(i); });
    }
    const columns = Object.fromEntries(one.columns.map((column) => [column.name, column]));
    data[one.name] = { ...one, rows, of: columns };
  }
  const distinct = (rows, name) => [...new Set(rows.map((row) => row[name]))].filter((value) => value !== null);

  // As Rust writes it: to this many decimals, what lies in the middle to the even neighbour.
  const fixed = (value, decimals) => {
    const text = value.toFixed(decimals), exact = value.toFixed(Math.min(100, decimals + 40));
    const rest = exact.slice(exact.indexOf(".") + 1 + decimals);
    if (!/^50*$/.test(rest) || !exact.includes(".")) return text;
    const down = decimals ? exact.slice(0, exact.indexOf(".") + 1 + decimals) : exact.slice(0, exact.indexOf("."));
    return Number(down.at(-1)) % 2 === 0 ? down : text;
  };
  const shown = (column, value) => {
    if (value === null || value === undefined) return "-";
    if (column.texts) return value;
    return column.decimals === null ? value.toLocaleString("en-US") : fixed(value, column.decimals);
  };

  // Switches: one value of a column at a time, for all rows that have it.
  const chosen = {}, redraws = [];
  const redraw = () => redraws.forEach((draw) => draw());
  const choice = (label, values, names, current, choose) => {
    const set = element("fieldset", {}, element("legend", {}, label));
    const group = `choice-${choice.count = (choice.count ?? 0) + 1}`;
    values.forEach((value, i) => {
      const input = element("input", { type: "radio", name: group, value: String(value) });
      input.checked = value === current;
      input.addEventListener("change", () => choose(value));
      set.append(element("label", {}, input, names[i]));
    });
    return set;
  };
  const bar = document.getElementById("switches");
  for (const name of [...new Set(page.data.flatMap((one) => one.switches))]) {
    const having = Object.values(data).filter((one) => one.switches.includes(name));
    const values = [...new Set(having.flatMap((one) => distinct(one.rows, name)))];
    if (!values.length) continue;
    chosen[name] = name === "phase" && values.includes("decode") ? "decode" : values[0];
    if (values.length < 2) continue;
    const set = choice(having[0].of[name].heading || name, values, values, chosen[name], (value) => { chosen[name] = value; redraw(); });
    set.dataset.switch = name;
    bar.append(set);
  }
  const selected = (one, own = {}) => one.rows.filter((row) =>
    one.switches.every((name) => row[name] === null || row[name] === chosen[name]) &&
    Object.entries(own).every(([name, value]) => row[name] === value));

  // Series keep their look in every picture; with many, the first few have a colour.
  const looks = new Map();
  const look = (name) => looks.get(name);
  for (const figure of page.figures.filter((figure) => figure.series)) {
    for (const name of distinct(data[figure.data].rows, figure.series)) {
      if (!looks.has(name)) looks.set(name, { index: looks.size, on: looks.size < PALETTE });
    }
  }
  // Of many the first, with which others are compared, and the cheapest stand out.
  const lines = page.figures.find((figure) => figure.shape === "lines");
  if (lines && looks.size > PALETTE) {
    const cost = {}, [first] = looks.keys();
    for (const row of selected(data[lines.data])) {
      const [sum, count] = cost[row[lines.series]] ?? [0, 0];
      cost[row[lines.series]] = [sum + (row[lines.y[0]] ?? 0), count + 1];
    }
    const mean = (name) => (name === first || !cost[name] ? -Infinity : cost[name][0] / cost[name][1]);
    [...looks.keys()].sort((a, b) => mean(a) - mean(b)).forEach((name, index) => looks.set(name, { index, on: index < PALETTE }));
  }
  const colour = (name) => (look(name).on ? `var(--s${look(name).index % PALETTE})` : "var(--faint)");
  const swatch = (name) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const set = (to, attributes) => Object.entries(attributes).forEach(([key, value]) => to.setAttribute(key, value));
    set(svg, { class: "swatch", viewBox: "0 0 18 10", "aria-hidden": "true" });
    set(line, { x1: 0, x2: 18, y1: 5, y2: 5, stroke: colour(name), "stroke-width": 2.5, "stroke-dasharray": DASHES[look(name).index % PALETTE] });
    svg.append(line);
    return svg;
  };
  const seriesLegend = (names) => {
    const legend = element("div", { class: "legend", role: "group", "aria-label": "series: press to highlight or dim" });
    for (const name of names) {
      const button = element("button", { type: "button", "aria-pressed": String(look(name).on) }, swatch(name), name);
      button.addEventListener("click", () => {
        const holder = legend.parentNode;
        look(name).on = !look(name).on;
        redraw();
        const again = [...holder.querySelectorAll(".legend button")].find((other) => other.textContent === name);
        again?.focus();
      });
      legend.append(button);
    }
    return legend;
  };
  const partLegend = (names) => element("div", { class: "legend" }, ...names.map((name, i) =>
    element("span", {}, element("i", { class: "swatch field", style: `background:var(--p${i % 12})` }), name)));

  const STYLE = { background: "transparent", color: "inherit", fontSize: "12px", overflow: "visible" };
  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}\u2026` : text);
  const told = (one, row, names) => names.filter((name) => row[name] !== null && one.of[name])
    .map((name) => `${one.of[name].heading || name}: ${shown(one.of[name], row[name])}`).join("\n");
  const labelled = (rows, label, width) => {
    const most = Math.floor(Math.min(width * 0.42, 260) / 7);
    const longest = Math.max(...rows.map((row) => Math.min(row[label].length, most)), 4);
    return { marginLeft: longest * 7 + 14, tickFormat: (text) => short(text, most) };
  };

  const draw = {
    lines(figure, one, rows, width, own) {
      const [x, y, z] = [own.x, own.y, figure.series];
      const there = rows.filter((row) => row[x] !== null && row[y] !== null).sort((a, b) => a[x] - b[x]);
      const names = distinct(there, z);
      const faint = there.filter((row) => !look(row[z]).on), on = names.filter((name) => look(name).on);
      const marks = [Plot.line(faint, { x, y, z, stroke: "var(--faint)", strokeWidth: 1 })];
      if (figure.level !== null) marks.push(Plot.ruleY([figure.level], { stroke: "currentColor", strokeDasharray: "2 2" }));
      for (const name of on) {
        const its = there.filter((row) => row[z] === name), index = look(name).index % PALETTE;
        marks.push(Plot.line(its, { x, y, stroke: colour(name), strokeWidth: 2, strokeDasharray: DASHES[index] }));
        marks.push(Plot.dot(its, { x, y, fill: colour(name), r: 2.5, symbol: SYMBOLS[index] }));
      }
      marks.push(Plot.tip(there, Plot.pointer({ x, y, title: (row) => `${row[z]}\n${told(one, row, [x, "capacity_slots", y, "hit_percent"])}` })));
      return { names, chart: Plot.plot({ width, height: Math.min(380, Math.max(260, width * 0.6)), marginLeft: 54, marginBottom: 42, style: STYLE, grid: true,
        x: { label: one.of[x].heading, labelOffset: 38, nice: true, ticks: width < 450 ? 5 : undefined }, y: { label: one.of[y].heading, nice: true, zero: figure.level === null }, marks }) };
    },
    points(figure, one, rows, width) {
      const { x, y, series: z } = figure;
      const there = rows.filter((row) => row[x] !== null && row[y] !== null);
      const names = distinct(there, z), on = names.filter((name) => look(name).on);
      const faint = there.filter((row) => !look(row[z]).on);
      const marks = [Plot.dot(faint, { x, y, stroke: "var(--faint)", r: 2 })];
      if (figure.diagonal) {
        const most = Math.max(...there.flatMap((row) => [row[x], row[y]]));
        marks.push(Plot.line([[0, 0], [most, most]], { stroke: "currentColor", strokeDasharray: "4 3" }));
      } else {
        marks.push(Plot.line(there.filter((row) => look(row[z]).on), { x, y, z, stroke: (row) => colour(row[z]), strokeOpacity: 0.35 }));
      }
      for (const name of on) {
        const its = there.filter((row) => row[z] === name);
        marks.push(Plot.dot(its, { x, y, stroke: colour(name), fill: colour(name), fillOpacity: 0.6, r: 4, symbol: SYMBOLS[look(name).index % PALETTE] }));
      }
      const more = Object.keys(one.of).filter((name) => [x, y, "point", "capacity_slots", "ms_per_token", "error_percent"].includes(name));
      marks.push(Plot.tip(there, Plot.pointer({ x, y, title: (row) => `${row[z]}\n${told(one, row, more)}` })));
      return { names, chart: Plot.plot({ width, height: Math.min(400, Math.max(270, width * 0.6)), marginLeft: 54, marginBottom: 42, style: STYLE, grid: true, color: { type: "identity" },
        x: { label: one.of[x].heading, labelOffset: 38, nice: true, ticks: width < 450 ? 5 : undefined }, y: { label: one.of[y].heading, nice: true, zero: true }, marks }) };
    },
    stacked(figure, one, rows, width) {
      const { label, parts } = figure, heading = (name) => one.of[name].heading;
      const total = (row) => parts.reduce((sum, name) => sum + (row[name] ?? 0), 0);
      const sorted = label === "policy" ? [...rows].sort((a, b) => total(a) - total(b)) : rows;
      const flat = sorted.flatMap((row) => parts.map((name, i) => ({ row, label: row[label], value: row[name] ?? 0, part: String(i) })));
      const { marginLeft, tickFormat } = labelled(sorted, label, width);
      const marks = [
        Plot.barX(flat, { y: "label", x: "value", fill: (bar) => `var(--p${bar.part % 12})`, stroke: "var(--ground)", strokeWidth: 0.5, order: "part", offset: null,
          title: (bar) => `${bar.label}\n${heading(parts[bar.part])}: ${shown(one.of[parts[bar.part]], bar.row[parts[bar.part]])}\nall: ${total(bar.row).toPrecision(4)}`, tip: true }),
        Plot.ruleX([0], { stroke: "currentColor" }),
      ];
      if (figure.limit) marks.push(Plot.tickX(sorted, { y: label, x: figure.limit, stroke: "currentColor", strokeWidth: 3 }));
      else marks.push(Plot.text(sorted, { y: label, x: total, text: (row) => total(row).toPrecision(3), textAnchor: "start", dx: 4, fill: "currentColor" }));
      return { parts: parts.map(heading), chart: Plot.plot({ width, height: sorted.length * 24 + 56, marginLeft, marginRight: 44, style: STYLE, color: { type: "identity" },
        x: { label: null, grid: true, nice: true, ticks: width < 450 ? 4 : undefined }, y: { label: null, domain: sorted.map((row) => row[label]), tickFormat }, marks }) };
    },
    heat(figure, one, rows, width, own) {
      const { x, y } = figure, value = own.value;
      const { marginLeft, tickFormat } = labelled(rows, y, width), columns = distinct(rows, x).length;
      const every = Math.ceil(columns / (width / 26));
      const chart = Plot.plot({ width, height: distinct(rows, y).length * 46 + 56, marginLeft, style: STYLE, padding: 0.04,
        x: { type: "band", domain: distinct(rows, x), label: one.of[x].heading || x, tickFormat: (layer, i) => (i % every ? "" : String(layer)) }, y: { type: "band", domain: distinct(rows, y), label: y === "phase" ? null : one.of[y].heading, tickFormat },
        color: { scheme: "cividis", label: one.of[value].heading, legend: true, width: Math.min(260, width) },
        marks: [Plot.cell(rows.filter((row) => row[value] !== null), { x, y, fill: value, tip: true,
          title: (row) => `${row[y]}, ${x} ${row[x]}\n${told(one, row, ["hit_percent", "experts_per_step", "demand_per_token", "prefetch_per_token", "ms_per_token"])}` })] });
      return { chart };
    },
    intervals(figure, one, rows, width) {
      const { label, estimate, low, high } = figure;
      const all = [...new Map(rows.filter((row) => row[estimate] !== null).map((row) => [row[label], row])).values()];
      const { marginLeft, tickFormat } = labelled(all, label, width);
      const chart = Plot.plot({ width, height: all.length * 24 + 66, marginLeft, marginRight: 24, marginBottom: 42, style: STYLE,
        x: { label: one.of[estimate].heading, labelOffset: 38, grid: true, nice: true, ticks: width < 450 ? 4 : undefined }, y: { label: null, domain: all.map((row) => row[label]), tickFormat },
        marks: [Plot.ruleX([0], { stroke: "currentColor", strokeDasharray: "3 2" }),
          Plot.ruleY(all, { y: label, x1: low, x2: high, stroke: "var(--s0)", strokeWidth: 2.5 }),
          Plot.dot(all, { y: label, x: estimate, fill: "var(--s1)", r: 4.5, symbol: "diamond2" }),
          Plot.tip(all, Plot.pointerY({ y: label, x: estimate, title: (row) => `${row[label]}\n${told(one, row, [estimate, low, high])}` }))] });
      return { chart };
    },
  };

  const figures = document.getElementById("figures");
  for (const figure of page.figures) {
    const one = data[figure.data], own = {}, picked = {};
    const section = element("section", { class: "figure", id: `figure-${figure.name}` }, element("h2", {}, figure.title), element("p", { class: "reading" }, figure.reading));
    const controls = element("div", { class: "controls" }), chart = element("div", { class: "chart" }), legend = element("div", {});
    section.append(controls, chart, legend);
    figures.append(section);
    const show = () => {
      const rows = selected(one, own), width = Math.max(260, Math.floor(chart.clientWidth));
      if (!rows.length) { chart.replaceChildren(element("p", { class: "quiet" }, "Nothing of this selection is here.")); legend.replaceChildren(); return; }
      const drawn = draw[figure.shape](figure, one, rows, width, picked);
      drawn.chart.setAttribute("role", "img");
      drawn.chart.setAttribute("aria-label", `${figure.title}. ${figure.reading} Its numbers are in the tables below.`);
      chart.replaceChildren(drawn.chart);
      legend.replaceChildren(...(drawn.names ? [seriesLegend(drawn.names)] : drawn.parts ? [partLegend(drawn.parts)] : []));
    };
    for (const axis of ["x", "y", "value"]) {
      if (!Array.isArray(figure[axis])) continue;
      picked[axis] = figure[axis][0];
      if (figure[axis].length > 1) {
        const names = figure[axis].map((name) => one.of[name].heading);
        controls.append(choice({ x: "along", y: "up", value: "colour" }[axis], figure[axis], names, picked[axis], (name) => { picked[axis] = name; show(); }));
      }
    }
    for (const name of figure.switches) {
      const values = distinct(one.rows, name).sort((a, b) => a - b);
      own[name] = values[Math.floor((values.length - 1) / 2)];
      if (values.length > 1 && values.length <= 8) {
        controls.append(choice(one.of[name].heading, values, values.map((value) => shown(one.of[name], value)), own[name], (value) => { own[name] = value; show(); }));
      } else if (values.length > 1) {
        const select = element("select", { "aria-label": one.of[name].heading }, ...values.map((value) => element("option", { value: String(value) }, shown(one.of[name], value))));
        select.value = String(own[name]);
        select.addEventListener("change", () => { own[name] = values.find((value) => String(value) === select.value); show(); });
        controls.append(element("label", { class: "quiet" }, `${one.of[name].heading} `, select));
      }
    }
    redraws.push(show);
    let before = 0;
    new ResizeObserver(() => { if (Math.abs(chart.clientWidth - before) > 4) { before = chart.clientWidth; show(); } }).observe(chart);
  }

  // Tables: sorted by a press of a heading, filtered by words.
  const number = (cell) => (cell.dataset.v === undefined ? null : Number(cell.dataset.v));
  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    table.sorted = () => {
      const index = heads.findIndex((head) => head.hasAttribute("aria-sort"));
      if (index < 0) return;
      const turn = heads[index].getAttribute("aria-sort") === "ascending" ? 1 : -1;
      const compare = (a, b) => {
        const [one, other] = [a.cells[index], b.cells[index]], [n, m] = [number(one), number(other)];
        if (n !== null && m !== null) return turn * (n - m);
        if ((n === null) !== (m === null)) return n === null ? 1 : -1;
        return turn * one.textContent.localeCompare(other.textContent, "en", { numeric: true });
      };
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
    };
    heads.forEach((head) => head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "descending" : "ascending");
      table.sorted();
    }));
    const search = table.closest("section").querySelector("input[type=search]"), count = table.closest("section").querySelector("output");
    table.filtered = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), rows = [...table.tBodies[0].rows];
      let left = 0;
      for (const row of rows) {
        const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        left += row.hidden ? 0 : 1;
      }
      count.textContent = words.length ? `${left} of ${rows.length} rows` : `${rows.length} rows`;
    };
    search.addEventListener("input", table.filtered);
    table.filtered();
  };
  for (const table of document.querySelectorAll("table")) {
    const one = data[table.dataset.rows];
    sortable(table);
    if (!one) continue;
    const fill = () => {
      const rows = selected(one).map((row) => element("tr", {}, ...one.columns.map((column) => {
        const value = row[column.name], cell = element("td", column.left ? { class: "left" } : {}, shown(column, value));
        if (!column.texts && value !== null) cell.dataset.v = String(value);
        return cell;
      })));
      table.tBodies[0].replaceChildren(...rows);
      table.sorted();
      table.filtered();
    };
    redraws.push(fill);
    fill();
  }
  document.documentElement.dataset.ready = "yes";
})();
