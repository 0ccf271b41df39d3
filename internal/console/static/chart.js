// Draws the figures of a page: <figure data-series="subscriber/shop" data-ranges="15m 6h"
// data-lines="in out" data-titles="In/s|Out/s">. Lines of one unit share a plot, and the cursors of
// all plots of a page move together. The range is in the page's address.

const root = document.documentElement;
const dashes = [[], [6, 4], [2, 3], [10, 3, 2, 3]];
// The lines that figures name: their columns of GET /overview/series, units and colours.
const known = {
  in: { column: "published_per_second", unit: "rate", colour: 1 },
  out: { column: "delivered_per_second", unit: "rate", colour: 2 },
  queued: { column: "queued_events", unit: "events", colour: 1 },
  oldest: { column: "oldest_event_age_seconds", unit: "age", colour: 2 },
  succeeded: { column: "succeeded_deliveries", unit: "deliveries", colour: 1 },
  failed: { column: "failed_deliveries", unit: "deliveries", colour: 3 },
  dropped: { column: "dropped_events", unit: "dropped", colour: 3 },
  dead: { column: "dead_letter_events", unit: "events", colour: 2 },
  busy: { column: "busy_share", unit: "share", colour: 1 },
  health: { column: "health_points", unit: "points", colour: 4 },
};
// Steps of an axis that are round in seconds, minutes and hours.
const ageSteps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800];
const between = 10_000; // the step of the shortest range, in ms
const charts = [];
let range = new URL(location.href).searchParams.get("range") ?? "15m";
let fetchedAt = 0;

const two = (n) => String(Math.floor(n)).padStart(2, "0");

function age(seconds) {
  if (seconds < 60) {
    return `${Number(seconds.toFixed(1))}s`;
  }
  if (seconds < 3600) {
    return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  }
  return `${Math.floor(seconds / 3600)}h${two((seconds % 3600) / 60)}m`;
}

function write(unit, value) {
  if (value === null || value === undefined) {
    return "-";
  }
  if (unit === "age") {
    return age(value);
  }
  if (unit === "share") {
    return `${Math.round(value * 100)}%`;
  }
  const digits = unit === "rate" && value < 100 ? (value < 10 ? 2 : 1) : 0;
  return value.toLocaleString("en", { maximumFractionDigits: Math.max(digits, value > 0 && value < 1 ? 1 : 0) });
}

// clock writes a time of day in the time zone that the display is in.
function clock(seconds) {
  const timeZone = root.dataset.zone === "utc" ? "UTC" : undefined;
  return new Date(seconds * 1000).toLocaleTimeString("sv", { timeZone, hour: "2-digit", minute: "2-digit" });
}

function make(name, className, text = "") {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
}

// piece is a piece of a line, beside its name.
function piece(dash) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  svg.setAttribute("viewBox", "0 0 24 8");
  svg.setAttribute("aria-hidden", "true");
  for (const [name, value] of [["d", "M0 4H24"], ["stroke", "currentColor"], ["stroke-width", 2], ["stroke-dasharray", dash.join(" ")]]) {
    path.setAttribute(name, value);
  }
  svg.append(path);
  return svg;
}

// prepare puts into a figure what its plots need: for each the names of its lines, with their values
// at the cursor.
function prepare(figure) {
  const titles = figure.dataset.titles.split("|");
  const lines = figure.dataset.lines.split(" ").map((name, i) => (
    { column: name, unit: name, colour: 1, ...known[name], title: titles[i], dash: dashes[i] }));
  const words = figure.querySelector("p");
  figure.querySelector("figcaption").append(ranges(figure));
  return Object.values(Object.groupBy(lines, (line) => line.unit)).map((some) => {
    const keys = make("p", "keys");
    const plot = make("div", "plot");
    plot.setAttribute("aria-hidden", "true");
    for (const line of some) {
      line.key = make("span", `series-${line.colour}`);
      line.value = make("b", "");
      line.key.append(piece(line.dash), `${line.title} `, line.value);
      keys.append(line.key);
    }
    words.before(keys, plot);
    return { figure, lines: some, plot, drawn: null };
  });
}

// ranges are links to the page with another range; they need no other page.
function ranges(figure) {
  const all = make("span", "ranges");
  for (const name of figure.dataset.ranges.split(" ")) {
    const link = make("a", "", name.replace("m", " min").replace("h", " h"));
    const address = new URL(location.href);
    address.searchParams.set("range", name);
    link.href = address.href;
    link.dataset.range = name;
    link.addEventListener("click", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
        event.preventDefault();
        choose(name);
      }
    });
    all.append(link);
  }
  return all;
}

function choose(name) {
  range = name;
  const address = new URL(location.href);
  address.searchParams.set("range", name);
  history.replaceState(null, "", address);
  fetchedAt = 0;
  draw();
}

