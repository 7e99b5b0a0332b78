/** Time series on canvas elements: one line of values above, one cursor through all of them. */

import { $, clock, colour, fixed, h, setText, short, tick } from "./dom.js";
import { OUTCOMES } from "./history.js";

/** Times that the charts show, s, and the parts between the labels below them */
const SPANS = [[10, 2], [30, 3], [60, 3], [120, 2], [300, 5], [600, 5]];
const SPAN_S = 60;
const RIGHT = 4, TOP = 5;
const TEXT = 0.66; // size of the axes' text over that of the page

/** name of the ring in History, what the head says, colour of the theme, digits */
const CHARTS = [
    {
        id: "latency",
        title: "Latency",
        unit: "ms",
        log: true,
        low: 0.1,
        high: 300,
        limit: true,
        series: [["latency", "", "info", 2]]
    },
    { id: "iterations", title: "Iterations", low: 0, high: 4, whole: true, steps: true, series: [["iterations", "", "warn", 0]] },
    {
        id: "scores",
        title: "Scores",
        low: 0,
        high: 1,
        series: [["nvtl", "NVTL", "info", 2], ["probability", "transform prob.", "other", 2]]
    },
    { id: "confidence", title: "Confidence", low: 0, high: 1, fixed: true, outcomes: true, series: [["confidence", "", "good", 3]] },
    {
        id: "queue",
        title: "Queue",
        unit: "scans",
        low: 0,
        high: 3,
        whole: true,
        steps: true,
        drops: true,
        series: [["queue", "with this one", "still", 0]]
    },
    { id: "error-position", title: "Error, position", unit: "m", low: 0, high: 0.01, truth: true, series: [["error_m", "", "bad", 3]] },
    { id: "error-rotation", title: "Error, rotation", unit: "°", low: 0, high: 0.02, truth: true, series: [["error_deg", "", "other", 3]] },
];

/** A round number at or above, of 1, 2, 5 times a power of ten */
export function roundUp(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    for (const step of [1, 2, 2.5, 5, 10])
        if (step * power >= value * 0.999) return step * power;
    return 10 * power;
}

class Chart {
    constructor(spec, owner) {
        this.spec = spec;
        this.owner = owner;
        this.values = spec.series.map(([, name, tone]) => {
            const mark = h("i");
            mark.dataset.tone = tone;
            const value = h("b", {}, "–");
            const parts = name ? [mark, h("span", { class: "muted" }, name), value] : [value];
            return { mark, value, element: h("span", { class: "value" }, ...parts) };
        });
        const head = h("h3", {}, spec.title, spec.unit ? h("span", { class: "muted" }, ` ${spec.unit}`) : "");
        this.canvas = h("canvas", {
            id: `chart-${spec.id}`,
            tabindex: "0",
            role: "img",
            "aria-label": `${spec.title}, ${spec.unit || "no unit"}: left and right move the cursor`
        });
        this.element =
            h("div", { class: "chart", "data-testid": `chart-${spec.id}` },
              h("div", { class: "chart-head" }, head, ...this.values.map((v) => v.element)), this.canvas);
        this.context = this.canvas.getContext("2d");
        this.#listen();
    }

