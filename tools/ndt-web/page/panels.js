/** Header, banner and the panes Scan and Daemon: what the daemon says, as text. */

import { $, bytes, count, duration, fillValues, fixed, h, icon, setText, short, withUnit, yawDeg } from "./dom.js";
import { latencyMs, poseDifference } from "./history.js";

const STATE_NAMES = {
    initialising: "Initialising",
    tracking: "Tracking",
    coasting: "Coasting",
    lost: "Lost",
    recovering: "Recovering",
    extending: "Beyond the map"
};
const STAGES =
    [["decode_us", "decode"], ["queue_us", "queue"], ["preprocess_us", "preprocess"], ["align_us", "align"], ["publish_us", "publish"]];
const STALE_S = 3;
const AXES = ["x", "y", "z", "rx", "ry", "rz"];
/** Columns of the table of iterations: key, name, unit, digits (null: about three digits) */
const ITERATION_COLUMNS = [
    ["iteration", "#", "", 0], ["level", "level", "", 0], ["score", "score", "", null], ["step_m", "step", "mm", null, 1e3],
    ["step_rad", "turn", "mrad", null, 1e3], ["matched", "matched", "points", 0], ["gradient_norm", "gradient", "", null],
    ["time_us", "time", "µs", 0]
];

export const stateMark = (name) =>
    [icon(STATE_NAMES[name] ? name : "away"),
     {tracking: "good", coasting: "warn", extending: "warn", recovering: "warn", lost: "bad", initialising: "info"}[name] || "still"];

export const outcomeMark = (name) => {
    if (name === "converged") return [icon("tracking"), "good"];
    if (["merged", "dropped"].includes(name)) return [icon("stopped"), "still"];
    return ["iteration_limit", "deadline", "degenerate"].includes(name) ? [icon("coasting"), "warn"] : [icon("lost"), "bad"];
};

const spaced = (name) => String(name).replaceAll("_", " ");

/** The badge: state (for colour and shape), text, detail. */
export function badge(state) {
    const { link, daemon, status, result, age, mode } = state;
    if (link !== "open") return ["away", link === "lost" ? "No connection" : "Connecting", ""];
    if (mode === "replay") return result ? trust(result) : ["away", "No results", ""];
    if (!daemon || !daemon.connected) return ["away", "No daemon", ""];
    if (status && status.state === "loading") return ["initialising", "Loading map", loading(status)];
    if (status && status.state === "stopped") return ["stopped", "Stopped", "scans are rejected"];
    if (status && status.state === "no_map") return ["away", "No map", ""];
    if (!result) return ["initialising", "No scans yet", status && status.state === "no_guess" ? "no pose" : ""];
    if (age > STALE_S) return ["stale", "No scans", `for ${duration(age)}; ${spaced(result.state || result.outcome)} before`];
    return trust(result);
}

function trust(result) {
    const detail = result.outcome === "converged" ? "" : spaced(result.outcome) + (result.reason ? `: ${result.reason}` : "");
    const name = result.state || (result.outcome === "converged" ? "tracking" : "lost");
    return [name, STATE_NAMES[name] || spaced(name), detail];
}

function loading(status) {
    const load = (status.map && status.map.loading) || status.map || {};
    for (const [done, all] of [["bytes", "all_bytes"], ["files", "all_files"], ["points", "all_points"], ["levels", "all_levels"]])
        if (load[all] > 0 && load[done] < load[all]) return `${Math.floor(100 * load[done] / load[all])} %`;
    return "";
}

let announced = "";

