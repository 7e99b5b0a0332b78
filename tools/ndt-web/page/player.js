/** Replay: the drive as a strip of outcomes, a slider, play, steps and the worst scans. */

import { $, clock, colour, fixed, h, setText } from "./dom.js";
import { getJson } from "./feed.js";
import { OUTCOMES } from "./history.js";

const PAGE = 2000;
const WORST = 10;
const APART = 10; // scans: neighbours are bad for the same reason
const CACHED = 1000;
const AROUND = 100;
/** grade of a scan: tone of the strip, whether it stands out above the others */
const GRADES = {
    good: "good",
    low: "warn",
    refused: "bad",
    none: "still"
};

/** Diagonal lines */
function hatched(context, tone) {
    const tile = document.createElement("canvas"), size = 6;
    tile.width = tile.height = size;
    const lines = tile.getContext("2d");
    lines.strokeStyle = tone;
    lines.lineWidth = 1.5;
    for (const shift of [-size, 0, size]) {
        lines.moveTo(shift, size);
        lines.lineTo(shift + size, 0);
    }
    lines.stroke();
    return context.createPattern(tile, "repeat");
}

export class Player {
    /** `show(index)` draws a scan; history holds all results once load() is done. */
    constructor(history, show) {
        this.history = history;
        this.show = show;
        this.index = 0;
        this.playing = false;
        this.cache = new Map(); // index -> result, complete
        $("player-prev").addEventListener("click", () => this.step(-1));
        $("player-next").addEventListener("click", () => this.step(1));
        $("player-play").addEventListener("click", () => this.play(!this.playing));
        $("player-slider").addEventListener("input", (event) => {
            this.play(false);
            this.seek(Number(event.target.value));
        });
        $("player-worst").addEventListener("change", (event) => {
            if (event.target.value !== "") {
                this.play(false);
                this.seek(Number(event.target.value));
            }
        });
        new ResizeObserver(() => {
            this.drawStrip();
            this.#place();
        }).observe($("player"));
    }

    /** All results, page by page. `progress(part)` is told meanwhile. */
    async load(scans, progress) {
        this.scans = scans;
        for (let from = 0; from < scans;) {
            const page = await getJson(`/api/history?from=${from}&count=${PAGE}`);
            if (!page.results.length) break;
            for (const result of page.results) this.history.add(result, 0);
            from = page.first + page.results.length;
            progress(from / scans);
        }
        const { length } = this.history;
        $("player").hidden = length === 0;
        document.body.classList.add("replay");
        $("player-slider").max = String(Math.max(0, length - 1));
        this.#findWorst();
        this.drawStrip();
        this.#place();
        if (length) this.seek(0);
    }

    #place() { document.body.style.setProperty("--player", `${$("player").offsetHeight}px`); }

