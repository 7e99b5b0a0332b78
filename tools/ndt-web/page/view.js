// The view: map, scan, trail, vehicle and what else belongs on the map, in WebGL2.
//
// A picture has two layers. The map is drawn into a texture, with eye-dome lighting, and only when the camera, the map
// or the colours change; scans and poses are drawn over a copy of it. Nothing changes: nothing is drawn.
//
// All positions given to the view are in the map frame [m]; poses are [x, y, z, qx, qy, qz, qw].

import { Camera, Controls } from "./camera.js";
import { Grid, headingOf, rgb, Sketch, Trail } from "./overlays.js";
import { Painter } from "./painter.js";
import { Tiles } from "./tiles.js";

const MOVING_MS = 160; // after the last move
const TARGET_MS = 65; // of a picture while the camera moves
const SLOW_POINTS = 300000; // a renderer that draws fewer in that time is a CPU
const SLOW_FOLLOW_MS = 500; // between the moves of a camera that follows, there
const SLOW_SETTLE_MS = 1500; // after the last of them
const BUDGET_MIN = 30000;
const BUDGET_FIRST = 400000; // while moving, until measured
const FAST_MS = 15; // pictures this fast follow the vehicle smoothly

/** Colours, as "#rrggbb". ramp: of heights, from low to high. All are told apart with any colour blindness. */
export const themes = {
    dark: {
        background: "#0d1117",
        ramp: ["#2b3566", "#2f4f85", "#316b92", "#38869a", "#4f9e9f", "#7cb6a8", "#b5cfbd"],
        plain: "#8fa3b5",
        shadow: "#05070b",
        scan: "#ff7a3d",
        good: "#56b4e9",
        fair: "#f0e442",
        bad: "#e2504c",
        unknown: "#9aa4ae",
        vehicle: "#ffffff",
        edge: "#0b0e13",
        covariance: "#ffd166",
        weak: "#ff5fa2",
        candidate: "#cc79a7",
        gnss: "#7ee787",
        arrow: "#ffd166",
        grid: "#8b98a8",
        gridOpacity: 0.5,
        axes: ["#e2504c", "#2fbf8f", "#4aa3ff"],
    },
    light: {
        background: "#f6f8fa",
        ramp: ["#b3cbde", "#98b9d1", "#7ba3c0", "#5b8bb0", "#43719b", "#355884", "#2b4068"],
        plain: "#6b7c8c",
        shadow: "#3c4a5a",
        scan: "#d9480f",
        good: "#0072b2",
        fair: "#b8860b",
        bad: "#b3201f",
        unknown: "#6e7781",
        vehicle: "#111820",
        edge: "#ffffff",
        covariance: "#9a6700",
        weak: "#bf2c78",
        candidate: "#8a3f8f",
        gnss: "#1a7f37",
        arrow: "#111820",
        grid: "#57606a",
        gridOpacity: 0.45,
        axes: ["#b3201f", "#007f5f", "#0057b8"],
    },
};

const COLOURINGS = ["height", "intensity", "plain"];
const lessMotion = matchMedia("(prefers-reduced-motion: reduce)");
const now = () => performance.now();

export class View {
    /** onStats(stats): at most four times per second while pictures are drawn; onMode(mode): the user left a mode;
     * onPicture(): a picture is drawn; url(name, id): where nodes are fetched; cacheBytes: of nodes on the GPU. Throws without
     * WebGL2. */
    constructor(canvas, { onStats, onMode, onPicture, url, cacheBytes } = {}) {
        this.canvas = canvas;
        this.onStats = onStats;
        this.onMode = onMode;
        this.onPicture = onPicture;
        this.camera = new Camera();
        this.tiles = new Tiles({ arrived: () => this.changeTiles(), url, cacheBytes });
        this.trail = new Trail();
        this.sketch = new Sketch();
        this.grid = new Grid();
        this.theme = { ...themes.dark };
        this.origin = [0, 0, 0];
        this.hasOrigin = false;
        this.colouring = "height";
        this.pointSize = 2;
        this.budget = 1.5e6;
        this.movingBudget = BUDGET_FIRST;
        this.candidates = [];
        this.measured = { frame_ms: 0, fps: 0, pictures: 0, times: [] };
        this.drawn = { nodes: 0, points: 0 };
        this.isSlow = false;
        this.layersStale = true; // they show another camera
        this.movingUntil = -Infinity;
        this.isFollowing = false;
        this.isSettled = true; // a picture of all points is drawn or due
        this.mapDirty = true;
        this.lastMap = -Infinity;
        this.gl = canvas.getContext("webgl2", { antialias: false, alpha: false, depth: true, powerPreference: "high-performance" });
        if (!this.gl) throw new Error("this browser has no WebGL2");
        this.controls = new Controls(canvas, this.camera, () => this.cameraMoved(), () => this.tiles.bulk);
        canvas.addEventListener("webglcontextlost", (event) => this.loseContext(event));
        canvas.addEventListener("webglcontextrestored", () => this.makeContext());
        this.makeContext();
        this.resize();
        if (globalThis.ResizeObserver) new ResizeObserver(() => this.resize()).observe(canvas);
    }