export function drawHeader(state) {
    const [name, text, detail] = badge(state);
    const { result, status, map, history } = state;
    const box = $("state-badge");
    if (box.dataset.state !== name) {
        box.dataset.state = name;
        $("state-icon").setAttribute("href", `#i-${name === "stale" ? "coasting" : name}`);
    }
    setText($("state-text"), text);
    setText($("state-detail"), detail);
    box.title = detail;
    if (text !== announced) {
        if (announced) setText($("announce"), text);
        announced = text;
        document.title = `${text} – ndt-web`;
    }
    const pose = result && result.pose;
    setText($("pose-x"), fixed(pose && pose[0]));
    setText($("pose-y"), fixed(pose && pose[1]));
    setText($("pose-z"), fixed(pose && pose[2]));
    setText($("pose-yaw"), pose ? fixed(yawDeg(pose), 1) : "–");
    setText($("speed"), fixed(result && result.twist ? Math.hypot(...result.twist.slice(0, 3)) : null, 1));
    setText($("rate"), fixed(history.rate(), 1));
    setText($("latency"), result ? short(latencyMs(result)) : "–");
    setText($("confidence"), fixed(result && result.confidence, 3));
    const path = String((map && map.source) || (status && status.map && status.map.path) || "");
    setText($("map-name"), path ? path.replace(/\/+$/, "").split("/").pop() : "–");
    $("map-name").title = path;
    const link = $("connection");
    link.dataset.state = state.link;
    setText(
        link,
        state.link !== "open"                          ? "no connection"
            : state.mode === "replay"                  ? "replay"
            : (state.daemon && state.daemon.connected) ? "live"
                                                       : "no daemon");
    link.title = (state.daemon && state.daemon.poses) || "";
    const isCutOff = state.link !== "open" || (state.mode === "live" && (!state.daemon || !state.daemon.connected));
    document.body.classList.toggle("cut-off", isCutOff);
    document.body.classList.toggle("stale", isCutOff || state.age > STALE_S);
}

/** The fault and its remedy, or null. [state, text, code, text] */
function trouble(state) {
    const { link, retry, daemon, status, result, mode, map, age } = state;
    if (link === "lost")
        return ["lost", `ndt-web does not answer. ${aged(result, age)}Trying again${retry > 1 ? ` in ${Math.ceil(retry)} s` : ""}.`];
    if (link !== "open" || !mode) return null;
    if (mode === "live" && daemon && !daemon.connected)
        return [
            "lost", `No daemon at ${daemon.poses || daemon.control}. ${aged(result, age)}Start it with`, "ndtd -c ndtd.yaml",
            "; trying again."
        ];
    if (mode === "live" && status) {
        if (status.state === "no_map")
            return ["warn", "The daemon has no map. Give it one with", "ndt-ctl map FILE", "or start it with --map."];
        if (status.state === "no_guess") return withoutPose(state);
        if (status.state === "localising" && !result)
            return ["info", "The daemon is ready and waits for scans at its socket", "scans.ipc", "."];
    }
    if (state.viewError) return ["warn", `The map cannot be drawn: ${state.viewError}. All values are shown.`];
    if (map && map.state === "failed")
        return ["warn", `The map cannot be shown: ${map.error}. Name its path on this machine with`, "ndt-web --map PATH", "."];
    if (state.lacksPoints) {
        const isOlder = status && !status.points;
        return ["info", `Scans are not shown: ${isOlder ? "this daemon sends no points, it is older than ndt-web."
            : "no points come from the daemon. Name its socket with"}`, isOlder ? undefined : "ndt-web --points", "."];
    }
    if (map && map.state === "loading") return ["info", `Reading the map to show it: ${Math.floor(map.percent || 0)} %.`];
    return null;
}

/** With `initial_pose.mode: given` the daemon waits for a pose, which its results say; else it searches. */
function withoutPose({ control, result }) {
    const waits = result && result.outcome === "no_guess";
    const what = waits ? "The daemon waits for a first pose" : "The daemon has no pose yet: it searches the map for the first scans";
    return control ? ["info", waits ? `${what}: press P and set it on the map, or search for it with L.` : `${what}, or press P and set one.`]
                   : ["info", waits ? `${what}: give it one with` : `${what}, or takes one from`, "ndt-ctl pose", "."];
}

const aged = (result, age) => (result && age > 1 ? `What you see is ${duration(age)} old. ` : "");

