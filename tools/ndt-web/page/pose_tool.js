/** Requests to the daemon: initial pose by mouse or numbers, search, start and stop, recording. */

import { $, duration, fixed, h, icon, poseOf, setText, yawDeg } from "./dom.js";

const TOAST_S = 7;
const SEARCH_POLL_MS = 300;
const SHORTEST_DRAG_PX = 8;
const GROUND_RANGE_M = 15;
const STORE = "ndt-web.pose";

/** A line where the user looks; errors stay until they are closed. */
export function toast(text, level = "info") {
    const box =
        h("div", { class: "card toast", "data-level": level, role: level === "error" ? "alert" : "status" }, icon(level), h("p", {}, text));
    box.append(h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: () => box.remove() }, "✕"));
    while ($("toasts").children.length >= 4) $("toasts").firstChild.remove();
    $("toasts").append(box);
    if (level === "info") setTimeout(() => box.remove(), TOAST_S * 1000);
}

/** Height of the base above the ground by a scan in the base frame: minus the lowest tenth of the points close by. */
export function heightAboveGround(scan) {
    const heights = [];
    const { points, scale } = scan;
    for (let at = 0; at < points.length; at += 4) {
        const distance = Math.hypot(points[at], points[at + 1]) * scale;
        if (distance > 2 && distance < GROUND_RANGE_M) heights.push(points[at + 2] * scale);
    }
    if (heights.length < 50) return null;
    heights.sort((a, b) => a - b);
    return Math.max(0, -heights[Math.floor(heights.length * 0.1)]);
}

/** Diagonal covariance of position and yaw; roll and pitch a third of yaw, as a vehicle stands. */
function covarianceOf(sigma_m, sigmaYaw_deg) {
    const covariance = new Array(36).fill(0);
    const yaw = sigmaYaw_deg * Math.PI / 180;
    [sigma_m, sigma_m, sigma_m, Math.min(yaw / 3, 0.1), Math.min(yaw / 3, 0.1), yaw].forEach((s, k) => {
        covariance[7 * k] = s * s;
    });
    return covariance;
}

function stored() {
    try {
        return JSON.parse(localStorage.getItem(STORE)) || {};
    } catch {
        return {};
    }
}

function store(values) {
    try {
        localStorage.setItem(STORE, JSON.stringify(values));
    } catch { /* storage is off: it lasts as long as the page */
    }
}

export class PoseTool {
    /** `state` is that of main.js: result, status, control, gnss; onArm(): the map is used for a pose from now on. */
    constructor(view, feed, state, onArm) {
        Object.assign(this, { view, feed, state, onArm });
        this.settings = { sigma: 0.5, sigma_yaw: 15, ...stored() };
        this.armed = false;
        this.searchShown = null;
        this.#overlay();
        this.#buttons();
        this.#forms();
    }

    /** Height for poses set on the map: the user's, else that of the newest scan, else 0. */
    get height() { return this.settings.height ?? this.scanHeight ?? 0; }

    tookScan(scan) {
        if (this.scanHeight === undefined || this.scanHeight === null) this.scanHeight = heightAboveGround(scan);
    }

