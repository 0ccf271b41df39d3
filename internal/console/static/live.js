// Keeps a page fresh. It asks for the page's own address now and then, and changes the elements that
// have data-live to what they are in the answer: so there is one way to make a page, and a page that
// was refreshed is as one that was loaded. Whoever looks keeps focus, selection and scroll.

const root = document.documentElement;
const every = Number(root.dataset.refresh) * 1000; // 0 if it is not to be refreshed
const longest = 60_000;
const muchOlder = 30_000;
const troubles = /^✖ \d+ · /; // how many, in the title of a page
const pauseButton = document.getElementById("pause");
const main = document.getElementById("main");
const staleNotice = document.getElementById("stale");

let timer = 0;
let request = null;
let failures = 0;
let refusal = ""; // why web does not show the page any more, in its words
let paused = every === 0;
let refreshedAt = Date.now(); // or since when it should be again
let shownAt = refreshedAt; // what the page shows is of then
let selected = []; // ranges, during a refresh

function wanted() {
  return !paused && !document.hidden && !root.dataset.over;
}

function schedule() {
  clearTimeout(timer);
  if (!wanted()) {
    return;
  }
  const pause = failures === 0 ? every : Math.min(longest, Math.max(every, 5000) * 2 ** (failures - 1));
  // Tabs that were opened at the same moment come at different ones.
  timer = setTimeout(refresh, pause * (0.9 + Math.random() / 5));
}

function refresh() {
  clearTimeout(timer);
  if (request || !wanted()) {
    return;
  }
  request = new XMLHttpRequest();
  request.open("GET", location.href);
  request.setRequestHeader("X-Refresh", "1"); // without what stays: navigation, icons, scripts
  // A document is parsed without running its scripts, and is no sink of Trusted Types.
  request.responseType = "document";
  request.timeout = 15_000;
  request.onloadend = () => {
    const answer = request;
    request = null;
    receive(answer);
    schedule();
  };
  request.send();
}

function receive(answer) {
  if (answer.status === 401) {
    endSession();
    return;
  }
  // Web answers, but Redis does not: the page stays, and says so. It is empty if web has not noticed
  // that yet, or only this page needs what does not answer.
  const away = answer.status === 503 && answer.response?.querySelector("#away > *");
  if (answer.status !== 200 && !away || !answer.response) {
    failures++;
    refusal = refusalOf(answer);
    showAge();
    return;
  }
  failures = 0;
  refusal = "";
  // Another process may have answered, with figures that are a bit older than those on the page.
  // What is much older is of a clock that was set back.
  const older = Number(root.dataset.sampled) - Number(answer.getResponseHeader("X-Sampled-At"));
  if (older > 0 && older < muchOlder) {
    return;
  }
  refreshedAt = Date.now();
  showAge();
  if (!wanted()) {
    return;
  }
  shownAt = refreshedAt;
  show(answer.response);
}

// refusalOf is what an answer says instead of the page; empty if there was none.
function refusalOf(answer) {
  const said = answer.response?.getElementById("problem")?.textContent.trim().replace(/\.$/, "");
  return said || answer.status && `The answer was ${answer.status}` || "";
}

// endSession leaves the page as it is, and offers to come back to it.
function endSession() {
  root.dataset.over = "yes";
  const notice = document.getElementById("session-over");
  const login = notice.querySelector("a");
  const here = location.pathname.slice(new URL(root.dataset.root, location.href).pathname.length);
  login.search = new URLSearchParams({ next: here + location.search });
  notice.hidden = false;
}

function show(fresh) {
  localize(fresh);
  hold(() => update(fresh));
  document.title = (fresh.title.match(troubles)?.[0] ?? "") + document.title.replace(troubles, "");
  const icon = fresh.querySelector("link[rel=icon]");
  document.querySelector("link[rel=icon]")?.setAttribute("href", icon?.getAttribute("href") ?? "");
  root.dataset.sampled = fresh.documentElement.dataset.sampled;
  root.dataset.refreshed = Number(root.dataset.refreshed ?? 0) + 1;
  root.dispatchEvent(new Event("refreshed"));
}

// hold keeps the control under the pointer where it is, whatever a change does above it: the page is
// scrolled by as much, and gets longer where it cannot be.
function hold(change) {
  const control = document.querySelector("main :is(a, button, summary, input, select, textarea):hover");
  const before = control?.getBoundingClientRect().top;
  main.style.marginBlock = "";
  change();
  if (!control?.isConnected) {
    return;
  }
  const moved = () => control.getBoundingClientRect().top - before;
  scrollBy({ top: moved(), behavior: "instant" });
  const left = Math.round(moved());
  if (left < 0) {
    main.style.marginTop = `${-left}px`;
  } else if (left > 0) {
    main.style.marginBottom = `${left}px`;
    scrollBy({ top: left, behavior: "instant" });
  }
}

function update(fresh) {
  selected = selectedRanges();
  for (const region of fresh.querySelectorAll("[data-live][id]")) {
    const old = document.getElementById(region.id);
    if (old) {
      keepOrder(old, region);
      Idiomorph.morph(old, region, { ignoreActiveValue: true, callbacks });
    }
  }
}

