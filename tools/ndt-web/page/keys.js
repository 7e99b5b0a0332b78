/** Keyboard: one table of keys that acts and that is the list of `?`. */

import { $, h, setText } from "./dom.js";

const STEPS = {
    ArrowLeft: -1,
    ArrowRight: 1,
    PageUp: -10,
    PageDown: 10,
    Home: -1e9,
    End: 1e9
};

export class Keys {
    /**
     * `table` has rows [key, what it does, function or null] and the titles of groups as single texts. `on` has escape(),
     * tab(number from 0), player() (null unless a replay is shown) and about(): the last line of the list.
     */
    constructor(table, on) {
        this.table = table;
        this.on = on;
        addEventListener("keydown", (event) => this.#key(event));
        // In a replay left and right are scans also where the map has the focus, before the camera takes them.
        $("view").addEventListener("keydown", (event) => {
            if (!event.shiftKey && this.#replayKey(event)) event.stopImmediatePropagation();
        }, true);
    }

    showList() {
        const groups = [];
        for (const row of this.table) {
            if (typeof row === "string")
                groups.push([h("h3", {}, row), h("dl")]);
            else
                groups.at(-1)[1].append(h("dt", {}, h("kbd", {}, row[0])), h("dd", {}, row[1]));
        }
        $("help-list").replaceChildren(...groups.map(([title, list]) => h("div", {}, title, list)));
        setText($("help-about"), this.on.about());
        $("help-dialog").showModal();
    }

    #key(event) {
        if (event.key === "Escape") {
            this.on.escape();
            return;
        }
        const { target } = event;
        if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
        if (target.matches("input:not([type=range]):not([type=checkbox]), select, textarea")) return;
        const name = event.key === " " ? "Space" : event.key.length === 1 ? event.key.toUpperCase() : event.key;
        if (name === "Space" && target.matches("button, input, summary")) return;
        if (/^[1-4]$/.test(name)) {
            this.on.tab(Number(name) - 1);
            return;
        }
        if (this.#replayKey(event)) return;
        const row = this.table.find((entry) => Array.isArray(entry) && entry[0] === name);
        if (!row || !row[2]) return;
        event.preventDefault();
        row[2]();
    }

    #replayKey(event) {
        const player = this.on.player(), by = STEPS[event.key], { target } = event;
        if (!player || !by || event.ctrlKey || event.altKey || event.metaKey) return false;
        if (target.getAttribute("role") === "tab" || target.matches("input, select")) return false;
        event.preventDefault();
        player.step(by);
        return true;
    }
}