    // ---- the context

    loseContext(event) {
        event.preventDefault();
        this.isLost = true;
    }

    makeContext() {
        const gl = this.gl;
        this.isLost = false;
        this.fence = null;
        this.painter = new Painter(gl, this);
        for (const part of [this.tiles, this.trail, this.grid]) part.setContext(gl);
        this.changeMap();
    }

    // ---- what is shown

    /** The object of GET /api/map; it is used when its state is "ready". null: no map. */
    setMap(info) {
        if (info && info.state && info.state !== "ready") return;
        if (!this.tiles.setMap(info)) return;
        const first = !this.hasOrigin;
        this.setOrigin(info ? info.origin : this.origin, info !== null);
        if (info) {
            this.camera.setBounds(info.min, info.max);
            this.fitWhenReady = first && !this.pose;
        }
        this.changeMap();
    }

    /** Everything is drawn relative to the origin of the map; without one, to the first pose. */
    setOrigin(origin, isOfMap) {
        const shift = origin.map((value, k) => this.origin[k] - value);
        this.origin = [...origin];
        this.hasOrigin = isOfMap;
        this.camera.target = this.camera.target.map((value, k) => value + shift[k]);
        if (this.pose) this.camera.setVehicle(this.relative(this.pose), headingOf(this.pose));
        this.camera.update();
    }

    relative(position) {
        return [0, 1, 2].map((k) => position[k] - this.origin[k]);
    }

    /** points: Int16Array of x y z and unsigned intensity per point, base frame, times scale [m]; pose: T_map_base. */
    setScan({ seq, points, scale, pose }) {
        this.scan = { seq, points, scale, pose, count: points.length >> 2 };
        this.painter.uploadScan();
        if (seq !== this.groundSeq) this.measureGround(points, scale); // once per scan: it is smoothed
        this.groundSeq = seq;
        this.redraw();
    }

    clearScan() {
        this.scan = null;
        this.redraw();
    }

    /** Height of the ground below the base, of the points around it. */
    measureGround(points, scale) {
        const heights = [], step = 4 * Math.max(1, Math.floor(points.length / 4 / 2000));
        for (let i = 0; i + 2 < points.length; i += step) {
            const away = Math.hypot(points[i], points[i + 1]) * scale;
            if (away > 3 && away < 20) heights.push(points[i + 2] * scale);
        }
        if (heights.length < 20) return;
        heights.sort((a, b) => a - b);
        const below = heights[Math.floor(0.08 * heights.length)];
        this.below = this.below === undefined || Math.abs(below - this.below) > 1 ? below : this.below + 0.2 * (below - this.below);
    }

    /** Height of the ground near the vehicle, map frame; without a scan that of the base or of the map. */
    get ground() {
        if (this.pose) return this.pose[2] + (this.below || 0);
        return this.origin[2] + (this.tiles.heights ? this.tiles.heights[0] : 0);
    }

    /** The whole trail: a list of {pose, confidence (number, NaN or null), state}. */
    setTrail(items) {
        this.trail.set(items.filter((item) => item.pose));
        this.redraw();
    }

    appendTrail(item) {
        if (!item.pose) return;
        this.trail.append(item);
        this.redraw();
    }

    /** Where the vehicle is; covariance: 36 numbers or null; weak_axes: list of six numbers each. null: not known. */
    setPose(result) {
        if (!result || !result.pose) {
            this.pose = null;
            return this.redraw();
        }
        const first = !this.pose;
        const { pose, covariance = null, weak_axes = [] } = result;
        if (!this.hasOrigin && first) this.setOrigin(pose.slice(0, 3).map(Math.round), false);
        this.uncertainty = { covariance, weak_axes };
        if (first && this.camera.mode === "free" && !this.camera.vehicle) this.camera.setMode("follow");
        this.beginGlide(pose, first);
        this.pose = [...pose];
        if (!this.glide) this.placeVehicle(pose);
        this.redraw();
    }