const callbacks = {
  beforeNodeMorphed(old, fresh) {
    if (old.isEqualNode(fresh)) {
      return false; // the browser compares much faster than the library does
    }
    if (old.nodeType === Node.TEXT_NODE) {
      return !isSelected(old) && mark(old, fresh);
    }
    return !(old instanceof HTMLElement && old.hasAttribute("data-keep"));
  },
  // What somebody has opened stays open.
  beforeAttributeUpdated(name, node) {
    return !(name === "open" && node.localName === "details");
  },
};

// mark has a changed word stand out for a moment, where a page asks for it.
function mark(old, fresh) {
  const marked = old.parentElement?.closest("[data-mark]");
  if (marked && old.data.trim() !== fresh.data.trim()) {
    marked.classList.add("changed");
    marked.addEventListener("animationend", () => marked.classList.remove("changed"), { once: true });
  }
  return true;
}

// selectedRanges are asked for once a refresh: a browser lays the page out first if it has changed.
function selectedRanges() {
  const selection = getSelection();
  const ranges = Array.from({ length: selection.rangeCount }, (_, i) => selection.getRangeAt(i));
  return ranges.filter((range) => !range.collapsed);
}

function isSelected(node) {
  return selected.some((range) => range.intersectsNode(node));
}

// keepOrder gives the rows of a table the order that they have on the page while somebody points at
// it, is in it, or has selected a part of it. A row without an id stands for its place in the
// table, as the times of a chart do, and is where the answer has it.
function keepOrder(old, fresh) {
  const bodies = tableBodies(fresh);
  tableBodies(old).forEach((body, i) => {
    const inUse = isPointedAt(body) || isSelected(body);
    if (inUse && bodies[i]) {
      const known = new Map([...bodies[i].rows].map((row) => [row.id, row]));
      const rows = [...body.rows].filter((row) => row.id);
      bodies[i].prepend(...rows.map((row) => known.get(row.id) ?? gone(row)).filter(Boolean));
    }
  });
}

function tableBodies(region) {
  return region.matches("tbody") ? [region] : [...region.querySelectorAll("tbody")];
}

function isPointedAt(element) {
  return element.matches(":hover") || element.contains(document.activeElement);
}

// gone keeps a row that the answer does not have, for as long as somebody points at it or is in it:
// else a click that was meant for it would be one on the row that took its place.
function gone(row) {
  if (!isPointedAt(row)) {
    return null;
  }
  const kept = row.cloneNode(true);
  kept.classList.add("gone");
  return kept;
}

// localize writes times of day in the time zone of whoever looks, if that is what they chose.
function localize(page) {
  if (root.dataset.zone !== "local") {
    return;
  }
  for (const element of page.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    element.title = at.toLocaleString("sv") + " " + zoneOf(at);
    if (element.hasAttribute("data-exact")) {
      element.textContent = element.title;
    } else if (!element.hasAttribute("data-ago")) {
      element.textContent = at.toLocaleTimeString("sv").slice(0, element.textContent.trim().length);
    }
  }
}

// zoneOf is the difference to UTC, such as "+01:00".
function zoneOf(at) {
  const minutes = -at.getTimezoneOffset();
  const two = (n) => String(Math.floor(n)).padStart(2, "0");
  return (minutes < 0 ? "-" : "+") + two(Math.abs(minutes) / 60) + ":" + two(Math.abs(minutes) % 60);
}

// showAge says since when the page has not been refreshed, if it should have been.
function showAge() {
  const age = Date.now() - refreshedAt;
  const stale = wanted() && (refusal !== "" || age > Math.max(10_000, 2.5 * every));
  document.body.classList.toggle("stale", stale);
  staleNotice.hidden = !stale;
  if (stale) {
    const seconds = (ms) => `${Math.round(ms / 1000)} s`;
    staleNotice.textContent = refusal ? `${refusal}. What stands here is of ${seconds(Date.now() - shownAt)} ago.` :
      `Not refreshed for ${seconds(age)}: web does not answer. ` +
      "What stands here is from before that. It goes on by itself.";
  }
}

function pause(on) {
  paused = on;
  pauseButton.setAttribute("aria-pressed", String(on));
  refreshedAt = Date.now();
  showAge();
  refresh();
}

function press(event) {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || root.dataset.keys === "off") {
    return;
  }
  if (event.key === "/") {
    const filter = document.querySelector("input[type=search]");
    filter?.focus();
    filter?.select();
  } else if (event.key === "p" && pauseButton) {
    pause(!paused);
  } else if (event.key === "?") {
    document.getElementById("help-link")?.click();
    return;
  } else {
    return;
  }
  event.preventDefault();
}

localize(document);
addEventListener("keydown", press);
if (pauseButton) {
  pauseButton.hidden = false;
  pauseButton.setAttribute("aria-pressed", String(paused));
  pauseButton.addEventListener("click", () => pause(!paused));
  document.addEventListener("visibilitychange", () => {
    refreshedAt = Date.now();
    refresh();
  });
  addEventListener("pageshow", (event) => event.persisted && refresh());
  setInterval(showAge, 1000);
  schedule();
}
