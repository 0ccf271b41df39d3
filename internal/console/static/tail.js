// Shows the events of a topic while they are published, as text: nothing of them is parsed, so that
// their numbers keep their digits.

const maxRows = 500;
const hiddenFor = 60_000; // then the stream is closed until somebody looks again

const section = document.querySelector("[data-tail]");
const toggle = document.getElementById("tail-toggle");
const filter = document.getElementById("tail-filter");
const state = document.getElementById("tail-state");
const rows = document.getElementById("tail-rows");

let source = null;
let wanted = false;
let hiding = 0;

function open() {
  if (source || !wanted) {
    return;
  }
  source = new EventSource(section.dataset.tail);
  source.onopen = () => say("Live: events are shown from now on.");
  source.onmessage = (event) => add(event.data);
  source.addEventListener("left_out", (event) => add(`${event.data} left out`, "muted"));
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) {
      stop("It has ended: web refused it, or the session is over.");
    } else {
      say("The connection is lost. Connecting again…");
    }
  };
}

function close() {
  source?.close();
  source = null;
}

function start() {
  wanted = true;
  toggle.textContent = "Stop";
  say("Connecting…");
  open();
}

function stop(why) {
  wanted = false;
  toggle.textContent = "Start";
  close();
  say(why);
}

function say(text) {
  state.textContent = text;
}

function add(text, kind) {
  const atEnd = rows.scrollHeight - rows.scrollTop - rows.clientHeight < 8;
  const row = document.createElement("div");
  row.textContent = text;
  if (kind) {
    row.className = kind;
  }
  sift(row);
  rows.append(row);
  while (rows.children.length > maxRows) {
    rows.firstElementChild.remove();
  }
  if (atEnd) {
    rows.scrollTop = rows.scrollHeight;
  }
}

// sift hides a row that the filter does not let through. What was left out is always said.
function sift(row) {
  const wantedText = filter.value.trim().toLowerCase();
  row.hidden = row.className === "" && !row.textContent.toLowerCase().includes(wantedText);
}

if (section) {
  section.hidden = false;
  toggle.addEventListener("click", () => (wanted ? stop("Stopped.") : start()));
  filter.addEventListener("input", () => [...rows.children].forEach(sift));
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) {
      hiding = setTimeout(() => {
        close();
        if (wanted) {
          add("not watched while the page was hidden", "muted");
        }
      }, hiddenFor);
    } else {
      open();
    }
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
}
