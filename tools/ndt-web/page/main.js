/** The page: what is known (state), who draws it, keys. window.ndt shows it to tests. */

import { Charts, drawBars } from "./charts.js";
import { $, colour, count, fixed, h, setText, setTheme } from "./dom.js";
import { Feed, getJson } from "./feed.js";
import { History, OUTCOMES, poseDifference, STATES } from "./history.js";
import { Keys } from "./keys.js";
import { LogPane } from "./log_pane.js";
import { Measure } from "./measure.js";
import { drawBanner, drawDaemon, drawHeader, drawScan, outcomeMark, stateMark } from "./panels.js";
import { Player } from "./player.js";
import { PoseTool, toast } from "./pose_tool.js";
import { themes, View } from "./view.js";

const KEPT = 12000; // ten minutes at 20 Hz
const METAS = 200;
const LACKING = 30; // results in a row without points: they do not come
const DRAW_MS = 100;
const READ_MS = 250; // a table that changes faster cannot be read
const COLOURINGS = ["height", "intensity", "plain"];
const TABS = ["overview", "scan", "daemon", "log"];
const GUESSED = ["initialising", "lost", "recovering"]; // states whose poses jump from scan to scan
const SETTINGS = "ndt-web.settings";

const state = {
    link: "connecting",
    retry: 0,
    mode: null,
    version: "",
    allowControl: false,
    control: false,
    daemon: null,
    status: null,
    map: null,
    replay: null,
    result: null,
    gnss: null,
    age: 0,
    arrival: 0,
    get last() { return this.result; },
    history: new History(KEPT),
    metas: new Map(),
    selected: null,
    stats: null,
    feed: null,
};
const settings = {
    theme: null,
    mode: "follow",
    colouring: "height",
    size: 2,
    budget: 1000000,
    span: null,
    scan: true,
    trail: true,
    candidates: true,
    gnss: true,
    tab: "overview",
    panel: true,
    ...load()
};

function load() {
    try {
        return JSON.parse(localStorage.getItem(SETTINGS)) || {};
    } catch {
        return {};
    }
}

function save() {
    try {
        localStorage.setItem(SETTINGS, JSON.stringify(settings));
    } catch { /* storage is off: it lasts as long as the page */
    }
}

const systemTheme = matchMedia("(prefers-color-scheme: light)");
const themeName = () => settings.theme || (systemTheme.matches ? "light" : "dark");
setTheme(themeName());

/** Without WebGL2 the values are still shown: a view that draws nothing. */
function openView() {
    try {
        return new View($("view"), {
            onStats: (stats) => {
                state.stats = stats;
            },
            onMode: (mode) => showMode(mode),
            onPicture: () => measure && measure.draw()
        });
    } catch (error) {
        state.viewError = error.message;
        const nothing = { theme: themes.dark, stats: {}, mode: "follow", pick: () => null };
        return new Proxy(nothing, { get: (target, name) => (name in target ? target[name] : () => {}) });
    }
}
const view = openView();
const charts = new Charts($("charts"), state.history, (index) => select(index));
const log = new LogPane();
let player = null, dirty = true, scanDirty = true, daemonDirty = true, lastScan = null, newestBefore = 0, withoutPoints = 0;
let pinned = null; // of the last scans, the one that is looked at: {seq, result, meta}, both null where no longer kept

/* Input */

const feed = new Feed({
    link(name, seconds) {
        if (name === "lost" && state.link === "open") log.add({ level: "error", text: "connection to ndt-web lost" });
        if (name === "open" && state.link === "lost") log.add({ level: "info", text: "connection to ndt-web back" });
        state.link = name;
        state.retry = seconds;
        dirty = true;
    },
    hello(value) {
        newestBefore = performance.now() / 1000 - (value.age_s || 0);
        state.version = value.version;
        state.allowControl = Boolean(value.allow_control);
        state.control = value.mode === "live" && state.allowControl && Boolean(feed.token);
        if (state.mode === null && value.mode === "replay") startReplay(value.history);
        state.mode = value.mode;
        dirty = true;
    },
    daemon(value) {
        if (!value.connected && state.daemon && state.daemon.connected) state.status = null;
        state.daemon = value;
        dirty = daemonDirty = true;
    },
    status(value) {
        state.status = value;
        if (value.latency_ms && value.latency_ms.budget > 0) charts.budget_ms = value.latency_ms.budget;
        tool.tookStatus(value);
        dirty = daemonDirty = true;
    },
    map(value) {
        const isNew = value.state === "ready" && (!state.map || state.map.state !== "ready" || state.map.id !== value.id);
        state.map = value;
        if (isNew) view.setMap(value);
        dirty = true;
    },
    result: addResult,
    scan(meta) {
        withoutPoints = 0;
        keepMeta(meta);
        state.gnss = meta.gnss || null;
        if (!pinned) {
            showCandidates(meta);
            showGnss(meta.gnss);
        }
        scanDirty = true;
    },
    points: showPoints,
    log: (line) => log.add(line),
    ready() {
        if (settings.trail) view.setTrail(state.history.trail());
        if (state.result && !pinned) showPose(state.result);
        if (lastScan && !pinned) showPoints(lastScan); // it came before its pose
        dirty = true;
    },
    reset() {
        state.history.clear();
        state.metas.clear();
        state.selected = pinned = null;
        state.result = null;
        view.setTrail([]);
        view.clearScan();
        charts.setSelected(null);
        dirty = true;
    },
});
state.feed = feed.stats;
const tool = new PoseTool(view, feed, state, () => measure.arm(false));
const measure = new Measure(view, () => tool.arm(false));

