// The octree of the map in the browser: which nodes to draw for a camera, which to fetch, which to forget.
//
// Nodes are additive levels of detail: a node is drawn together with all its ancestors. Those whose gaps between points
// are the largest on the screen come first, until the budget of points is spent.

const HEADER = 40;
const RECORD = 8;
const AT_ONCE = 4;
const GAP_PIXELS = 1.4; // finer nodes would not be seen
const RETRY_MS = 2000;
const FEW_POINTS = 400;
const SPARSE = 1.5; // times the mean gap of what is drawn: the most for points that have no finer ones among them
const EXPECTED_POINTS = 5000; // of a node that has not arrived

class Node {
    constructor(name, min, size, spacing) {
        this.name = name;
        this.min = min;
        this.size = size;
        this.spacing = spacing;
        this.mask = 0;
        this.count = 0;
        this.children = null;
        this.state = "absent"; // loading, ready, failed
        this.array = null;
        this.buffer = null;
        this.bytes = 0;
        this.used = 0; // frame
        this.wanted = 0; // frame
        this.retryAt = 0;
        this.abort = null;
        this.gaps = new Float32Array(8); // spacing of the finest node drawn in each octant
        this.drawn = 0; // frame
        this.finest = 0;
    }

    child(i) {
        return this.children && (this.mask >> i) & 1 ? this.children[i] : null;
    }
}

/** A binary heap by `gap`, largest first. */
class Heap {
    constructor() {
        this.items = [];
    }
    push(item) {
        const items = this.items;
        let at = items.push(item) - 1;
        for (let up = (at - 1) >> 1; at > 0 && items[up].gap < item.gap; at = up, up = (at - 1) >> 1) items[at] = items[up];
        items[at] = item;
    }
    pop() {
        const items = this.items, top = items[0], last = items.pop();
        if (items.length === 0) return top;
        let at = 0;
        for (let down = 1; down < items.length; at = down, down = 2 * at + 1) {
            if (down + 1 < items.length && items[down + 1].gap > items[down].gap) down++;
            if (items[down].gap <= last.gap) break;
            items[at] = items[down];
        }
        items[at] = last;
        return top;
    }
    get size() {
        return this.items.length;
    }
}

export class Tiles {
    /** arrived(node): a node can be drawn; url(name, id): where it is fetched. */
    constructor({ arrived, url, cacheBytes }) {
        this.arrived = arrived;
        this.url = url || ((name, id) => `/api/map/${name}?v=${encodeURIComponent(id)}`);
        this.cacheBytes = cacheBytes || 256e6;
        this.gl = null;
        this.frame = 0;
        this.clear();
    }

    clear() {
        for (const node of this.nodes || []) this.forget(node);
        this.info = null;
        this.root = null;
        this.nodes = new Set(); // those that are loading or ready
        this.bytes = 0;
        this.received = 0;
        this.requests = 0;
        this.loading = 0;
        this.queue = [];
        this.heights = null; // [low, high] of most points, for colours
        this.bulk = null; // box of most points
        this.firstPoints_ms = null;
        clearTimeout(this.timer);
    }

    /** The map of GET /api/map; null: none. */
    setMap(info) {
        if (info && this.info && info.id === this.info.id) return false;
        this.clear();
        if (!info) return true;
        this.info = info;
        this.begun = performance.now();
        this.root = new Node(info.root || "r", [0, 0, 0], Infinity, info.spacing_m);
        return true;
    }

    /** A context, also a new one: everything is fetched again, from the cache of the browser. */
    setContext(gl) {
        this.gl = gl;
        for (const node of this.nodes) {
            node.abort?.abort();
            Object.assign(node, { state: "absent", array: null, buffer: null, bytes: 0, abort: null });
        }
        this.nodes.clear();
        this.bytes = 0;
        this.loading = 0;
    }

    sees(node, camera) {
        if (node === this.root) return true;
        const { min, max } = this.info;
        const low = node.min.map((value, k) => Math.max(value, min[k]));
        const high = node.min.map((value, k) => Math.min(value + node.size, max[k]));
        return camera.sees(low, high);
    }