let bannerText = "";

export function drawBanner(state) {
    const found = trouble(state);
    const box = $("banner");
    const key = found ? found.join("|") : "";
    if (key === bannerText) return;
    bannerText = key;
    box.hidden = !found;
    $("cards").style.marginTop = "";
    if (!found) return;
    const [level, before, code, after] = found;
    box.dataset.state = level;
    box.querySelector("use").setAttribute("href", level === "lost" ? "#i-away" : level === "warn" ? "#i-warning" : "#i-info");
    $("banner-text")
        .replaceChildren(before, ...(code ? [" ", h("code", {}, code), after.startsWith(";") || after === "." ? after : ` ${after}`] : []));
    $("cards").style.marginTop = `${box.offsetHeight + 8}px`; // below it
}

/* The pane Scan */

const degrees = (rad) => rad * 180 / Math.PI;

/** Rows of standard deviations */
function sigmas(covariance) {
    if (!covariance) return [];
    const [x, y, z, , , yaw] = [0, 7, 14, 21, 28, 35].map((at) => Math.sqrt(Math.max(0, covariance[at])));
    const [scale, unit] = Math.max(x, y, z) < 0.1 ? [1e3, "mm"] : [1, "m"];
    return [
        ["σ of x, y, z", withUnit([x, y, z].map((value) => short(value * scale)).join(", "), unit)],
        ["σ of yaw", withUnit(short(degrees(yaw)), "°")]
    ];
}

/** Direction of a weak axis: its largest part, and which way it points on the map. */
function weakAxis(axis) {
    const most = axis.map(Math.abs).indexOf(Math.max(...axis.map(Math.abs)));
    const inPlane = Math.hypot(axis[0], axis[1]);
    return inPlane > 0.8 ? `horizontal, ${fixed(degrees(Math.atan2(axis[1], axis[0])), 0)}°` : `about ${AXES[most]}`;
}

function marked(text, [symbol, tone]) {
    const mark = h("span", { class: "mark" }, symbol, text);
    mark.style.setProperty("--badge", `var(--${tone})`);
    return mark;
}

const percent = (value) => (Number.isFinite(value) && value >= 0 ? withUnit(fixed(100 * value, 0), "%") : null);

function values(result, error) {
    const { pose } = result;
    return [
        ["Outcome", marked(spaced(result.outcome), outcomeMark(result.outcome))],
        ["Reason", result.reason || null],
        ["State", result.state ? marked(result.state, stateMark(result.state)) : null],
        ["Position x, y, z", pose ? withUnit(`${fixed(pose[0])}, ${fixed(pose[1])}, ${fixed(pose[2])}`, "m") : "unknown"],
        ["Yaw", pose ? withUnit(fixed(yawDeg(pose), 2), "°") : null],
        ...sigmas(result.covariance),
        ["Error against the truth", error ? withUnit(`${fixed(error[0], 3)} m, ${fixed(error[1], 3)}`, "°") : null],
        ["Confidence", fixed(result.confidence, 4)],
        ["Margin to the next best", Number.isFinite(result.margin) ? fixed(result.margin, 4) : null],
        ["Innovation", Number.isFinite(result.innovation) ? withUnit(fixed(result.innovation, 2), "σ") : null],
        ["NVTL", fixed(result.nvtl, 3) + (Number.isFinite(result.nvtl_normalized) ? ` (${fixed(100 * result.nvtl_normalized, 0)} %)` : "")],
        ["Transform probability", fixed(result.transform_probability, 3)],
        ["Matched points", percent(result.match_ratio)],
        ["Coverage of the azimuth", percent(result.coverage)],
        [
            "Speed",
            result.twist
                ? withUnit(`${fixed(Math.hypot(...result.twist.slice(0, 3)), 2)} m/s, ${fixed(degrees(result.twist[5]), 1)}`, "°/s")
                : null
        ],
        ["Weak axes", result.weak_axes && result.weak_axes.length ? result.weak_axes.map(weakAxis).join("; ") : "none"],
        ["Iterations, evaluations", `${result.iterations}, ${result.evaluations}`],
        ["Hypotheses", Number.isFinite(result.hypotheses) ? String(result.hypotheses) : null],
        ["Queue, dropped so far", withUnit(`${result.queue_depth}, ${count(result.drop_counter)}`, "scans")],
    ];
}