// rangeOf is the chosen range, or the longest that a figure has.
function rangeOf(figure) {
  const all = figure.dataset.ranges.split(" ");
  return all.includes(range) ? range : all.at(-1);
}

// colour is what the style sheet has for an element: it alone knows the theme.
const colour = (element, property) => () => getComputedStyle(element)[property];

// nameLines writes the name of each line at its end. Names keep a line's height apart.
function nameLines(u, lines) {
  const { ctx, bbox } = u;
  const unit = devicePixelRatio;
  const ends = lines.map(({ title, key }, i) => {
    const last = u.data[i + 1].findLast((value) => Number.isFinite(value));
    return { title, key, y: u.valToPos(last ?? NaN, "y", true) };
  }).filter(({ y }) => Number.isFinite(y)).sort((a, b) => a.y - b.y);
  let free = 0;
  ctx.save();
  ctx.font = `${12 * unit}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  for (const { title, key, y } of ends) {
    ctx.fillStyle = colour(key, "color")();
    ctx.fillText(title, bbox.left + bbox.width + 6 * unit, Math.max(y, free));
    free = Math.max(y, free) + 14 * unit;
  }
  ctx.restore();
}

function options({ figure, lines, plot }) {
  const longest = Math.max(...figure.dataset.titles.split("|").map((title) => title.length));
  const axis = {
    stroke: colour(plot, "color"), font: "12px system-ui, sans-serif", ticks: { show: false },
    grid: { stroke: colour(plot, "borderTopColor"), width: 1 },
  };
  const show = (u) => showValues(u, lines);
  return {
    width: plot.clientWidth, height: plot.clientHeight, padding: [8, 12 + 7 * longest, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: "console" }, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
    axes: [
      { ...axis, space: 72, size: 22, gap: 4, grid: { show: false }, values: (_, at) => at.map(clock) },
      { ...axis, space: 36, size: 60, gap: 6, ...(lines[0].unit === "age" && { incrs: ageSteps }), values: (_, all) => all.map((v) => write(lines[0].unit, v)) },
    ],
    series: [{}, ...lines.map(({ key, dash }) => (
      { stroke: colour(key, "color"), width: 1.5, dash, points: { show: false } }))],
    hooks: { setCursor: [show], setData: [show], draw: [(u) => nameLines(u, lines)] },
  };
}

// showValues writes the values at the cursor, or else the last ones.
function showValues(u, lines) {
  const at = u.cursor.idx ?? u.data[0].length - 1;
  lines.forEach(({ value, unit }, i) => {
    value.textContent = write(unit, u.data[i + 1][at]);
  });
}

function show(chart, series) {
  const columns = [series.times, ...chart.lines.map(({ column }) => series[column] ?? series.times.map(() => null))];
  if (chart.drawn) {
    chart.drawn.setData(columns);
    return;
  }
  const { plot } = chart;
  chart.drawn = new uPlot(options(chart), columns, plot);
  showValues(chart.drawn, chart.lines);
  new ResizeObserver(() => {
    if (plot.clientWidth > 0) {
      chart.drawn.setSize({ width: plot.clientWidth, height: plot.clientHeight });
    }
  }).observe(plot);
}

// draw asks for each series once, whatever number of charts shows it.
async function draw() {
  if (document.hidden || Date.now() - fetchedAt < between) {
    return;
  }
  fetchedAt = Date.now();
  const asked = new Map();
  for (const chart of charts) {
    const over = rangeOf(chart.figure);
    const address = `${root.dataset.root}series?${new URLSearchParams({ of: chart.figure.dataset.series, range: over })}`;
    asked.set(address, asked.get(address) ?? load(address));
    const series = await asked.get(address);
    if (series) {
      show(chart, series);
    }
    for (const link of chart.figure.querySelectorAll("[data-range]")) {
      link.toggleAttribute("aria-current", false);
      if (link.dataset.range === over) {
        link.setAttribute("aria-current", "true");
      }
    }
  }
}

// load gets a series, with the times of its steps in s; null if there is none now.
async function load(address) {
  try {
    const answer = await fetch(address);
    const series = answer.ok ? await answer.json() : null;
    if (!series?.ends_at) {
      return null;
    }
    const steps = Math.max(...Object.values(series).map((column) => (Array.isArray(column) ? column.length : 0)));
    series.times = Array.from({ length: steps }, (_, i) => series.ends_at / 1000 - (steps - 1 - i) * series.step_seconds);
    return series;
  } catch {
    return null; // the next refresh asks again
  }
}

for (const figure of document.querySelectorAll("figure[data-series]")) {
  charts.push(...prepare(figure));
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach(({ drawn }) => drawn?.redraw(false)));
root.addEventListener("refreshed", draw);
document.addEventListener("visibilitychange", draw);
draw();