    /** Pixels between neighbouring points of a node where it is nearest. */
    gap(node, camera) {
        if (!isFinite(node.size)) return Infinity;
        let square = 0;
        for (let k = 0; k < 3; k++) {
            const low = Math.max(node.min[k], this.info.min[k]), high = Math.min(node.min[k] + node.size, this.info.max[k]);
            const away = Math.max(low - camera.eye[k], 0, camera.eye[k] - high);
            square += away * away;
        }
        return node.spacing * camera.pixelsPerMetre(Math.max(Math.sqrt(square), 0.15 * camera.range));
    }

    /** The nodes to draw, coarse before fine, at most `budget` points; those that are missing are fetched. */
    select(camera, budget, density) {
        this.frame++;
        this.queue = [];
        const chosen = [], heap = new Heap();
        let points = 0, expected = 0;
        budget = Math.min(budget, (0.7 * this.cacheBytes) / RECORD); // what is seen fits, and some of what was
        if (this.root) heap.push({ node: this.root, gap: Infinity });
        while (heap.size > 0) {
            const { node, gap } = heap.pop();
            if (!this.sees(node, camera)) continue;
            if (node.state !== "ready") {
                node.wanted = this.frame;
                expected += node.count || EXPECTED_POINTS; // the count is known of one that was forgotten
                if (points + expected <= budget || !this.root.count) this.queue.push({ node, gap });
                continue;
            }
            if (points + node.count > budget && chosen.length > 0) break;
            points += node.count;
            node.used = this.frame;
            chosen.push(node);
            for (let i = 0; i < 8; i++) {
                const child = node.child(i);
                if (!child) continue;
                // What is seen before the child is there: the gaps of its parent.
                const seen = (this.gap(child, camera) * node.spacing * density) / child.spacing;
                if (seen > GAP_PIXELS) heap.push({ node: child, gap: seen });
            }
        }
        this.measureGaps(chosen);
        this.points = points;
        this.pump();
        return chosen;
    }

    /** Points of a node are as large as the gaps of the finest nodes that are drawn among them. */
    measureGaps(chosen) {
        for (const node of chosen) node.drawn = this.frame;
        for (let n = chosen.length - 1; n >= 0; n--) {
            const node = chosen[n];
            // The few points of a remote part are no surface with gaps to fill.
            const own = node.mask === 0 && node.count < FEW_POINTS ? 0.4 * node.spacing : node.spacing;
            let sum = 0, parts = 0;
            for (let i = 0; i < 8; i++) {
                const child = node.child(i);
                node.gaps[i] = child && child.drawn === this.frame ? child.finest : own;
                if (child || node.mask === 0) {
                    sum += node.gaps[i];
                    parts++;
                }
            }
            node.finest = parts > 0 ? sum / parts : own;
        }
        this.shrinkSparse(chosen);
    }

    /** The few points that coarse nodes have beyond the edge of the map would be balls beside its fine ones. */
    shrinkSparse(chosen) {
        let points = 0, sum = 0;
        for (const node of chosen) {
            points += node.count;
            sum += node.count * node.finest;
        }
        const most = (SPARSE * sum) / Math.max(1, points);
        for (const node of chosen)
            for (let i = 0; i < 8; i++)
                if (!((node.mask >> i) & 1)) node.gaps[i] = Math.min(node.gaps[i], most);
    }

    get isComplete() {
        return this.queue.length === 0 && this.loading === 0;
    }

    /** Fetches what is wanted most; ends what is not wanted any more. */
    pump() {
        for (const node of this.nodes)
            if (node.state === "loading" && node.wanted < this.frame - 3) node.abort.abort();
        const now = performance.now();
        for (const { node } of this.queue) {
            if (this.loading >= AT_ONCE) break;
            if (node.state === "absent" || (node.state === "failed" && now > node.retryAt)) this.fetch(node);
        }
    }

    async fetch(node) {
        const map = this.info, abort = new AbortController();
        node.state = "loading";
        node.abort = abort;
        this.nodes.add(node);
        this.loading++;
        this.requests++;
        let bytes = null;
        try {
            const response = await fetch(this.url(node.name, map.id), { signal: abort.signal });
            if (response.ok) bytes = await response.arrayBuffer();
        } catch {
            // aborted, or the server has gone
        }
        if (map !== this.info || node.abort !== abort) return; // another map or context
        this.loading--;
        node.abort = null;
        if (bytes && this.accept(node, bytes)) {
            node.state = "ready";
            node.used = this.frame;
            this.evict();
            this.arrived(node);
        } else {
            this.nodes.delete(node);
            node.state = abort.signal.aborted ? "absent" : "failed";
            node.retryAt = performance.now() + RETRY_MS;
            if (node.state === "failed") this.retryLater();
        }
        this.queue = this.queue.filter((item) => item.node.state === "absent");
        this.pump();
    }

