/** The pane Log: refusals and events, filtered, paused, bounded. */

import { $, h, icon, setText } from "./dom.js";

const KEPT = 500;
const KNOWN = 100;
const SHOWN = 200;
const RANK = {
    info: 0,
    warning: 1,
    error: 2
};

export class LogPane {
    constructor() {
        this.entries = [];
        this.paused = false;
        this.unseen = { warning: 0, error: 0 };
        $("log-level").addEventListener("change", () => this.draw());
        $("log-filter").addEventListener("input", () => this.draw());
        $("log-clear").addEventListener("click", () => {
            this.entries = [];
            this.draw();
        });
        $("log-pause").addEventListener("click", () => this.pause(!this.paused));
    }

    pause(on) {
        this.paused = on;
        $("log-pause").setAttribute("aria-pressed", String(on));
        if (!on)
            this.draw();
        else
            this.#button();
    }

    /** A line that repeats the one before is counted there; those that ndt-web tells again after a reconnection are known. */
    add(line) {
        if (line.time_s && this.entries.slice(-KNOWN).some((entry) => entry.told_s === line.time_s && entry.text === line.text)) return;
        const entry = {
            time: Number(line.time_s) || Date.now() / 1000,
            level: RANK[line.level] === undefined ? "info" : line.level,
            text: String(line.text),
            told_s: line.time_s,
            times: 1
        };
        const last = this.entries.at(-1);
        if (last && last.text === entry.text && last.level === entry.level) {
            last.times++;
            last.time = entry.time;
        } else
            this.entries.push(entry);
        if (this.entries.length > KEPT) this.entries.splice(0, this.entries.length - KEPT);
        if ($("pane-log").hidden && RANK[entry.level] > 0) this.unseen[entry.level]++;
        this.dirty = true;
        this.held = (this.held || 0) + (this.paused ? 1 : 0);
    }

    seen() {
        this.unseen = { warning: 0, error: 0 };
        this.dirty = true;
    }

    /** Errors where there are any, else warnings: by colour, shape and, for those who hear it, words. */
    #badge() {
        const { warning, error } = this.unseen, level = error ? "error" : "warning", number = error || warning;
        const words = [[error, "error"], [warning, "warning"]].filter(([n]) => n).map(([n, name]) => `${n} ${name}${n === 1 ? "" : "s"}`);
        $("log-badge").hidden = !number;
        $("log-badge").dataset.level = level;
        $("log-badge").title = `${words.join(", ")} not seen yet`;
        $("log-badge-icon").setAttribute("href", `#i-${level}`);
        setText($("log-badge-count"), number > 99 ? "99+" : String(number));
        setText($("log-badge-text"), ` ${words.join(", ")}`);
    }

    #button() { setText($("log-pause"), this.paused ? `Go on${this.held ? ` (${this.held} new)` : ""}` : "Pause"); }

    drawIfNeeded() {
        if (!this.dirty) return;
        this.#badge();
        if (this.paused) {
            this.dirty = false;
            this.#button();
        } else if (!$("pane-log").hidden || matchMedia("(min-width: 2000px)").matches)
            this.draw();
    }

    draw() {
        this.dirty = false;
        this.held = 0;
        this.#button();
        const least = RANK[$("log-level").value], text = $("log-filter").value.trim().toLowerCase();
        const list =
            this.entries.filter((entry) => RANK[entry.level] >= least && entry.text.toLowerCase().includes(text)).slice(-SHOWN).reverse();
        $("log").replaceChildren(...list.map(
            (entry) =>
                h("li", { "data-level": entry.level },
                  h("span", { title: entry.level }, icon(entry.level), h("span", { class: "visually-hidden" }, entry.level)),
                  h("time", {}, new Date(entry.time * 1000).toLocaleTimeString([], { hour12: false })),
                  h("span", {}, entry.text, entry.times > 1 ? h("small", {}, ` × ${entry.times}`) : null))));
        $("log-empty").hidden = list.length > 0;
        setText(
            $("log-empty"),
            this.entries.length ? "No line passes the filter."
                                : "Nothing yet. Refused scans and requests, lost connections and changes of the state appear here.");
    }
}