function drawStages(result) {
    const times = STAGES.map(([key]) => Math.max(0, result[key] || 0));
    const total = times.reduce((sum, t) => sum + t, 0);
    const bar = h("div", { class: "stages", role: "img", "aria-label": "Time by stage" });
    const names = h("ul", { class: "stage-names" });
    STAGES.forEach(([, name], k) => {
        const part = h("i"), swatch = h("i", { class: "swatch dot" });
        part.style.flexGrow = String(times[k] / (total || 1));
        part.style.background = swatch.style.background = `var(--stage-${name})`;
        if (times[k] > 0) bar.append(part);
        names.append(h("li", {}, swatch, name, h("b", {}, withUnit(short(times[k] * 1e-3), "ms"))));
    });
    names.append(h("li", {}, h("strong", {}, "total"), h("b", {}, withUnit(short(total * 1e-3), "ms"))));
    $("scan-stages").replaceChildren(bar, names);
}

const cells = (row, tag = "td") => h("tr", {}, ...row.map((cell) => h(tag, tag === "th" ? { scope: "col" } : {}, ...[].concat(cell))));

function drawIterations(rows, isReplay) {
    const table = $("iterations");
    if (!rows || !rows.length) {
        return table.replaceChildren(
            h("tbody", {},
              h("tr", {},
                h("td", { class: "none" },
                  isReplay ? "None is recorded for this scan."
                           : "Known for scans whose points are received: is the daemon's socket “points” reachable?"))));
    }
    rows = rows.map((row) => ({...row, time_us: (row.eval_us || 0) + (row.solve_us || 0) }));
    const columns = ITERATION_COLUMNS.filter(([key]) => rows.some((row) => Number.isFinite(row[key])));
    const head = cells(columns.map(([, name, unit]) => (unit ? [name, h("span", { class: "unit" }, unit)] : [name])), "th");
    const body = rows.map(
        (row) => cells(
            columns.map(([key, , , digits, scale = 1]) => [digits === null ? short(row[key] * scale) : fixed(row[key] * scale, digits)])));
    table.replaceChildren(h("thead", {}, head), h("tbody", {}, ...body));
}

function drawCandidates(meta, result, lookAt) {
    const table = $("candidates");
    const list = (meta && meta.candidates) || [];
    if (!list.length)
        return table.replaceChildren(
            h("tbody", {}, h("tr", {}, h("td", { class: "none" }, "One guess was aligned: no others for this scan."))));
    const head = cells(
        [
            ["kind"], ["x, y", h("span", { class: "unit" }, "m")], ["yaw", h("span", { class: "unit" }, "°")],
            ["away", h("span", { class: "unit" }, "m")], ["confidence"]
        ],
        "th");
    const body = list.map((item) => {
        const { pose } = item;
        const away = result.pose ? poseDifference(result.pose, pose)[0] : NaN;
        const place =
            h("button", { type: "button", class: "quiet small", title: "Look there", onclick: () => lookAt(pose) },
              `${fixed(pose[0], 1)}, ${fixed(pose[1], 1)}`);
        return cells([[item.kind], [place], [fixed(yawDeg(pose), 1)], [fixed(away, 1)], [fixed(item.confidence, 3)]]);
    });
    table.replaceChildren(h("thead", {}, head), h("tbody", {}, ...body));
}