    /** Between two results the vehicle glides, where pictures are cheap. */
    beginGlide(pose, first) {
        const from = this.shownPose, time = now();
        const lasts = Math.min(120, time - (this.poseAt || 0));
        this.poseAt = time;
        const far = !from || Math.hypot(pose[0] - from[0], pose[1] - from[1]) > 5;
        const fast = this.measured.frame_ms > 0 && this.measured.frame_ms < FAST_MS && !lessMotion.matches;
        this.glide = first || far || !fast ? null : { from: [...from], to: [...pose], begin: time, lasts };
    }

    placeVehicle(pose) {
        this.shownPose = [...pose];
        if (this.lags(pose)) return;
        const before = this.camera.version;
        this.camera.setVehicle(this.relative(pose), headingOf(pose));
        if (this.camera.version !== before) this.cameraMoved(true);
    }

    /** Where drawing the map is expensive, a camera that follows is moved twice per second, or when it must be. */
    lags(pose) {
        const camera = this.camera, time = now();
        if (this.isSlow && camera.pinned && camera.vehicle && time - (this.followedAt || 0) < SLOW_FOLLOW_MS) {
            const position = this.relative(pose);
            if (Math.hypot(position[0] - camera.target[0], position[1] - camera.target[1]) < 0.12 * camera.range) return true;
        }
        this.followedAt = time;
        return false;
    }

    advanceGlide(time) {
        if (!this.glide) return;
        const { from, to, begin, lasts } = this.glide;
        const t = Math.min(1, (time - begin) / lasts);
        const sign = from[3] * to[3] + from[4] * to[4] + from[5] * to[5] + from[6] * to[6] < 0 ? -1 : 1;
        const pose = to.map((value, k) => (1 - t) * from[k] * (k > 2 ? sign : 1) + t * value);
        const length = Math.hypot(pose[3], pose[4], pose[5], pose[6]) || 1;
        for (let k = 3; k < 7; k++) pose[k] /= length;
        if (t >= 1) this.glide = null;
        this.placeVehicle(pose);
        if (this.glide) this.redraw();
    }

    /** A list of {pose, confidence, kind}. */
    setCandidates(list) {
        this.candidates = (list || []).filter((item) => item.pose);
        this.redraw();
    }

    /** {position, deviation} or null. */
    setGnss(fix) {
        this.fix = fix;
        this.redraw();
    }

    /** "height", "intensity" (of a map that has it) or "plain". */
    setColouring(name) {
        if (!COLOURINGS.includes(name)) return;
        this.colouring = name;
        this.changeMap();
    }

    setPointBudget(count) {
        this.budget = Math.max(BUDGET_MIN, count);
        this.movingBudget = Math.min(this.movingBudget, this.budget);
        this.changeMap();
    }

    /** Least size of a point [CSS pixels]; larger where points are far apart. */
    setPointSize(pixels) {
        this.pointSize = Math.min(Math.max(pixels, 0.5), 12);
        this.changeMap();
    }

    setMode(mode) {
        this.fitWhenReady = false;
        if (!["follow", "top", "free"].includes(mode)) return;
        this.camera.setMode(mode);
        this.cameraMoved();
    }

    get mode() {
        return this.camera.mode;
    }

    /** "dark", "light", or colours that replace those of the current theme. */
    setTheme(theme) {
        this.theme = typeof theme === "string" ? { ...themes[theme] } : { ...this.theme, ...theme };
        this.painter.uploadRamp();
        this.trail.recolour();
        this.changeMap();
    }

    /** An arrow from a position towards another one, map frame; without `to` it is removed. */
    showArrow(from, to) {
        this.arrow = from && to ? { from: [...from], to: [...to] } : null;
        this.redraw();
    }

    /** A line between two positions, map frame; without `to` it is removed. */
    showRuler(from, to) {
        this.ruler = from && to ? { from: [...from], to: [...to] } : null;
        this.redraw();
    }

    /** The camera stands still while something is pointed at: a vehicle that is followed would move the map below the pointer. */
    hold(on) {
        if (on && this.pose && this.camera.pinned) {
            this.modeBefore = this.mode;
            this.lookAt(this.pose);
        } else if (!on && this.modeBefore) {
            this.setMode(this.modeBefore);
            this.modeBefore = null;
        }
    }

    /** Looks at a pose or position, and leaves the vehicle. */
    lookAt(pose) {
        this.camera.lookAt(this.relative(pose));
        this.cameraMoved();
    }