    #listen() {
        const { canvas, owner } = this;
        const time = (event) => this.timeAt(event.clientX - canvas.getBoundingClientRect().left);
        canvas.addEventListener("pointermove", (event) => owner.setCursor(time(event)));
        canvas.addEventListener("pointerleave", () => owner.setCursor(null));
        canvas.addEventListener("click", (event) => owner.select(owner.history.nearest(time(event))));
        canvas.addEventListener("blur", () => owner.setCursor(null));
        canvas.addEventListener("keydown", (event) => owner.key(event));
    }

    timeAt(x) {
        const { from, to } = this.owner.range;
        return from + (x - this.left) / Math.max(1, this.width - this.left - RIGHT) * (to - from);
    }

    /** Limits of the vertical axis for what is seen. */
    #limits(history, begin, end) {
        const { spec } = this;
        let { low, high } = spec;
        if (spec.fixed) return [low, high];
        for (const [key] of spec.series) {
            const ring = history[key];
            for (let index = begin; index < end; index++) {
                const value = ring[history.slot(index)];
                if (value > high && value < 1e12) high = value;
            }
        }
        if (spec.log) return [low, high > spec.high ? 1.2 * high : high];
        return [low, spec.whole ? Math.ceil(high) : roundUp(high)];
    }

    #resize() {
        const ratio = Math.min(window.devicePixelRatio || 1, 2);
        const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
        if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
            this.canvas.width = Math.round(width * ratio);
            this.canvas.height = Math.round(height * ratio);
        }
        this.width = width;
        this.height = height;
        this.text = TEXT * this.owner.root_px;
        this.left = Math.round(3.2 * this.text);
        this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    }

    draw(history, axis) {
        this.#resize();
        const { context, width, height, spec, owner } = this;
        if (width < 60) return;
        const { from, to } = owner.range;
        const begin = Math.max(history.first, history.atTime(from) - 1), end = Math.min(history.end, history.atTime(to) + 1);
        const [low, high] = this.#limits(history, begin, end);
        const bottom = height - (axis ? 1.5 * this.text : 3);
        const scale = spec.log ? (v) => Math.log10(Math.max(v, low) / low) / Math.log10(high / low) : (v) => (v - low) / (high - low);
        const box = {
            from,
            to,
            begin,
            end,
            low,
            high,
            bottom,
            x: (t) => this.left + (t - from) / (to - from) * (width - this.left - RIGHT),
            y: (v) => bottom - Math.min(1, Math.max(0, scale(v))) * (bottom - TOP)
        };
        context.clearRect(0, 0, width, height);
        context.font = `${this.text}px system-ui, "DejaVu Sans", sans-serif`;
        this.#grid(box, axis);
        if (spec.outcomes) this.#marks(history, box, (i) => history.outcome[i] !== 0, colour("bad"));
        if (spec.drops) this.#marks(history, box, (i, before) => before >= 0 && history.drops[i] > history.drops[before], colour("bad"));
        for (const [key, , tone] of spec.series) this.#line(history, history[key], box, colour(tone));
        this.#cursor(history, box);
        this.#head(history);
    }

    #grid(box, axis) {
        const { context, spec, owner } = this;
        const ticks = spec.log ? [1, 10, 100, 1000].filter((v) => v <= box.high) : spec.fixed ? [0, 0.5, 1] : [box.low, box.high];
        context.strokeStyle = colour("line");
        context.fillStyle = colour("muted");
        context.lineWidth = 1;
        context.textAlign = "right";
        context.textBaseline = "middle";
        for (const at of ticks) {
            const y = Math.round(box.y(at)) + 0.5;
            this.#level(y);
            context.fillText(tick(at), this.left - 5, Math.min(Math.max(y, 0.6 * this.text), box.bottom - 2));
        }
        if (spec.limit && owner.budget_ms > 0 && owner.budget_ms <= box.high) {
            context.setLineDash([5, 3]);
            context.strokeStyle = colour("bad");
            this.#level(Math.round(box.y(owner.budget_ms)) + 0.5);
            context.setLineDash([]);
        }
        if (!axis) return;
        context.textBaseline = "alphabetic";
        for (const [time, text, align] of owner.timeLabels()) {
            context.textAlign = align;
            context.fillText(text, box.x(time), this.height - 3);
        }
    }

    #level(y) {
        const { context } = this;
        context.beginPath();
        context.moveTo(this.left, y);
        context.lineTo(this.width - RIGHT, y);
        context.stroke();
    }

    /** Stripes with a foot: scans for which something holds, such as an outcome that is not converged. */
    #marks(history, box, holds, tone) {
        const { context } = this;
        context.fillStyle = tone;
        for (let index = box.begin; index < box.end; index++) {
            const before = index > history.first ? history.slot(index - 1) : -1;
            if (!holds(history.slot(index), before)) continue;
            const x = box.x(history.time[history.slot(index)]);
            context.globalAlpha = 0.2;
            context.fillRect(x - 1, TOP, 2, box.bottom - TOP);
            context.globalAlpha = 1;
            context.fillRect(x - 1.5, box.bottom - 7, 3, 7);
        }
    }

    /** The line; where more than two results fall on a pixel, their least and largest value. */
    #line(history, ring, box, tone) {
        const { context, spec } = this;
        context.save();
        context.beginPath();
        context.rect(this.left, 0, this.width - this.left - RIGHT, this.height);
        context.clip();
        context.strokeStyle = tone;
        context.lineWidth = 1.6;
        context.lineJoin = "round";
        context.beginPath();
        const dense = box.end - box.begin > 2 * (this.width - this.left);
        let open = false, lastTime = 0, lastY = 0, column = -1, least = 0, most = 0;
        const gap = Math.max(1.5, 3 * (box.to - box.from) / Math.max(1, this.width));
        for (let index = box.begin; index < box.end; index++) {
            const i = history.slot(index), value = ring[i], time = history.time[i];
            if (!Number.isFinite(value)) {
                open = false;
                continue;
            }
            const x = box.x(time), y = box.y(value);
            if (dense && open && Math.floor(x) === column) {
                least = Math.min(least, y);
                most = Math.max(most, y);
                continue;
            }
            if (dense && open) {
                context.lineTo(column, least);
                context.lineTo(column, most);
            }
            if (!open || time - lastTime > gap) {
                context.moveTo(x, y);
                if (box.end - box.begin === 1) context.arc(x, y, 1.5, 0, 7);
            } else {
                if (spec.steps) context.lineTo(x, lastY);
                context.lineTo(x, y);
            }
            open = true;
            lastTime = time;
            lastY = y;
            column = Math.floor(x);
            least = most = y;
        }
        context.stroke();
        context.restore();
    }

    #cursor(history, box) {
        const { context, owner } = this;
        for (const [index, tone, dash] of [[owner.selected, "text", [2, 2]], [owner.cursor, "muted", []]]) {
            if (index === null || index < history.first || index >= history.end) continue;
            const i = history.slot(index), x = Math.round(box.x(history.time[i])) + 0.5;
            if (x < this.left || x > this.width - RIGHT + 1) continue;
            context.strokeStyle = colour(tone);
            context.lineWidth = 1;
            context.setLineDash(dash);
            context.beginPath();
            context.moveTo(x, TOP);
            context.lineTo(x, box.bottom);
            context.stroke();
            context.setLineDash([]);
            for (const [key, , series] of this.spec.series) {
                if (!Number.isFinite(history[key][i])) continue;
                context.fillStyle = colour(series);
                context.beginPath();
                context.arc(x, box.y(history[key][i]), 3, 0, 7);
                context.fill();
            }
        }
    }

    #head(history) {
        const index = this.owner.shown;
        this.spec.series.forEach(([key, , tone, digits], k) => {
            const { value, mark } = this.values[k];
            const number = index === null ? NaN : history[key][history.slot(index)];
            setText(value, digits === 2 ? short(number) : fixed(number, digits));
            mark.style.background = colour(tone);
        });
    }
}