    /** Whether requests are possible at this moment; says why where they never are. */
    #mayAsk() {
        if (!this.state.control) this.hint(true);
        return this.state.control && !this.#isAway;
    }

    get #isAway() {
        return this.state.link !== "open" || !this.state.daemon || !this.state.daemon.connected;
    }

    /* The drag on the map */

    arm(on) {
        if (on === this.armed || (on && !this.#mayAsk())) return;
        if (on) this.onArm();
        this.armed = on;
        this.from = null;
        $("pose-overlay").hidden = !on;
        $("control-pose").setAttribute("aria-pressed", String(on));
        this.view.showArrow(null, null);
        this.view.hold(on);
        this.#prompt(on ? "Press at the place of the vehicle, drag for its heading, release. Escape cancels." : "");
    }

    #prompt(text) {
        if (this.prompt) this.prompt.remove();
        this.prompt = text ? h("p", { class: "hint", id: "pose-prompt", role: "status" }, text, " ",
                               h("button", {
                                   type: "button",
                                   class: "small",
                                   onclick: () => {
                                       this.arm(false);
                                       this.openPose();
                                   }
                               },
                                 "By numbers"))
                           : null;
        if (this.prompt) $("controls").append(this.prompt);
    }

    #point(event) {
        const box = $("view").getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    }

    #overlay() {
        const overlay = $("pose-overlay");
        overlay.addEventListener("pointerdown", (event) => {
            if (event.button !== 0) return;
            event.preventDefault();
            const [x, y] = this.#point(event);
            const place = this.view.pick(x, y);
            if (!place) {
                toast("There is no map at that place: press on the map.", "warning");
                return;
            }
            overlay.setPointerCapture(event.pointerId);
            this.from = { place, x, y };
            this.view.showArrow(place, place);
        });
        overlay.addEventListener("pointermove", (event) => {
            if (!this.from) return;
            this.to = this.#heading(event);
            if (this.to) this.view.showArrow(this.from.place, this.to);
        });
        overlay.addEventListener("pointerup", (event) => {
            if (!this.from) return;
            const [x, y] = this.#point(event);
            if (Math.hypot(x - this.from.x, y - this.from.y) < SHORTEST_DRAG_PX) {
                this.from = null;
                this.view.showArrow(null, null);
                toast("Drag from the place towards where the vehicle looks.", "warning");
                return;
            }
            const to = this.#heading(event) || this.to;
            const { place } = this.from;
            this.arm(false);
            if (to) this.send(place[0], place[1], place[2] + this.height, Math.atan2(to[1] - place[1], to[0] - place[0]) * 180 / Math.PI);
        });
        overlay.addEventListener("pointercancel", () => this.arm(false));
        overlay.addEventListener("wheel", (event) => event.preventDefault(), { passive: false });
    }

    /** Where the pointer is, at the height of the place: the ray through both is not known, a pick is near enough. */
    #heading(event) {
        const [x, y] = this.#point(event);
        const found = this.view.pick(x, y);
        return found ? [found[0], found[1], this.from.place[2]] : null;
    }

    async send(x, y, z, yaw) {
        const { sigma, sigma_yaw } = this.settings;
        const reply = await this.feed.request("initial_pose", { pose: poseOf(x, y, z, yaw), covariance: covarianceOf(sigma, sigma_yaw) });
        if (reply.ok)
            toast(
                `Initial pose: x ${fixed(x)} m, y ${fixed(y)} m, z ${fixed(z)} m, yaw ${fixed(yaw, 1)}°. It counts from the next scan on.`);
        else
            toast(`The initial pose is refused: ${reply.error}`, "error");
        return reply;
    }

    /* Buttons */

    hint(open) {
        const box = $("read-only-hint");
        box.hidden = !open;
        $("read-only").setAttribute("aria-expanded", String(open));
    }

    #buttons() {
        $("read-only").addEventListener("click", () => this.hint($("read-only-hint").hidden));
        $("control-pose").addEventListener("click", () => this.arm(!this.armed));
        $("control-localize").addEventListener("click", () => this.openLocalize());
        $("control-run").addEventListener("click", () => this.run());
        $("control-record").addEventListener("click", () => this.record());
        $("control-reload").addEventListener("click", () => this.tell("reload", {}, "The daemon has read its configuration again."));
        $("search-cancel").addEventListener("click", () => this.tell("cancel_search", {}, ""));
        $("search-close").addEventListener("click", () => {
            $("search-card").hidden = true;
            this.searchShown = this.searchId;
            this.view.setCandidates([]);
        });
        for (const button of document.querySelectorAll("[data-close]"))
            button.addEventListener("click", () => button.closest("dialog").close());
    }

    async tell(op, values, done) {
        const reply = await this.feed.request(op, values);
        if (!reply.ok)
            toast(`${op.replace("_", " ")}: ${reply.error}`, "error");
        else if (done)
            toast(done);
        return reply;
    }

    run() {
        if (this.state.status && this.state.status.state === "stopped")
            this.tell("start", {}, "Localisation goes on.");
        else
            $("stop-dialog").showModal();
    }

    record() {
        const recorder = (this.state.status && this.state.status.recorder) || {};
        if (recorder.state === "recording" || recorder.state === "starting") {
            this.tell("stop_recording", {}, `The recording ${recorder.file || ""} is complete.`);
            return;
        }
        const now = new Date(), two = (n) => String(n).padStart(2, "0");
        $("record-form").path.value = `drive-${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}-${two(now.getHours())}${
            two(now.getMinutes())}${two(now.getSeconds())}.bag`;
        setText($("record-error"), "");
        $("record-dialog").showModal();
    }

    openPose() {
        if (!this.#mayAsk()) return;
        const form = $("pose-form"), pose = this.state.result && this.state.result.pose;
        if (pose) this.#fill(form, pose);
        form.sigma.value = this.settings.sigma;
        form.sigma_yaw.value = this.settings.sigma_yaw;
        form.height.value = this.height.toFixed(2);
        setText($("pose-error"), "");
        $("pose-dialog").showModal();
    }

    #fill(form, pose) {
        ["x", "y", "z"].forEach((name, k) => {
            form[name].value = pose[k].toFixed(2);
        });
        if (form.yaw) form.yaw.value = yawDeg(pose).toFixed(1);
    }

    openLocalize() {
        if (!this.#mayAsk()) return;
        setText($("localize-error"), "");
        this.#where();
        $("localize-dialog").showModal();
    }

    #where() {
        const form = $("localize-form"), where = form.where.value, pose = this.state.result && this.state.result.pose;
        $("localize-near").hidden = where === "map";
        for (const label of form.querySelectorAll("[data-only]")) label.hidden = label.dataset.only !== where;
        const { gnss } = this.state;
        if (where === "gnss" && gnss) {
            this.#fill(form, [...gnss.position, 0, 0, 0, 1]);
            if (gnss.deviation) form.sigma.value = Math.max(...gnss.deviation).toFixed(1);
        } else if (where !== "map" && pose && form.x.value === "")
            this.#fill(form, pose);
    }

    #submit(id, error, action) {
        $(id).addEventListener("submit", async (event) => {
            event.preventDefault();
            setText($(error), "");
            const reply = await action(event.target);
            if (reply.ok)
                event.target.closest("dialog").close();
            else
                setText($(error), reply.error);
        });
    }

    #keepPoseSettings(form) {
        this.settings = { sigma: form.sigma.valueAsNumber, sigma_yaw: form.sigma_yaw.valueAsNumber };
        if (form.height.value !== this.height.toFixed(2) || this.settings.height !== undefined)
            this.settings.height = form.height.valueAsNumber;
        store(this.settings);
    }

    #forms() {
        this.#submit("pose-form", "pose-error", (form) => {
            this.#keepPoseSettings(form);
            return this.send(form.x.valueAsNumber, form.y.valueAsNumber, form.z.valueAsNumber, form.yaw.valueAsNumber);
        });
        $("pose-drag").addEventListener("click", () => {
            if (["sigma", "sigma_yaw", "height"].every((name) => $("pose-form")[name].reportValidity())) {
                this.#keepPoseSettings($("pose-form"));
                $("pose-dialog").close();
                this.arm(true);
            }
        });
        $("localize-form").addEventListener("change", (event) => {
            if (event.target.name === "where") this.#where();
        });
        this.#submit("localize-form", "localize-error", (form) => this.localize(form));
        this.#submit("record-form", "record-error", async (form) => {
            const reply = await this.feed.request("start_recording", { path: form.path.value });
            if (reply.ok) toast(`The daemon records into ${form.path.value}.`);
            return reply;
        });
        this.#submit("stop-form", "stop-error", () => this.feed.request("stop"));
    }

    /* The search */

    async localize(form) {
        const where = form.where.value, values = { apply: form.apply.checked };
        const [x, y, z] = ["x", "y", "z"].map((name) => form[name].valueAsNumber), sigma = form.sigma.valueAsNumber;
        if (where !== "map" && ![x, y, z, sigma].every(Number.isFinite)) return { ok: false, error: "x, y, z and σ are numbers" };
        if (where === "pose") {
            const yaw = form.yaw.valueAsNumber || 0;
            Object.assign(values, { pose: poseOf(x, y, z, yaw), covariance: covarianceOf(sigma, form.sigma_yaw.valueAsNumber || 180) });
        } else if (where === "gnss")
            Object.assign(values, { position: [x, y, z], deviation: [sigma, sigma, sigma] });
        const reply = await this.feed.request("localize", values);
        if (reply.ok) {
            this.searchShown = null;
            this.#poll(reply.search);
        }
        return reply;
    }

    async #poll(search) {
        if (this.polling) return;
        this.polling = true;
        for (;;) {
            if (search) this.showSearch(search, true);
            if (search && !search.running) break;
            await new Promise((resolve) => {
                setTimeout(resolve, SEARCH_POLL_MS);
            });
            const reply = await this.feed.request("search");
            if (!reply.ok) {
                toast(`The search: ${reply.error}`, "error");
                break;
            }
            search = reply.search;
        }
        this.polling = false;
    }

    /** `status` tells everyone that a search runs; who asked for it polls for more. */
    tookStatus(status) {
        const search = status && status.search;
        if (!search || !search.search_id) return;
        if (search.running && !this.polling) {
            if (this.state.control)
                this.#poll(search);
            else
                this.showSearch(search, true);
        } else if (!search.running && !this.state.control && !$("search-card").hidden && this.searchId === search.search_id)
            this.showSearch(search, false);
    }

    showSearch(search, open) {
        this.searchId = search.search_id;
        if (open && this.searchShown !== search.search_id) $("search-card").hidden = false;
        const { running, accepted } = search;
        $("search-progress").hidden = !running;
        $("search-progress").value = search.percent;
        $("search-cancel").hidden = !running || !this.state.control;
        $("search-close").hidden = running;
        const seconds = duration(search.elapsed_ms / 1000);
        setText(
            $("search-title"),
            running                      ? "Searching for the pose"
                : accepted === undefined ? "The search has ended"
                : accepted               ? "Pose found"
                                         : "No pose accepted");
        setText(
            $("search-text"),
            running ? `${search.percent} %, ${seconds}`
                : accepted ? `Confidence ${fixed(search.confidence, 3)}; ${
                                 search.applied ? "it is the pose of the estimator now"
                                                : "it is not applied"}. ${fixed(search.elapsed_ms / 1000, 1)} s.`
                           : `${search.reason ? `${search.reason}. ` : ""}${fixed(search.elapsed_ms / 1000, 1)} s.`);
        const list = running || !search.pose
            ? []
            : [{ pose: search.pose, confidence: search.confidence, best: true }, ...(search.alternatives || [])];
        $("search-candidates").replaceChildren(...list.map((item) => this.#candidate(item, search)));
        this.view.setCandidates(list.map(({ pose, confidence }) => ({ pose, confidence, kind: "search" })));
    }

    #candidate(item, search) {
        const { pose } = item;
        const look =
            h("button", { type: "button", class: "place", title: "Look there", onclick: () => this.view.lookAt(pose) },
              `x ${fixed(pose[0], 1)} m, y ${fixed(pose[1], 1)} m, ${fixed(yawDeg(pose), 0)}°`);
        const isUsed = item.best && search.applied;
        const use = this.state.control && !isUsed
            ? h("button", { type: "button", class: "small", onclick: () => this.send(pose[0], pose[1], pose[2], yawDeg(pose)) }, "Use")
            : null;
        return h("li", {}, look, h("span", { title: "Confidence" }, fixed(item.confidence, 3)), use);
    }

    /** Buttons as the daemon's state allows. */
    draw() {
        const { control, status, mode, allowControl } = this.state;
        $("control-buttons").hidden = !control;
        $("read-only").hidden = control || !mode;
        if (control)
            this.#drawButtons(status);
        else {
            this.#drawHint(mode, allowControl);
            if (this.armed) this.arm(false);
        }
    }

    #drawButtons(status) {
        const isAway = this.#isAway;
        for (const button of $("control-buttons").children) button.disabled = isAway;
        if (isAway && this.armed) this.arm(false);
        const stopped = status && status.state === "stopped", recorder = (status && status.recorder) || {};
        setText($("control-run-text"), stopped ? "Resume" : "Stop");
        $("control-run-icon").setAttribute("href", stopped ? "#i-play" : "#i-stopped");
        const isRecording = recorder.state === "recording" || recorder.state === "starting";
        setText($("control-record-text"), isRecording ? "Stop recording" : "Record");
        $("control-record").classList.toggle("recording", isRecording);
        $("control-record-icon").setAttribute("href", isRecording ? "#i-stopped" : "#i-record");
    }

    #drawHint(mode, allowControl) {
        const text = mode === "replay" ? "A replay is looked at only. Connect ndt-web to a running ndtd to set poses."
            : allowControl
            ? "Control is on, but this page has no token: open the address with #token=… that ndt-web prints when it starts."
            : "Nothing here changes the daemon. To set poses and send requests, start ndt-web with --allow-control and open the address that it prints.";
        setText($("read-only-hint"), text);
    }
}