    retryLater() {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.arrived(null), RETRY_MS + 100);
    }

    /** Reads the header, and gives the records to the GPU as they are. */
    accept(node, bytes) {
        const view = new DataView(bytes);
        if (bytes.byteLength < HEADER || view.getUint32(0, false) !== 0x4e44544e || view.getUint32(4, true) !== 1) return false;
        node.count = view.getUint32(8, true);
        if (bytes.byteLength < HEADER + RECORD * node.count || !this.gl || this.gl.isContextLost()) return false;
        node.mask = view.getUint32(12, true);
        node.min = [16, 20, 24].map((at) => view.getFloat32(at, true));
        node.size = view.getFloat32(28, true);
        node.spacing = view.getFloat32(32, true);
        this.makeChildren(node);
        this.upload(node, new Uint8Array(bytes, HEADER, RECORD * node.count));
        this.received += bytes.byteLength;
        if (node === this.root) this.measure(view, node);
        if (this.firstPoints_ms === null) this.firstPoints_ms = performance.now() - this.begun;
        return true;
    }

    measure(view, node) {
        if (node.count === 0) return;
        const axis = (k) => {
            const values = new Float64Array(node.count);
            for (let i = 0; i < node.count; i++)
                values[i] = node.min[k] + (view.getUint16(HEADER + RECORD * i + 2 * k, true) / 65535) * node.size;
            values.sort();
            return (q) => values[Math.round(q * (values.length - 1))];
        };
        const axes = [0, 1, 2].map(axis);
        const low = axes[2](0.04), high = axes[2](0.97);
        this.heights = high - low > 1 ? [low, high] : [low - 0.5, high + 0.5];
        this.bulk = { min: axes.map((at) => at(0.015)), max: axes.map((at) => at(0.985)) };
    }

    makeChildren(node) {
        if (node.children) return;
        const half = node.size / 2;
        node.children = [];
        for (let i = 0; i < 8; i++) {
            const min = node.min.map((value, k) => value + ((i >> k) & 1) * half);
            node.children.push((node.mask >> i) & 1 ? new Node(node.name + i, min, half, node.spacing / 2) : null);
        }
    }

    upload(node, records) {
        const gl = this.gl;
        node.array = gl.createVertexArray();
        node.buffer = gl.createBuffer();
        gl.bindVertexArray(node.array);
        gl.bindBuffer(gl.ARRAY_BUFFER, node.buffer);
        gl.bufferData(gl.ARRAY_BUFFER, records, gl.STATIC_DRAW);
        gl.enableVertexAttribArray(0);
        gl.vertexAttribPointer(0, 3, gl.UNSIGNED_SHORT, true, RECORD, 0);
        gl.enableVertexAttribArray(1);
        gl.vertexAttribPointer(1, 1, gl.UNSIGNED_BYTE, true, RECORD, 6);
        gl.bindVertexArray(null);
        node.bytes = records.byteLength;
        this.bytes += node.bytes;
    }

    forget(node) {
        node.abort?.abort();
        if (node.buffer && this.gl && !this.gl.isContextLost()) {
            this.gl.deleteBuffer(node.buffer);
            this.gl.deleteVertexArray(node.array);
        }
        this.bytes -= node.bytes;
        Object.assign(node, { state: "absent", array: null, buffer: null, bytes: 0, abort: null });
        this.nodes.delete(node);
    }

    /** Forgets what has not been drawn for longest. */
    evict() {
        if (this.bytes <= this.cacheBytes) return;
        const old = [...this.nodes].filter((node) => node.state === "ready" && node.used < this.frame - 1);
        old.sort((a, b) => a.used - b.used || b.name.length - a.name.length);
        for (const node of old) {
            if (this.bytes <= 0.9 * this.cacheBytes) break;
            this.forget(node);
        }
    }
}