/** When a result came, s: those of the history came before this page did. */
function arrival() {
    return feed.loading ? newestBefore : performance.now() / 1000;
}

function addResult(result) {
    const now = arrival();
    const index = state.history.add(result, now);
    state.result = result;
    state.arrival = now;
    if (!feed.loading) {
        if (result.outcome === "converged" && !document.hidden) withoutPoints++;
        const item = state.history.trailItem(index);
        if (item && settings.trail) view.appendTrail(item);
        if (!pinned) showPose(result);
    }
    dirty = scanDirty = charts.dirty = true;
}

function keepMeta(meta) {
    state.metas.set(String(meta.seq), meta);
    while (state.metas.size > METAS) state.metas.delete(state.metas.keys().next().value);
}

const metaOf = (result) => (result ? state.metas.get(String(result.seq)) || null : null);
const shownResult = () => (pinned ? pinned.result : state.result);

/* Layers of the view */

let isPlaced = false;

function showPose(result) {
    if (result && result.pose && !isPlaced) { // until now the whole map was in sight
        isPlaced = true;
        view.setMode(settings.mode);
    }
    view.setPose(
        result && result.pose ? { pose: result.pose, covariance: result.covariance || null, weak_axes: result.weak_axes || [] } : null);
    if (lastScan && isGuessed()) placeScan(lastScan);
}

const isGuessed = () => state.mode === "live" && !pinned && state.result !== null && GUESSED.includes(state.result.state);

function showPoints(scan) {
    tool.tookScan(scan);
    if (pinned && Number(pinned.seq) !== scan.seq) return; // another one is looked at
    lastScan = scan;
    placeScan(scan);
}

/** A scan belongs to its own pose. While poses are guesses, which jump, it is where the vehicle is drawn: one place, not two. */
function placeScan(scan) {
    if (!settings.scan) return;
    const index = isGuessed() ? -1 : state.history.find(scan.seq);
    const item = index >= 0 ? state.history.trailItem(index) : null;
    const pose = item ? item.pose : state.mode === "live" && state.result ? state.result.pose : null;
    if (pose)
        view.setScan({ seq: scan.seq, points: scan.points, scale: scan.scale, pose });
    else
        view.clearScan();
}

/** Entries of the legend, once each has been seen. */
const legendParts = {
    candidates: false,
    gnss: false
};

function seenPart(name, is) {
    if (!is || legendParts[name]) return;
    legendParts[name] = true;
    drawLegend();
}

function showCandidates(meta) {
    if (!$("search-card").hidden) return; // the places that a search has found stay
    const list = settings.candidates && meta ? meta.candidates || [] : [];
    seenPart("candidates", list.length);
    view.setCandidates(list);
}

function showGnss(gnss) {
    seenPart("gnss", gnss);
    view.setGnss(settings.gnss && gnss ? gnss : null);
}

/** Looks at one scan: of the last ones, or of a replay; null: the newest again. */
function select(index) {
    if (player) {
        player.play(false);
        player.seek(index);
        return;
    }
    if (index !== null && (index < 0 || index >= state.history.end)) return;
    const result = index === null ? null : state.history.result(index);
    state.selected = index;
    charts.setSelected(index);
    pinned = index === null ? null : { seq: state.history.seq[state.history.slot(index)], result, meta: result && metaOf(result) };
    if (pinned) {
        const item = state.history.trailItem(index);
        showPose(result || (item && { pose: item.pose }));
        showCandidates(pinned.meta);
        showGnss(pinned.meta && pinned.meta.gnss);
        view.clearScan(); // until its points come, where they are still kept
        feed.fetchScan(pinned.seq);
        showTab("scan");
    } else
        showPose(state.result);
    dirty = scanDirty = true;
}

