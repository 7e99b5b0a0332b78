/** The connection to ndt-web: events, results so far, scans, requests. It comes back by itself. */

const RETRY_S = [0.5, 1, 2, 4];
const SILENCE_S = 8;
const HIDDEN_S = 10;
const PAGE = 2000;
const SCAN_HEAD = 32;
const TOKEN_KEY = "ndt-web.token";
const EVENTS = ["hello", "daemon", "result", "scan", "status", "map", "log", "resync"];

/** The token comes in the fragment, once; the address bar forgets it. */
function takeToken() {
    const found = /(?:^#|&)token=([^&]+)/.exec(location.hash);
    try {
        if (found) {
            sessionStorage.setItem(TOKEN_KEY, decodeURIComponent(found[1]));
            history.replaceState(null, "", location.pathname + location.search);
        }
        return sessionStorage.getItem(TOKEN_KEY);
    } catch {
        return found ? found[1] : null; // storage is off: the token lasts as long as the page
    }
}

/** Bytes of /api/scan -> {seq, count, scale, points: Int16Array(4n)}; an Error for anything else. */
export function parseScan(buffer) {
    const data = new DataView(buffer);
    if (buffer.byteLength < SCAN_HEAD || data.getUint32(0, true) !== 0x5354444e || data.getUint32(4, true) !== 1)
        throw new Error("not a scan");
    const count = data.getUint32(24, true);
    if (buffer.byteLength < SCAN_HEAD + 8 * count) throw new Error("a scan that ends early");
    return {
        seq: Number(data.getBigUint64(8, true)),
        count,
        scale: data.getFloat32(28, true),
        points: new Int16Array(buffer, SCAN_HEAD, 4 * count)
    };
}

export async function getJson(path) {
    const answer = await fetch(path, { cache: "no-store" });
    const body = await answer.json().catch(() => null);
    if (!answer.ok) throw new Error((body && body.error) || `${path}: status ${answer.status}`);
    return body;
}

export class Feed {
    /**
     * `on` has a function per event (hello, daemon, result, scan, status, map, log) and further
     *   link(state, seconds): "open", "lost" (tries again in `seconds`); ready(): the results so far are known;
     *   reset(): ndt-web began anew, what was known is void; points(scan): see parseScan.
     */
    constructor(on) {
        this.on = on;
        this.token = takeToken();
        this.next = 0; // index of the result that comes next
        this.stats = { events: 0, reconnects: 0, scans: 0, scans_skipped: 0, scan_bytes: 0, duplicates: 0 };
        this.scanWanted = null;
        this.scanBusy = false;
        this.attempt = 0;
        document.addEventListener("visibilitychange", () => this.#visibility());
        setInterval(() => this.#watch(), 2000);
    }

    start() {
        this.#close();
        this.loading = true;
        this.waiting = [];
        this.heard = performance.now();
        const source = this.source = new EventSource("/api/events");
        source.onopen = () => {
            this.heard = performance.now();
        };
        source.onerror = () => {
            if (source === this.source) this.#lost();
        };
        for (const name of EVENTS) {
            source.addEventListener(name, (event) => {
                if (source !== this.source) return;
                this.heard = performance.now();
                this.stats.events++;
                let value;
                try {
                    value = JSON.parse(event.data);
                } catch {
                    return;
                }
                this.#take(name, value, event.lastEventId);
            });
        }
    }

    #close() {
        clearTimeout(this.timer);
        if (this.source) this.source.close();
        this.source = null;
    }

    #lost() {
        this.#close();
        const seconds = RETRY_S[Math.min(this.attempt++, RETRY_S.length - 1)];
        this.stats.reconnects++;
        this.on.link("lost", seconds);
        this.timer = setTimeout(() => this.start(), seconds * 1000);
    }

    /** A connection may die without a word: silence is asked about. */
    async #watch() {
        if (!this.source || performance.now() - this.heard < SILENCE_S * 1000 || this.asking) return;
        this.asking = true;
        const source = this.source;
        try {
            await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(4000) });
            this.heard = performance.now();
        } catch {
            if (source === this.source) this.#lost();
        }
        this.asking = false;
    }

    #visibility() {
        clearTimeout(this.hiding);
        if (document.hidden)
            this.hiding = setTimeout(() => {
                this.#close();
                this.asleep = true;
            }, HIDDEN_S * 1000);
        else if (this.asleep) {
            this.asleep = false;
            this.start();
        } else
            this.#fetchScan();
    }

    #take(name, value, id) {
        if (name === "hello") {
            this.attempt = 0;
            this.on.link("open", 0);
            this.on.hello(value);
            if (value.mode === "live")
                this.#catchUp();
            else
                this.loading = false;
        } else if (name === "resync") { // this page was too slow: it asks for what it missed
            if (!this.loading) this.#catchUp();
        } else if (name === "result") {
            if (this.loading)
                this.waiting.push([value, id]);
            else
                this.#result(value, id);
        } else if (name === "scan") {
            this.on.scan(value);
            this.scanWanted = value.seq;
            this.#fetchScan();
        } else
            this.on[name](value);
    }

    #result(value, id) {
        const index = id === "" || !Number.isFinite(Number(id)) ? this.next : Number(id);
        if (index < this.next) {
            this.stats.duplicates++;
            return;
        }
        this.next = index + 1;
        this.last = value;
        this.on.result(value);
    }

    /** The results that this page lacks: all of the ring after a reload, those of the gap after a lost connection. */
    async #catchUp() {
        const source = this.source;
        this.loading = true;
        try {
            const known = this.next > 0;
            let from = known ? this.next - 1 : 0;
            for (let first = true;; first = false) {
                const page = await getJson(`/api/history?from=${from}&count=${PAGE}`);
                if (source !== this.source) return;
                if (first && known && !this.#continues(page)) {
                    this.on.reset();
                    this.next = 0;
                    this.last = null;
                    return this.#catchUp();
                }
                let index = page.first;
                for (const result of page.results) {
                    if (result) this.#result(result, String(index)); // null: overwritten while it was sent
                    index++;
                }
                from = index;
                if (page.results.length < PAGE) break;
            }
        } catch (error) {
            if (source !== this.source) return;
            this.on.log({ time_s: Date.now() / 1000, level: "warning", text: `results so far: ${error.message}` });
        }
        this.loading = false;
        const waiting = this.waiting;
        this.waiting = [];
        const at =
            this.last ? waiting.findLastIndex(([result]) => result.seq === this.last.seq && result.stamp_ns === this.last.stamp_ns) : -1;
        for (const [result, id] of waiting.slice(at + 1)) this.#result(result, id);
        this.on.ready();
    }

    /** Whether the ring of ndt-web still is the one that this page knows: its result at our last index is ours. */
    #continues(page) {
        if (page.first > this.next - 1) return true; // a long gap: the ring has moved on
        const same = page.results[0];
        return Boolean(same && this.last && same.seq === this.last.seq && same.stamp_ns === this.last.stamp_ns);
    }

    /** At most one request at a time: a slow link shows fewer scans, never older ones. */
    async #fetchScan() {
        if (this.scanWanted === null || this.scanBusy || document.hidden) {
            if (this.scanBusy) this.stats.scans_skipped++;
            return;
        }
        const seq = this.scanWanted;
        this.scanWanted = null;
        await this.fetchScan(seq);
        if (this.scanWanted !== null) this.#fetchScan();
    }

    /** Points of a scan; null where they are not kept. */
    async fetchScan(seq) {
        this.scanBusy = true;
        try {
            const answer = await fetch(`/api/scan?seq=${encodeURIComponent(seq)}`, { cache: "no-store" });
            if (!answer.ok) return null;
            const buffer = await answer.arrayBuffer();
            const scan = parseScan(buffer);
            this.stats.scans++;
            this.stats.scan_bytes += buffer.byteLength;
            this.on.points(scan);
            return scan;
        } catch {
            return null; // the connection's loss is told elsewhere
        } finally {
            this.scanBusy = false;
        }
    }

    /** Asks the daemon for something; the reply, with ok false and error also where ndt-web refuses. */
    async request(op, values = {}) {
        try {
            const answer = await fetch("/api/request", {
                method: "POST",
                headers: { "Content-Type": "application/json", Authorization: `Bearer ${this.token}` },
                body: JSON.stringify({ op, ...values }),
            });
            const body = await answer.json().catch(() => ({}));
            return answer.ok ? body : { ok: false, error: body.error || `ndt-web answers with status ${answer.status}` };
        } catch {
            return { ok: false, error: "ndt-web does not answer" };
        }
    }
}