    fit() {
        this.fitWhenReady = false;
        this.camera.fit(this.tiles.bulk);
        this.cameraMoved();
    }

    /** The whole picture follows the size of the canvas on the page and the density of the screen. */
    resize() {
        const ratio = Math.min(globalThis.devicePixelRatio || 1, 2);
        const width = Math.max(1, this.canvas.clientWidth), height = Math.max(1, this.canvas.clientHeight);
        this.ratio = ratio;
        const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
        if (this.canvas.width === w && this.canvas.height === h && this.camera.width === width) return;
        this.canvas.width = w;
        this.canvas.height = h;
        this.camera.resize(width, height);
        this.changeMap();
    }

    /** The place under a pixel of the canvas [CSS pixels]: a point of the map, else a place on the ground; map frame. null:
     * the sky. */
    pick(x, y) {
        if (!this.isLost && (this.mapDirty || this.layersStale)) this.drawLayers(this.plan);
        const found = this.isLost || this.drawn.points === 0 ? null : this.painter.pickPoint(x, y);
        const place = found || this.camera.ground(x, y, this.ground - this.origin[2]);
        return place ? place.map((value, k) => value + this.origin[k]) : null;
    }

    /** The pixel [CSS pixels] of a position, map frame; null behind the eye. */
    project(position) {
        return this.camera.project(this.relative(position));
    }

    /** Where the ray through a pixel [CSS pixels] meets the plane of a height [m], map frame; null: the sky. */
    placeAt(x, y, height) {
        const place = this.camera.ground(x, y, height - this.origin[2]);
        return place ? place.map((value, k) => value + this.origin[k]) : null;
    }

    get stats() {
        const { frame_ms, fps } = this.measured, { nodes, points } = this.drawn;
        const { received, bytes, requests, loading, firstPoints_ms } = this.tiles;
        return {
            fps, frame_ms, nodes, points, bytes: received, gpu_bytes: bytes, requests, loading,
            first_points_ms: firstPoints_ms, moving_budget: this.movingBudget, pictures: this.measured.pictures,
            complete: this.tiles.isComplete && this.isSettled && !this.mapDirty && !this.fence,
        };
    }

    // ---- when pictures are drawn

    /** Whether the camera moves, or is about to. */
    get isMoving() {
        return now() < this.movingUntil;
    }

    /** Points and time of the next picture of the map; is_plain: without layers and light. */
    get plan() {
        if (!this.isMoving) return { budget: this.budget, target_ms: Infinity };
        if (this.isSlow && this.isFollowing) return { budget: 2 * this.movingBudget, target_ms: 2 * TARGET_MS };
        return { budget: this.movingBudget, target_ms: TARGET_MS, is_plain: this.isSlow };
    }

    cameraMoved(byVehicle = false) {
        const lasts = byVehicle && this.isSlow ? SLOW_SETTLE_MS : MOVING_MS;
        this.isFollowing = byVehicle;
        this.movingUntil = now() + lasts;
        this.mapDirty = true;
        if (this.onMode && this.toldMode !== this.camera.mode) this.onMode((this.toldMode = this.camera.mode));
        this.redraw();
        clearTimeout(this.settleTimer);
        this.isSettled = false;
        this.settleTimer = setTimeout(() => {
            this.isSettled = true;
            this.changeMap();
        }, lasts + 20);
    }

    changeMap() {
        this.mapDirty = true;
        this.redraw();
    }

    /** Nodes arrive in bursts: a slow renderer draws several at once. */
    changeTiles() {
        if (this.fitWhenReady && this.tiles.bulk) this.fit();
        this.selectNodes(); // what is missing now is asked for at once
        const pause = Math.max(60, 3 * this.measured.frame_ms) - (now() - this.lastMap);
        if (pause <= 0 || this.tiles.isComplete) return this.changeMap();
        if (!this.tilesTimer)
            this.tilesTimer = setTimeout(() => {
                this.tilesTimer = 0;
                this.changeMap();
            }, pause);
    }

    redraw() {
        if (this.scheduled) return;
        this.scheduled = true;
        requestAnimationFrame((time) => {
            this.scheduled = false;
            this.paint(time);
        });
    }