/** `scan`: {result, meta, iterations, pinned, error, isReplay, empty} */
export function drawScan(scan, lookAt) {
    const { result, meta } = scan;
    $("scan-newest").hidden = !scan.pinned;
    $("scan-body").hidden = !result;
    $("scan-empty").hidden = Boolean(result);
    if (!result) return setText($("scan-empty"), scan.empty);
    const gnss = meta && meta.gnss;
    const rows = values(result, scan.error);
    if (gnss && result.pose)
        rows.push([
            "GNSS, away horizontally",
            withUnit(fixed(Math.hypot(gnss.position[0] - result.pose[0], gnss.position[1] - result.pose[1]), 2), "m")
        ]);
    fillValues($("scan-values"), rows);
    drawStages(result);
    drawIterations(scan.iterations, scan.isReplay);
    drawCandidates(meta, result, lookAt);
}

/* The pane Daemon */

const yes = (value) => (value === undefined ? null : value ? "yes" : "no");
const counted = (value) => (value === undefined || value === null ? null : count(value));
const ms = (value) => (Number.isFinite(value) ? withUnit(short(value), "ms") : null);
const size = (value) => (Number.isFinite(value) ? bytes(value) : null);
const hex = (value) => (/^\d+$/.test(value ?? "") ? BigInt(value).toString(16).padStart(16, "0") : null);

function groups(state) {
    const s = state.status, { daemon, map, stats } = state;
    const m = s.map || {}, q = s.queue || {}, r = s.receiver || {}, p = s.publisher || {}, c = s.recorder || {}, l = s.latency_ms || {},
          t = s.route || {};
    const pts = s.points || {}, loc = s.localisation || {};
    const memory =
        s.memory && typeof s.memory === "object" ? s.memory.resident_bytes ?? s.memory.resident : s.resident_bytes ?? s.memory_bytes;
    return [
        [
            "Daemon",
            [
                ["Version", s.version], ["Up for", duration(s.uptime_s)], ["State", spaced(s.state)], ["Pose", loc.state],
                ["Changes of the state", counted(loc.changes)],
                ["Last change", loc.from ? `${loc.from} → ${loc.state} at scan ${loc.since_seq}: ${loc.reason}` : null],
                ["Resident memory", size(memory)], ["Configuration", hex(s.config_hash)], ["Restart needed for", s.needs_restart || null],
                ["Poses", daemon && daemon.poses], ["Control", daemon && daemon.control]
            ]
        ],
        [
            "Map",
            [
                ["Path", m.path || null], ["Points", counted(m.points)],
                ["Tiles loaded, known", m.tiles_known > 1 ? `${m.tiles_loaded}, ${m.tiles_known}` : null],
                ["Loaded in", ms(m.last_load_ms)], ["Error", m.error || null], ["Id", hex(s.map_id)]
            ]
        ],
        [
            "Backend",
            [
                ["Backend", s.backend],
                ["Route", t.backend ? [t.backend, t.pipeline, t.threads ? `${t.threads} thread${t.threads === 1 ? "" : "s"}` : ""].filter(Boolean).join(", ") : null],
                ["Chosen", t.source ? `${t.source}${t.reason ? `: ${t.reason}` : ""}` : null],
                ["Meets the budget", t.budget_ms ? `${yes(t.meets_budget)}, ${t.budget_ms} ms` : null]
            ]
        ],
        [
            "Latency, of the last scans",
            [["Scans", counted(l.scans)], ["Median", ms(l.p50)], ["90 %", ms(l.p90)], ["99 %", ms(l.p99)], ["Longest", ms(l.max)]]
        ],
        [
            "Queue and input",
            [
                ["Waiting", `${q.waiting ?? "–"} of ${q.depth ?? "–"} scans`], ["Dropped", counted(q.dropped)],
                ["Frames received", counted(r.frames)], ["Bytes received", size(r.bytes)],
                ["Frames refused", counted(s.frames_refused ?? r.bad)], ["Results lost in sending", counted(p.lost)]
            ]
        ],
        [
            "Recorder",
            [
                ["State", c.state], ["File", c.file || null],
                ["Frames, missing", c.file ? `${count(c.frames)}, ${count(c.missing)}` : null], ["Size", c.file ? size(c.bytes) : null],
                ["Dropped", c.dropped ? count(c.dropped) : null], ["Error", c.error || null]
            ]
        ],
        [
            "Subscribers",
            [["Of poses", counted(p.subscribers)], ["Of points", counted(pts.subscribers)], ["Published", counted(p.published)]]
        ],
        [
            "This page",
            [
                ["Version of ndt-web", state.version],
                ["Map shown", map && map.points ? `${count(map.points)} ${map.kind || "points"}` : null],
                ["Drawing", stats ? `${count(stats.points)} points in ${stats.nodes} nodes` : null],
                ["Frame", stats && stats.frame_ms ? ms(stats.frame_ms) : null], ["Map received", stats ? size(stats.bytes) : null],
                ["Scans received, skipped", `${count(state.feed.scans)}, ${count(state.feed.scans_skipped)}`]
            ]
        ],
    ];
}

