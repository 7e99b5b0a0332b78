/** The results so far as rings of typed arrays: bounded memory, cheap to draw. */

import { yawDeg } from "./dom.js";

export const OUTCOMES = [
    "converged", "iteration_limit", "deadline", "dropped", "rejected", "low_score", "degenerate", "no_map", "no_guess", "off_map", "lost",
    "merged"
];
export const STATES = ["initialising", "tracking", "coasting", "lost", "recovering", "extending"];
export const LOW_CONFIDENCE = 0.5;

const NUMBERS = ["latency", "align", "iterations", "nvtl", "probability", "confidence", "queue", "drops", "error_m", "error_deg"];
const LONGEST_STEP_S = 30;

const number = (value) => (value === null || value === undefined ? NaN : Number(value));
const us = (value) => (Number.isFinite(value) ? value : 0);

/** Time from arrival to publication, ms: upload is a part of align. */
export function latencyMs(result) {
    return (us(result.decode_us) + us(result.queue_us) + us(result.preprocess_us) + us(result.align_us) + us(result.publish_us)) * 1e-3;
}

/** Distance and angle between two poses: [m, deg] */
export function poseDifference(a, b) {
    const dot = Math.abs(a[3] * b[3] + a[4] * b[4] + a[5] * b[5] + a[6] * b[6]);
    const cross = Math.sqrt(Math.max(0, 1 - Math.min(1, dot) ** 2));
    return [Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]), 2 * Math.atan2(cross, dot) * 180 / Math.PI];
}

/** Error against the true pose where a replay knows it: [m, deg], NaN otherwise. */
function errors(result) {
    if (result.pose && result.truth) return poseDifference(result.pose, result.truth);
    return [number(result.error_m), number(result.error_deg)];
}

export class History {
    /** `capacity` results are kept, and the last `full` of them with everything that they say. */
    constructor(capacity, full = 600) {
        this.capacity = capacity;
        this.full = Math.min(full, capacity);
        this.clear();
    }

    clear() {
        const { capacity } = this;
        this.end = 0; // index after the newest result
        this.first = 0; // index of the oldest
        this.time = new Float64Array(capacity); // s, never falls
        this.seq = new Float64Array(capacity);
        this.stamp = new Float64Array(capacity);
        this.pose = new Float64Array(7 * capacity);
        this.outcome = new Uint8Array(capacity);
        this.state = new Uint8Array(capacity);
        for (const name of NUMBERS) this[name] = new Float32Array(capacity);
        this.results = new Array(this.full).fill(null);
        this.outcomes = new Float64Array(OUTCOMES.length + 1);
        this.states = new Float64Array(STATES.length + 1);
        this.lastArrival = 0;
        this.hasErrors = false;
    }

    get length() { return this.end - this.first; }

    slot(index) { return index % this.capacity; }

    /** Data time, s: stamps may jump (a bag that begins again); then the arrival tells. */
    #step(stamp, arrival) {
        if (this.end === 0) return 0;
        const last = this.slot(this.end - 1);
        let step = stamp - this.stamp[last];
        if (!(step >= 0 && step <= LONGEST_STEP_S))
            step = Math.min(LONGEST_STEP_S, arrival > this.lastArrival ? arrival - this.lastArrival : 0.1);
        return this.time[last] + step;
    }

    /** Adds a result that arrived at `arrival` (s of any clock); its index. */
    add(result, arrival) {
        const i = this.slot(this.end);
        const stamp = Number(result.stamp_ns) * 1e-9;
        this.time[i] = this.#step(stamp, arrival);
        this.lastArrival = arrival;
        this.stamp[i] = stamp;
        this.seq[i] = Number(result.seq);
        this.latency[i] = latencyMs(result);
        this.align[i] = us(result.align_us) * 1e-3;
        this.iterations[i] = number(result.iterations);
        this.nvtl[i] = number(result.nvtl);
        this.probability[i] = number(result.transform_probability);
        this.confidence[i] = number(result.confidence);
        this.queue[i] = number(result.queue_depth);
        this.drops[i] = number(result.drop_counter);
        [this.error_m[i], this.error_deg[i]] = errors(result);
        this.hasErrors ||= Number.isFinite(this.error_m[i]);
        const pose = result.pose || [];
        for (let k = 0; k < 7; k++) this.pose[7 * i + k] = number(pose[k]);
        this.outcome[i] = code(OUTCOMES, result.outcome);
        this.state[i] = code(STATES, result.state);
        this.#count(i, 1);
        this.results[this.end % this.full] = result;
        this.end++;
        if (this.length > this.capacity) this.first++;
        return this.end - 1;
    }

    #count(i) {
        this.outcomes[this.outcome[i]]++;
        this.states[this.state[i]]++;
    }

    /** The result as it came, or null where only its numbers are kept. */
    result(index) {
        if (index < this.first || index >= this.end || index < this.end - this.full) return null;
        return this.results[index % this.full];
    }

    /** The trail as the view draws it; null where there is no pose. */
    trailItem(index) {
        const i = this.slot(index);
        if (!Number.isFinite(this.pose[7 * i])) return null;
        return {
            pose: Array.from(this.pose.subarray(7 * i, 7 * i + 7)),
            confidence: this.confidence[i],
            state: STATES[this.state[i]] || ""
        };
    }

    yaw(index) { return yawDeg(this.pose, 7 * this.slot(index) + 3); }

    trail(from = this.first, to = this.end) {
        const items = [];
        for (let index = from; index < to; index++) {
            const item = this.trailItem(index);
            if (item) items.push(item);
        }
        return items;
    }

    /** Index of the newest result with this number, or -1. Looks at the last 200 first: it is nearly always there. */
    find(seq) {
        const wanted = Number(seq);
        for (let index = this.end - 1; index >= this.first; index--)
            if (this.seq[this.slot(index)] === wanted) return index;
        return -1;
    }

    /** First index whose time is `time` or later. */
    atTime(time) {
        let low = this.first, high = this.end;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.time[this.slot(middle)] < time)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    /** Index nearest to a time, or -1. */
    nearest(time) {
        if (!this.length) return -1;
        const after = Math.min(this.atTime(time), this.end - 1);
        const before = Math.max(this.first, after - 1);
        return Math.abs(this.time[this.slot(before)] - time) <= Math.abs(this.time[this.slot(after)] - time) ? before : after;
    }

    /** Results per second of data in the last seconds. */
    rate(window = 5) {
        if (this.length < 2) return NaN;
        const last = this.end - 1;
        const begin = Math.max(this.first, Math.min(this.atTime(this.time[this.slot(last)] - window), last - 1));
        const span = this.time[this.slot(last)] - this.time[this.slot(begin)];
        return span > 0 ? (last - begin) / span : NaN;
    }

    /** good, low (confidence), refused, none (no pose expected: dropped, merged, no map) */
    grade(index) {
        const i = this.slot(index);
        const outcome = OUTCOMES[this.outcome[i]];
        if (outcome === "merged" || outcome === "dropped" || outcome === "no_map" || outcome === "no_guess") return "none";
        if ((outcome !== "converged" && STATES[this.state[i]] !== "extending") || STATES[this.state[i]] === "lost") return "refused";
        return this.confidence[i] < LOW_CONFIDENCE || ["coasting", "extending"].includes(STATES[this.state[i]]) ? "low" : "good";
    }
}

function code(names, name) {
    const at = names.indexOf(name);
    return at < 0 ? names.length : at;
}
