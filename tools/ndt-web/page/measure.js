/** Lengths on the map: the scale bar, and a ruler between two places. */

import { $, fixed, setText, tick } from "./dom.js";

const BAR_PX = 110;
const CLICK_PX = 4; // a press that moves less is a click: the next one is the other end

/** The largest of 1, 2, 5 times a power of ten that is no larger. */
export function roundDown(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [5, 2, 1].find((step) => step * power <= value * 1.001);
}

/** 0.2 -> "20 cm", 50 -> "50 m", 2000 -> "2 km" */
function roundLength(metres) {
    return metres < 1 ? `${tick(metres * 100)} cm` : metres < 1000 ? `${tick(metres)} m` : `${tick(metres / 1000)} km`;
}

export class Measure {
    /** onArm(): the map is used for the ruler from now on. */
    constructor(view, onArm) {
        Object.assign(this, { view, onArm, armed: false, from: null, to: null });
        this.#listen();
    }

    /** Draws what follows the camera. */
    draw() {
        this.#bar();
        this.#label();
    }

    /** As long as a round length is where the camera looks; in perspective, nearer things are larger. */
    #bar() {
        const { camera } = this.view, length_m = roundDown(BAR_PX * camera.pixel_m);
        $("scale-bar").style.width = `${(length_m / camera.pixel_m).toFixed(1)}px`;
        setText($("scale-text"), roundLength(length_m) + (camera.isFlat ? "" : camera.pinned ? " at the vehicle" : " in the middle"));
    }

    arm(on) {
        if (on === this.armed) return;
        if (on) this.onArm();
        this.armed = on;
        $("ruler-overlay").hidden = !on;
        $("ruler").setAttribute("aria-pressed", String(on));
        this.view.hold(on);
        this.#set(null, null);
        if (on) $("view").focus({ preventScroll: true });
    }

    /** Both ends, in the map frame; null: not yet. */
    #set(from, to) {
        Object.assign(this, { from, to });
        this.view.showRuler(from, to || from);
        setText($("ruler-prompt"), from ? "" : "Press at a place and drag to another one, or click both. By keyboard: arrows, Enter. Escape ends.");
        $("ruler-prompt").hidden = !this.armed || Boolean(from);
        this.#label();
    }

    /** Beside the middle of the line. */
    #label() {
        const { from, to, view } = this, label = $("ruler-label");
        const at = from && to && view.project(from.map((value, k) => (value + to[k]) / 2));
        label.hidden = !at;
        if (!at) return;
        const level_m = Math.hypot(to[0] - from[0], to[1] - from[1]), up_m = to[2] - from[2];
        setText($("ruler-length"), `${fixed(Math.hypot(level_m, up_m))} m`);
        setText($("ruler-parts"), `level ${fixed(level_m)} m, ${up_m < -0.005 ? "down" : "up"} ${fixed(Math.abs(up_m))} m`);
        const box = $("stage").getBoundingClientRect(), clamp = (value, most) => Math.max(8, Math.min(value, most - 8));
        label.style.left = `${clamp(at[0] + 14, box.width - label.offsetWidth)}px`;
        label.style.top = `${clamp(at[1] - label.offsetHeight / 2, box.height - label.offsetHeight)}px`;
    }

    /** The next end: the first one begins anew. */
    #next(place) {
        if (!place) return;
        if (!this.from || this.isDone) this.#set(place, null);
        else this.#set(this.from, place);
        this.#finish(Boolean(this.to));
    }

    /** Told to those who hear the page once, not for every move. */
    #finish(isDone) {
        this.isDone = isDone;
        if (isDone) setText($("announce"), $("ruler-label").textContent);
    }

    #listen() {
        const overlay = $("ruler-overlay");
        let pressed = null;
        const pick = (event) => this.view.pick(event.offsetX, event.offsetY);
        overlay.addEventListener("pointerdown", (event) => {
            if (event.button !== 0 || !event.isPrimary) return;
            event.preventDefault();
            overlay.setPointerCapture(event.pointerId);
            pressed = [event.offsetX, event.offsetY];
            $("view").blur(); // the cross is for keys
            this.#next(pick(event));
        });
        overlay.addEventListener("pointermove", (event) => {
            if (!this.from || this.isDone) return;
            const place = pick(event);
            if (place) this.#set(this.from, place);
        });
        overlay.addEventListener("pointerup", (event) => {
            const moved = pressed && Math.hypot(event.offsetX - pressed[0], event.offsetY - pressed[1]) > CLICK_PX;
            pressed = null;
            if (moved && this.to) this.#finish(true);
        });
        overlay.addEventListener("wheel", (event) => {
            event.preventDefault();
            this.view.controls.wheel(event);
        }, { passive: false });
        $("view").addEventListener("keydown", (event) => {
            if (!this.armed || event.key !== "Enter") return;
            event.preventDefault();
            const { clientWidth, clientHeight } = $("view");
            this.#next(this.view.pick(clientWidth / 2, clientHeight / 2));
        });
        $("ruler").addEventListener("click", () => this.arm(!this.armed));
    }
}