/** The replay's own description. */
function replayGroups(state) {
    const r = state.replay, e = r.translation_error_m, a = r.align_ms, stages = r.stages_us || {};
    return [
        ["Replay", [["Bag", r.bag], ["Map", r.map], ["Scans", counted(r.scans)], ["Not trusted", counted(r.untrusted)], ["Over 1 m off", counted(r.off)],
            ["Duration of the drive", duration(Math.round((r.end_ns - r.begin_ns) * 1e-9))], ["Replayed in", Number.isFinite(r.replay_s) ? withUnit(fixed(r.replay_s, 1), "s") : null],
            ["Settings", r.settings && r.settings.overrides && r.settings.overrides.length ? r.settings.overrides.join(", ") : null], ["Version", r.version]]],
        ["Errors against the truth", e ? [["Position, median", withUnit(fixed(e.median, 3), "m")], ["95 %", withUnit(fixed(e.p95, 3), "m")], ["Largest", withUnit(fixed(e.max, 3), "m")],
            ["Rotation, median", r.rotation_error_deg ? withUnit(fixed(r.rotation_error_deg.median, 3), "°") : null],
            ["Largest", r.rotation_error_deg ? withUnit(fixed(r.rotation_error_deg.max, 3), "°") : null]] : []],
        ["Alignment", a ? [["Median", ms(a.p50)], ["95 %", ms(a.p95)], ["99 %", ms(a.p99)], ["Longest", ms(a.max)], ["Iterations, mean", r.iterations && fixed(r.iterations.mean, 1)]] : []],
        ["Stages, mean", Object.entries(stages).map(([name, v]) => [name, v && Number.isFinite(v.mean) ? ms(v.mean * 1e-3) : null])],
        ["Machine and map", [["Backend", r.backend_description || r.backend], ["Peak memory", size(r.peak_memory_bytes)], ["Map points", counted(r.map_points)], ["Map id", r.map_id], ["Trajectory hash", r.trajectory_hash]]],
    ];
}

let groupNames = "";

export function drawDaemon(state) {
    const known = state.mode === "replay" ? state.replay : state.status;
    $("daemon-empty").hidden = Boolean(known);
    $("daemon-body").hidden = !known;
    if (!known)
        return setText(
            $("daemon-empty"),
            "No daemon has answered yet. Start one with ndtd -c ndtd.yaml, or name its sockets with --poses and --control.");
    const list = (state.mode === "replay" ? replayGroups(state) : groups(state))
                     .filter(([, rows]) => rows.some((row) => row[1] !== null && row[1] !== undefined));
    const body = $("daemon-body");
    const names = list.map(([name]) => name).join();
    if (names !== groupNames) {
        groupNames = names;
        body.replaceChildren(...list.map(([name]) => h("section", { class: "group" }, h("h3", {}, name), h("dl", { class: "values" }))));
    }
    list.forEach(([, rows], k) => fillValues(body.children[k].lastChild, rows));
    return undefined;
}