export class Charts {
    /** `select(index)` is called for a click or Enter: the scan to look at. */
    constructor(container, history, select) {
        this.history = history;
        this.select = select;
        this.cursor = null; // index under the pointer
        this.selected = null; // index of the scan that is looked at
        this.isReplay = false; // there is an end: charts show all of it, or a part around the scan that is looked at
        this.span = null; // s; null: 60, of a replay all
        this.budget_ms = 100; // live.budget_ms: a status tells it, a replay does not
        this.range = { from: 0, to: SPAN_S };
        this.charts = CHARTS.map((spec) => new Chart(spec, this));
        container.append(...this.charts.map((chart) => chart.element));
        new ResizeObserver(() => {
            this.dirty = true;
        }).observe(container);
    }

    /** The times to choose from: [seconds, text]. */
    get spans() {
        const names = SPANS.map(([seconds]) => [seconds, seconds < 60 ? `${seconds} s` : `${seconds / 60} min`]);
        return this.isReplay ? [...names, [null, "all"]] : names;
    }

    setSpan(seconds) {
        this.span = seconds;
        this.dirty = true;
    }

    /** The result whose values the heads show. */
    get shown() {
        if (this.cursor !== null && this.cursor >= this.history.first && this.cursor < this.history.end) return this.cursor;
        if (this.selected !== null && this.selected >= this.history.first) return this.selected;
        return this.history.length ? this.history.end - 1 : null;
    }

    setCursor(time) {
        const index = time === null || !this.history.length ? null : this.history.nearest(time);
        if (index !== this.cursor) {
            this.cursor = index;
            this.dirty = true;
        }
    }

    setSelected(index) {
        if (index !== this.selected) {
            this.selected = index;
            this.dirty = true;
        }
    }