/* Replay */

async function startReplay(scans) {
    try {
        state.replay = await getJson("/api/replay");
        const history = new History(Math.max(1, scans), 2);
        state.history = charts.history = history;
        charts.isReplay = true;
        listSpans();
        player = new Player(history, showReplayed);
        await player.load(scans, () => {
            charts.dirty = true;
        });
        if (settings.trail) view.setTrail(history.trail());
    } catch (error) {
        toast(`The replay cannot be shown: ${error.message}`, "error");
    }
    dirty = daemonDirty = true;
}

let replayWanted = null, replayBusy = false;

/** One scan at a time: results, iterations, points; while they come, only the newest wish is kept. */
async function showReplayed(index) {
    replayWanted = index;
    charts.setSelected(index);
    if (replayBusy) return;
    replayBusy = true;
    while (replayWanted !== null) {
        const wanted = replayWanted;
        replayWanted = null;
        try {
            const result = await player.result(wanted);
            const [timing, points] =
                await Promise.all([getJson(`/api/timing?seq=${result.seq}`).catch(() => null), feed.fetchScan(result.seq)]);
            state.result = result;
            const meta = {...(timing || {}), iterations: timing && (timing.iterations || timing) };
            keepMeta({...meta, seq: result.seq });
            showPose(result);
            showCandidates(meta);
            showGnss(meta.gnss);
            if (!points) view.clearScan();
        } catch { /* the connection's loss is told elsewhere */
        }
        dirty = scanDirty = true;
    }
    replayBusy = false;
}

/* Drawing: at most ten times per second, nothing where nothing changed or nothing is seen */

function drawScanPane() {
    const result = shownResult(), meta = pinned ? pinned.meta : metaOf(result);
    drawScan(
        {
            result,
            meta,
            iterations: meta && meta.iterations,
            pinned: pinned !== null,
            isReplay: Boolean(player),
            error: result && result.pose && result.truth ? poseDifference(result.pose, result.truth) : null,
            empty: pinned === null ? "No scan yet. Its values, iterations and hypotheses appear here."
                                   : "Only the numbers of this scan are kept: the charts show them.",
        },
        (pose) => view.lookAt(pose));
}

function drawCounts() {
    const { status, history } = state;
    const known = state.mode === "live" && status && status.outcomes;
    const outcomes = known ? OUTCOMES.map((name) => status.outcomes[name] || 0) : Array.from(history.outcomes);
    const states = known ? STATES.map((name) => (status.states || {})[name] || 0) : Array.from(history.states);
    const where = known ? "since the daemon's start" : state.mode === "replay" ? "of the drive" : "";
    const [a, b] = [
        drawBars($("outcomes"), [...OUTCOMES, "other"], outcomes, outcomeMark),
        drawBars($("states"), [...STATES, "none"], states, stateMark)
    ];
    setText($("outcomes-of"), a ? `${count(a)} scans ${where}` : "none yet");
    setText($("states-of"), b ? `${count(b)} scans ${where}` : "none yet");
}

const isWall = matchMedia("(min-width: 2000px) and (min-height: 900px)");
const seen = (tab) => (settings.panel || isWall.matches) && (isWall.matches || settings.tab === tab);

function drawStats() {
    const s = view.stats || {};
    setText($("view-stats"), s.points ? `${count(s.points)} points in ${s.nodes} nodes` : "No map yet.");
}

let drawnAt = 0, drawnAge = -1, scanAt = 0;

function draw(now) {
    requestAnimationFrame(draw);
    if (now - drawnAt < DRAW_MS - 8) return;
    drawnAt = now;
    state.lacksPoints = state.mode === "live" && withoutPoints > LACKING;
    state.age = state.mode === "live" && state.arrival ? Math.max(0, performance.now() / 1000 - state.arrival) : 0;
    const second = Math.floor(state.age);
    if (second !== drawnAge) {
        drawnAge = second;
        dirty = true;
        if (second) charts.dirty = true;
    }
    if (dirty) {
        dirty = false;
        drawHeader(state);
        drawBanner(state);
        tool.draw();
        const shown = pinned || state.result;
        setText($("scan-title"), shown ? `Scan ${shown.seq}` : "Scan");
        if (seen("overview")) drawCounts();
        setText($("tab-daemon"), state.mode === "replay" ? "Replay" : "Daemon");
        if (!$("display-box").hidden) drawStats();
    }
    if (seen("overview") && charts.dirty) charts.draw(state.age > 0.5 ? state.age : 0);
    if (seen("scan") && scanDirty && (now - scanAt > READ_MS || player || pinned)) {
        scanDirty = false;
        scanAt = now;
        drawScanPane();
    }
    if (seen("daemon") && daemonDirty) {
        daemonDirty = false;
        drawDaemon(state);
    }
    log.drawIfNeeded();
}