    paint() {
        if (this.isLost || this.gl.isContextLost()) return;
        if (this.fence) return void (this.again = true); // the last picture is not finished
        const begin = now();
        this.advanceGlide(begin);
        const plan = this.plan, withMap = this.mapDirty || plan.is_plain;
        if (plan.is_plain) {
            this.painter.drawPlainMap(this.chooseNodes(plan));
            this.layersStale = true;
        } else {
            if (withMap || this.layersStale) this.drawLayers(plan);
            this.painter.compose();
        }
        this.sketchItems();
        this.painter.drawItems();
        if (this.onPicture) this.onPicture();
        this.fence = this.gl.fenceSync(this.gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
        this.gl.flush();
        this.watchFence(begin, withMap ? plan : null);
    }

    /** Measures how long a picture takes, whatever renders it. */
    watchFence(begin, plan) {
        const gl = this.gl, fence = this.fence;
        const look = () => {
            if (this.fence !== fence || gl.isContextLost()) return;
            const state = gl.clientWaitSync(fence, 0, 0);
            if (state === gl.TIMEOUT_EXPIRED && now() - begin < 5000) return void setTimeout(look, 1);
            gl.deleteSync(fence);
            this.fence = null;
            this.finish(now() - begin, plan);
        };
        setTimeout(look, 0);
    }

    finish(took, plan) {
        const measured = this.measured, time = now();
        measured.pictures++;
        if (plan) measured.frame_ms = took;
        measured.times = measured.times.filter((other) => time - other < 1000);
        measured.times.push(time);
        const span = time - measured.times[0];
        measured.fps = span > 100 ? ((measured.times.length - 1) * 1000) / span : 0;
        if (plan) this.adapt(took, plan);
        if (this.onStats && time - (this.toldStats || 0) > 250) {
            this.toldStats = time;
            this.onStats(this.stats);
        }
        if (this.again) {
            this.again = false;
            this.redraw();
        }
    }

    /** As many points as can be drawn while the camera moves. */
    adapt(took, { budget, target_ms }) {
        const { points } = this.drawn;
        if (target_ms === Infinity) {
            if (points > 100000 && (took * SLOW_POINTS) / points > 3 * TARGET_MS) this.isSlow = true;
            return;
        }
        if (took > target_ms || points > 0.6 * budget) {
            const factor = Math.min(Math.max(target_ms / took, 0.6), 1.25);
            this.movingBudget = Math.min(Math.max(factor * this.movingBudget, BUDGET_MIN), this.budget);
        }
        if (took > target_ms && this.movingBudget < SLOW_POINTS) this.isSlow = true;
        else if (took < 0.4 * target_ms && this.movingBudget > 1.5 * SLOW_POINTS) this.isSlow = false;
    }

    // ---- what is drawn

    selectNodes({ budget } = this.plan) {
        return this.tiles.select(this.camera, budget, Math.min(this.ratio, 1.5));
    }

    chooseNodes(plan) {
        const chosen = this.selectNodes(plan);
        this.mapDirty = false;
        this.lastMap = now();
        this.drawn = { nodes: chosen.length, points: this.tiles.points };
        return chosen;
    }

    drawLayers(plan) {
        this.painter.drawMap(this.chooseNodes(plan));
        this.layersStale = false;
    }

    /** Builds the items of this picture. */
    sketchItems() {
        const { sketch, theme, camera } = this, pixel_m = camera.pixel_m;
        sketch.begin(camera.eye.map((value, k) => value + this.origin[k]));
        for (const { pose, confidence } of this.candidates) {
            const known = Number.isFinite(confidence) ? confidence : 0.3;
            sketch.marker(pose, Math.max(1.8, 20 * pixel_m), rgb(theme.candidate), rgb(theme.edge), 0.25 + 0.7 * known, 1);
        }
        if (this.fix && this.fix.position) sketch.gnss(this.fix, theme, pixel_m);
        const pose = this.shownPose && this.pose ? this.shownPose : null;
        if (pose) {
            const { covariance, weak_axes } = this.uncertainty;
            sketch.uncertainty(pose, covariance, weak_axes, theme, pixel_m);
            const length = Math.max(2.2, 30 * pixel_m);
            sketch.marker(pose, length, rgb(theme.vehicle), rgb(theme.edge), 1);
            sketch.axes(pose, 0.9 * length, theme.axes.map(rgb), 3);
        }
        if (this.ruler) sketch.ruler(this.ruler.from, this.ruler.to, rgb(theme.arrow), rgb(theme.edge), 5 * pixel_m);
        if (this.arrow) sketch.arrow(this.arrow.from, this.arrow.to, rgb(theme.arrow), rgb(theme.edge), Math.max(1.2, 22 * pixel_m));
    }
}