    key(event) {
        const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e9, End: 1e9 }[event.key];
        const { first, end } = this.history;
        if (event.key === "Enter" && this.cursor !== null)
            this.select(this.cursor);
        else if (step && end > first)
            this.cursor = Math.min(end - 1, Math.max(first, (this.cursor ?? this.shown) + step));
        else
            return;
        this.dirty = true;
        event.preventDefault();
        event.stopPropagation();
    }

    timeLabels() {
        const { from, to } = this.range, span = to - from;
        const parts = this.isReplay ? 4 : SPANS.find(([seconds]) => seconds >= span)[1], per = span < 120 ? 1 : 60;
        const begin = this.history.length ? this.history.time[this.history.slot(this.history.first)] : 0;
        const text = (time, k) => {
            if (this.isReplay) return clock(time - begin);
            return k === parts ? "now" : `−${tick((to - time) / per)}${k ? "" : per === 1 ? " s" : " min"}`;
        };
        return Array.from({ length: parts + 1 }, (_, k) => {
            const time = from + k * span / parts;
            return [time, text(time, k), k === 0 ? "left" : k === parts ? "right" : "center"];
        });
    }

    /** `age`: seconds since the newest result came. */
    draw(age) {
        const { history } = this;
        this.root_px = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
        const last = history.length ? history.time[history.slot(history.end - 1)] : 0;
        this.range = this.#range(last, age);
        const shown = this.charts.filter((chart) => {
            chart.element.hidden = Boolean(chart.spec.truth && !history.hasErrors);
            return !chart.element.hidden;
        });
        shown.forEach((chart, k) => {
            chart.element.classList.toggle("has-axis", k === shown.length - 1);
            chart.draw(history, k === shown.length - 1);
        });
        this.#when(last, age);
        this.dirty = false;
    }

    /** Live: up to now. A replay: all, or a part with the scan that is looked at in its middle. */
    #range(last, age) {
        const { history, span } = this;
        if (!this.isReplay) return { from: last + age - (span || SPAN_S), to: last + age };
        const first = history.length ? history.time[history.slot(history.first)] : 0, all = Math.max(last - first, 1);
        const wide = Math.min(span || all, all);
        const middle = this.selected === null ? first : history.time[history.slot(this.selected)];
        const from = Math.max(first, Math.min(middle - wide / 2, first + all - wide));
        return { from, to: from + wide };
    }

    #when(last, age) {
        const { history } = this;
        const index = this.shown;
        if (index === null) return setText($("chart-when"), "No results yet.");
        const i = history.slot(index);
        const outcome = OUTCOMES[history.outcome[i]] || "other outcome";
        const first = history.time[history.slot(history.first)];
        const back = last + age - history.time[i];
        const where = this.isReplay ? `at ${clock(history.time[i] - first)} min`
            : this.cursor === null && this.selected === null ? "newest"
                                                             : `${fixed(back, 1)} s ago`;
        setText($("chart-when"), `Scan ${history.seq[i]}, ${where}: ${outcome.replace("_", " ")}`);
    }
}

/** Bars of counts, the largest first; `marks` names icon and tone of each. */
export function drawBars(list, names, counts, marks) {
    const total = counts.reduce((sum, value) => sum + value, 0);
    const order = names.map((name, k) => k).filter((k) => counts[k] > 0).sort((a, b) => counts[b] - counts[a]);
    const rows = order.length ? order : [];
    while (list.children.length > rows.length) list.lastChild.remove();
    rows.forEach((k, at) => {
        if (!list.children[at])
            list.append(
                h("li", {}, h("span", { class: "name" }), h("span", { class: "bar" }, h("i")), h("span", { class: "number" }),
                  h("span", { class: "number muted" })));
        const [name, bar, number, percent] = list.children[at].children;
        const [symbol, tone] = marks(names[k]);
        if (list.children[at].dataset.name !== names[k]) {
            list.children[at].dataset.name = names[k];
            name.replaceChildren(symbol, names[k].replace("_", " "));
            list.children[at].style.setProperty("--badge", `var(--${tone})`);
        }
        bar.firstChild.style.width = `${100 * counts[k] / total}%`;
        setText(number, String(counts[k]).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f"));
        setText(percent, `${fixed(100 * counts[k] / total, counts[k] === total ? 0 : 1)} %`);
    });
    return total;
}