/* Settings, tabs, theme */

function applyTheme() {
    const name = themeName();
    setTheme(name);
    view.setTheme(name);
    $("theme").setAttribute("aria-label", name === "dark" ? "Light colours" : "Dark colours");
    drawLegend();
    dirty = scanDirty = charts.dirty = true;
    if (player) player.drawStrip();
}

function drawLegend() {
    const item = (name, background, dot) => {
        const swatch = h("i", { class: dot ? "swatch dot" : "swatch" });
        swatch.style.background = background;
        return h("li", {}, swatch, name);
    };
    const { theme } = view, ramp = (colours) => `linear-gradient(90deg, ${colours.join(", ")})`;
    const map = {
        height: ["map, low to high", ramp(theme.ramp)],
        intensity: ["map, intensity", ramp(theme.ramp)],
        plain: ["map", theme.plain]
    };
    $("legend").replaceChildren(
        item(...map[settings.colouring]), item("scan", theme.scan, true),
        item("trail, confidence 0 to 1", ramp([theme.bad, theme.fair, theme.good])),
        ...(legendParts.candidates ? [item("hypotheses", theme.candidate, true)] : []),
        ...(legendParts.gnss ? [item("GNSS", theme.gnss, true)] : []));
}

function showTab(name) {
    settings.tab = name;
    for (const tab of TABS) {
        $(`tab-${tab}`).setAttribute("aria-selected", String(tab === name));
        $(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
        $(`pane-${tab}`).hidden = tab !== name;
    }
    if (!settings.panel) showPanel(true);
    if (name === "log") log.seen();
    dirty = daemonDirty = scanDirty = charts.dirty = true;
    save();
}

function showPanel(on) {
    settings.panel = on;
    document.body.classList.toggle("narrow-panel", !on);
    $("panes").hidden = !on;
    $("panel-toggle").setAttribute("aria-expanded", String(on));
    dirty = daemonDirty = scanDirty = charts.dirty = true;
    save();
}

function setMode(mode) {
    settings.mode = mode;
    view.setMode(mode);
    showMode(mode);
}

function showMode(mode) {
    if (isPlaced) settings.mode = mode;
    for (const name of ["follow", "top", "free"]) $(`mode-${name}`).setAttribute("aria-pressed", String(name === mode));
    save();
}

function change(name, value) {
    settings[name] = value;
    applyDisplay();
}

/** All of the display settings to the view. */
function applyDisplay() {
    view.setColouring(settings.colouring);
    view.setPointSize(settings.size);
    view.setPointBudget(settings.budget);
    $("colouring").value = settings.colouring;
    $("point-size").value = String(settings.size);
    $("budget").value = String(settings.budget);
    setText($("point-size-out"), `${settings.size} px`);
    for (const name of ["scan", "trail", "candidates", "gnss"]) $(`show-${name}`).checked = settings[name];
    drawLegend();
    save();
}

/** One layer again, after it was shown or hidden. */
function redrawLayer(name) {
    const meta = pinned ? pinned.meta : metaOf(state.result);
    if (name === "trail") view.setTrail(settings.trail ? state.history.trail() : []);
    if (name === "scan" && settings.scan && lastScan) showPoints(lastScan);
    if (name === "scan" && !settings.scan) view.clearScan();
    if (name === "candidates") showCandidates(meta);
    if (name === "gnss") showGnss(meta && meta.gnss);
}

function wire() {
    for (const tab of TABS)
        $(`tab-${tab}`)
            .addEventListener("click", () => (settings.panel && settings.tab === tab && isPhone.matches ? showPanel(false) : showTab(tab)));
    $("tabs").addEventListener("keydown", (event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!by || event.target.getAttribute("role") !== "tab") return;
        event.preventDefault();
        event.stopPropagation();
        const next = TABS[(TABS.indexOf(settings.tab) + by + TABS.length) % TABS.length];
        showTab(next);
        $(`tab-${next}`).focus();
    });
    $("panel-toggle").addEventListener("click", () => showPanel(!settings.panel));
    $("theme").addEventListener("click", toggleTheme);
    systemTheme.addEventListener("change", applyTheme);
    $("help").addEventListener("click", () => keys.showList());
    $("scan-newest").addEventListener("click", () => select(null));
    for (const mode of ["follow", "top", "free"]) $(`mode-${mode}`).addEventListener("click", () => setMode(mode));
    $("fit").addEventListener("click", () => view.fit());
    $("span").addEventListener("change", (event) => setSpan(Number(event.target.value) || null));
    $("display").addEventListener("click", () => showDisplay($("display-box").hidden));
    $("colouring").addEventListener("change", (event) => change("colouring", event.target.value));
    $("point-size").addEventListener("input", (event) => change("size", Number(event.target.value)));
    $("budget").addEventListener("change", (event) => change("budget", Number(event.target.value)));
    for (const name of ["scan", "trail", "candidates", "gnss"])
        $(`show-${name}`).addEventListener("change", (event) => {
            settings[name] = event.target.checked;
            redrawLayer(name);
            applyDisplay();
        });
    new ResizeObserver(() => view.resize()).observe($("stage"));
}