    /** By the error where the truth is known, else by the confidence. */
    #findWorst() {
        const { history } = this;
        const badness = (i) =>
            (history.hasErrors ? history.error_m[i] : 1 - (Number.isFinite(history.confidence[i]) ? history.confidence[i] : 0));
        const all = Array.from({ length: history.length }, (_, k) => k).filter((k) => Number.isFinite(badness(k)));
        all.sort((a, b) => badness(b) - badness(a));
        const apart = Math.min(APART, history.length / (2 * WORST));
        this.worst = [];
        for (const k of all) {
            if (this.worst.length === WORST) break;
            if (this.worst.every((other) => Math.abs(other - k) >= apart)) this.worst.push(k);
        }
        $("player-worst")
            .append(...this.worst.map(
                (k) =>
                    h("option", { value: String(k) },
                      `scan ${history.seq[k]}: ${
                          history.hasErrors
                              ? `${fixed(history.error_m[k], 3)} m`
                              : `confidence ${fixed(history.confidence[k], 3)}`}, ${OUTCOMES[history.outcome[k]].replace("_", " ")}`)));
    }

    /** The complete result, from ndt-web where the ring has only its numbers. */
    async result(index) {
        const kept = this.history.result(index) || this.cache.get(index);
        if (kept) return kept;
        const from = Math.max(0, index - AROUND / 4);
        const page = await getJson(`/api/history?from=${Math.floor(from)}&count=${AROUND}`);
        page.results.forEach((result, k) => this.cache.set(page.first + k, result));
        for (const key of this.cache.keys()) {
            if (this.cache.size <= CACHED) break;
            this.cache.delete(key);
        }
        return this.cache.get(index) || null;
    }

    seek(index) {
        const { history } = this;
        if (!history.length) return;
        this.index = Math.min(history.length - 1, Math.max(0, index));
        const time = history.time[this.index] - history.time[0], all = history.time[history.length - 1] - history.time[0];
        $("player-slider").value = String(this.index);
        $("player-slider").setAttribute("aria-valuetext", `scan ${history.seq[this.index]}, ${fixed(time, 1)} s`);
        setText($("player-time"), `${clock(time)} / ${clock(all)}  ·  scan ${this.index + 1} of ${history.length}`);
        if ($("player-worst").value !== String(this.index)) $("player-worst").value = "";
        this.drawStrip();
        this.show(this.index);
    }

    step(by) {
        this.play(false);
        this.seek(this.index + by);
    }

    nextWorst() {
        if (!this.worst.length) return;
        this.play(false);
        this.seek(this.worst[(this.worst.indexOf(this.index) + 1) % this.worst.length]);
        $("player-worst").value = String(this.index);
    }

    play(on) {
        if (on === this.playing) return;
        this.playing = on;
        $("player-play-icon").setAttribute("href", on ? "#i-pause" : "#i-play");
        $("player-play").setAttribute("aria-label", on ? "Pause" : "Play");
        if (!on) {
            clearTimeout(this.timer);
            return;
        }
        if (this.index >= this.history.length - 1) this.seek(0);
        this.at = this.history.time[this.index];
        this.then = performance.now();
        this.#tick();
    }

    /** Shows the scan that is due; a slow machine leaves scans out and keeps the pace. */
    #tick() {
        if (!this.playing) return;
        const { history } = this, now = performance.now();
        this.at += (now - this.then) / 1000 * Number($("player-speed").value);
        this.then = now;
        const due = Math.min(history.length - 1, Math.max(this.index, history.atTime(this.at + 1e-9) - 1));
        if (due !== this.index) this.seek(due);
        if (this.index >= history.length - 1) {
            this.play(false);
            return;
        }
        this.timer = setTimeout(() => this.#tick(), 30);
    }

    /** Height is the confidence, colour the grade; what is refused is hatched, so that colour is not needed. */
    drawStrip() {
        const canvas = $("player-canvas"), { history } = this;
        const width = canvas.clientWidth, height = canvas.clientHeight, ratio = Math.min(devicePixelRatio || 1, 2);
        if (!width || !history.length) return;
        canvas.width = Math.round(width * ratio);
        canvas.height = Math.round(height * ratio);
        const context = canvas.getContext("2d");
        context.scale(ratio, ratio);
        context.fillStyle = colour("track");
        context.fillRect(0, 0, width, height);
        const hatch = hatched(context, colour("bad"));
        const columns = Math.min(history.length, Math.floor(width)), wide = width / columns;
        for (let column = 0; column < columns; column++) {
            const [grade, part] =
                this.#worstOf(Math.floor(column * history.length / columns), Math.floor((column + 1) * history.length / columns));
            const x = Math.floor(column * wide), next = Math.floor((column + 1) * wide), tall = Math.max(3, part * (height - 2));
            context.fillStyle = hatch;
            if (grade === "refused") context.fillRect(x, 0, next - x, height);
            context.fillStyle = colour(GRADES[grade]);
            context.fillRect(x, height - tall, next - x, tall);
        }
        const x = (this.index + 0.5) / history.length * width;
        context.fillStyle = colour("text");
        context.fillRect(Math.min(width - 2, Math.max(0, x - 1)), 0, 2, height);
    }

    #worstOf(begin, end) {
        const order = ["good", "none", "low", "refused"];
        let rank = 0, least = 1;
        for (let index = begin; index < end; index++) {
            rank = Math.max(rank, order.indexOf(this.history.grade(index)));
            const confidence = this.history.confidence[index];
            if (Number.isFinite(confidence)) least = Math.min(least, confidence);
        }
        return [order[rank], least];
    }
}