const isPhone = matchMedia("(max-width: 720px), (max-width: 1080px) and (orientation: portrait)");

function toggleTheme() {
    settings.theme = themeName() === "dark" ? "light" : "dark";
    save();
    applyTheme();
}

function listSpans() {
    $("span").replaceChildren(...charts.spans.map(([seconds, text]) => h("option", { value: seconds || "all" }, text)));
    setSpan(settings.span);
}

function setSpan(seconds) {
    settings.span = seconds;
    charts.setSpan(seconds);
    $("span").value = String(seconds || (charts.isReplay ? "all" : 60));
    save();
}

/** The next shorter or longer time of the charts. */
function stepSpan(by) {
    const { options, selectedIndex } = $("span"), next = options[selectedIndex + by];
    if (next) setSpan(Number(next.value) || null);
}

function showDisplay(on) {
    $("display-box").hidden = !on;
    $("display").setAttribute("aria-expanded", String(on));
    drawStats();
}

/* Keys */

/** For Keys: [key, what it does, function]; titles of groups are single texts */
const KEYS = [
    "View",
    ["F", "follow the vehicle", () => setMode("follow")],
    ["T", "from above", () => setMode("top")],
    ["V", "free camera", () => setMode("free")],
    ["G", "show the whole map", () => view.fit()],
    ["M", "measure a length on the map", () => measure.arm(!measure.armed)],
    ["C", "next colouring of the map", () => change("colouring", COLOURINGS[(COLOURINGS.indexOf(settings.colouring) + 1) % 3])],
    ["]", "larger points", () => change("size", Math.min(6, settings.size + 0.5))],
    ["[", "smaller points", () => change("size", Math.max(1, settings.size - 0.5))],
    "Page",
    ["1 – 4", "overview, scan, daemon, log", null],
    ["B", "show or hide the values", () => showPanel(!settings.panel)],
    ["D", "dark or light", toggleTheme],
    ["N", "newest scan", () => select(null)],
    [",", "charts: a shorter time", () => stepSpan(-1)],
    [".", "charts: a longer time", () => stepSpan(1)],
    ["?", "this list", () => keys.showList()],
    ["Esc", "cancel, close", null],
    "Control",
    ["P", "set the initial pose on the map", () => tool.arm(!tool.armed)],
    ["I", "initial pose by numbers", () => tool.openPose()],
    ["L", "localise", () => tool.openLocalize()],
    "Replay",
    ["Space", "play, pause", () => player && player.play(!player.playing)],
    ["← →", "one scan back, on", null],
    ["PgUp PgDn", "ten scans back, on", null],
    ["Home End", "first, last scan", null],
    ["W", "next of the worst scans", () => player && player.nextWorst()],
];

const keys = new Keys(KEYS, {
    escape() {
        tool.arm(false);
        measure.arm(false);
        tool.hint(false);
        showDisplay(false);
    },
    tab: (number) => showTab(TABS[number]),
    player: () => (measure.armed ? null : player),
    about: () => `On the map: drag turns, right drag or two fingers move, the wheel zooms. ndt-web ${state.version}.`,
});

/* Start */

wire();
applyTheme();
applyDisplay();
listSpans();
setMode(settings.mode);
showPanel(settings.panel && !(isPhone.matches && !localStorage.length));
showTab(TABS.includes(settings.tab) ? settings.tab : "overview");
if (isPhone.matches) showPanel(false);
feed.start();
requestAnimationFrame(draw);

window.ndt = {
    view,
    state,
    feed,
    tool,
    charts,
    log,
    measure,
    get player() { return player; },
    select,
    stats: () => ({...view.stats, ...feed.stats, results: state.history.length, metas: state.metas.size, log: log.entries.length }),
};
