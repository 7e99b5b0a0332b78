// The camera: what is seen from where, and how mouse, fingers and keys move it.
//
// Positions are relative to the origin of the map [m], z up, in doubles. Three modes: "follow" looks at the vehicle from
// behind, "top" is a plan with north up and stays on the vehicle until it is moved, "free" orbits any point.

const FOV = 0.8; // vertical [rad]
const CLOSEST_M = 2;
const FARTHEST_M = 20000;
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const turn = (angle) => Math.atan2(Math.sin(angle), Math.cos(angle));

export class Camera {
    constructor() {
        this.mode = "follow";
        this.target = [0, 0, 0];
        this.distance = 60;
        this.yaw = 0; // heading of the view; in follow mode relative to the vehicle
        this.pitch = 0.5; // above the horizon
        this.topYaw = 0;
        this.topDistance = 120;
        this.pinned = true; // the target is the vehicle
        this.vehicle = null; // {position, heading}
        this.bounds = { min: [-50, -50, -5], max: [50, 50, 20] };
        this.width = 1;
        this.height = 1;
        this.version = 0; // increases with every change
        this.update();
    }

    /** Size of the picture [CSS pixels]. */
    resize(width, height) {
        if (width === this.width && height === this.height) return;
        this.width = Math.max(1, width);
        this.height = Math.max(1, height);
        this.update();
    }

    setMode(mode) {
        if (mode === "free" && this.mode === "follow") this.yaw += this.vehicle ? this.vehicle.heading : 0;
        if (mode === "follow" && this.mode !== "follow") {
            this.yaw = 0;
            this.pitch = 0.5;
            this.distance = clamp(this.distance, 15, 80);
        }
        if (mode === "free" && this.mode === "top") this.distance = this.topDistance;
        if (mode === "top" && this.mode !== "top") this.topDistance = clamp(this.distance * 1.6, 40, 5000);
        this.mode = mode;
        this.pinned = mode !== "free";
        if (this.pinned && this.vehicle) this.target = [...this.vehicle.position];
        this.update();
    }

    /** The vehicle has moved: heading [rad]. */
    setVehicle(position, heading) {
        const before = this.vehicle;
        const far = before && Math.hypot(position[0] - before.position[0], position[1] - before.position[1]) > 5;
        const smooth = !before || far ? heading : before.heading + 0.5 * turn(heading - before.heading);
        this.vehicle = { position: [...position], heading: turn(smooth) };
        if (!this.pinned) return;
        this.target = [...position];
        this.update();
    }

    setBounds(min, max) {
        this.bounds = { min: [...min], max: [...max] };
        this.update();
    }

    /** A box, or all, in sight: from above at an angle, or as a plan. */
    fit(box) {
        const { min, max } = box || this.bounds;
        if (this.mode === "follow") this.setMode("free");
        this.pinned = false;
        this.target = min.map((low, k) => (low + max[k]) / 2);
        const wide = (max[0] - min[0]) / Math.max(0.2, this.width / this.height), high = max[1] - min[1];
        const size = clamp(1.08 * Math.max(wide, high, 10), CLOSEST_M, FARTHEST_M) / (2 * Math.tan(FOV / 2));
        if (this.mode === "top") this.topDistance = size;
        else [this.distance, this.pitch] = [size, 0.85];
        this.update();
    }

    lookAt(position) {
        this.target = [...position];
        this.pinned = false;
        if (this.mode === "follow") this.setMode("free");
        this.target = [...position];
        this.update();
    }

    get isFlat() {
        return this.mode === "top";
    }
    get range() {
        return this.isFlat ? this.topDistance : this.distance;
    }
    /** Size of a pixel at the target [m]. */
    get pixel_m() {
        return (2 * this.range * Math.tan(FOV / 2)) / this.height;
    }
    get heading() {
        return this.mode === "follow" && this.vehicle ? this.yaw + this.vehicle.heading : this.yaw;
    }

    /** Recomputes axes, eye, near, far and the matrix that maps positions relative to the eye to clip space. */
    update() {
        const { min, max } = this.bounds;
        if (this.isFlat) {
            const [s, c] = [Math.sin(this.topYaw), Math.cos(this.topYaw)];
            this.right = [c, s, 0];
            this.up = [-s, c, 0];
            this.back = [0, 0, 1];
            const low = Math.min(min[2], this.target[2]) - 50, high = Math.max(max[2], this.target[2]) + 50;
            this.eye = [this.target[0], this.target[1], high + 1];
            this.near = 1;
            this.far = high + 1 - low;
        } else {
            const [sy, cy] = [Math.sin(this.heading), Math.cos(this.heading)];
            const [sp, cp] = [Math.sin(this.pitch), Math.cos(this.pitch)];
            this.right = [sy, -cy, 0];
            this.up = [sp * cy, sp * sy, cp];
            this.back = [-cp * cy, -cp * sy, sp];
            this.eye = this.target.map((value, k) => value + this.distance * this.back[k]);
            let far = 4 * this.distance;
            for (let i = 0; i < 8; i++) {
                const corner = [0, 1, 2].map((k) => ((i >> k) & 1 ? max[k] : min[k]));
                far = Math.max(far, 1.05 * Math.hypot(...corner.map((value, k) => value - this.eye[k])));
            }
            this.near = clamp(0.02 * this.distance, 0.2, 50);
            this.far = far;
        }
        this.clip = this.matrix();
        this.planes = this.frustum();
        this.version++;
    }

    matrix() {
        const { right, up, back, near, far } = this;
        const aspect = this.width / this.height;
        const view = [right[0], up[0], back[0], right[1], up[1], back[1], right[2], up[2], back[2]];
        const m = new Float32Array(16);
        const half = this.topDistance * Math.tan(FOV / 2);
        const sy = this.isFlat ? 1 / half : 1 / Math.tan(FOV / 2), sx = sy / aspect;
        const a = this.isFlat ? -2 / (far - near) : -(far + near) / (far - near);
        const b = this.isFlat ? -(far + near) / (far - near) : (-2 * far * near) / (far - near);
        for (let k = 0; k < 3; k++) {
            m[4 * k] = sx * view[3 * k];
            m[4 * k + 1] = sy * view[3 * k + 1];
            m[4 * k + 2] = a * view[3 * k + 2];
            m[4 * k + 3] = this.isFlat ? 0 : -view[3 * k + 2];
        }
        m[14] = b;
        m[15] = this.isFlat ? 1 : 0;
        return m;
    }

    /** Five half spaces [nx, ny, nz, d] relative to the eye: inside where n p + d >= 0. The far plane holds all. */
    frustum() {
        const m = this.clip, planes = [];
        const row = (r) => [m[r], m[r + 4], m[r + 8], m[r + 12]];
        const w = row(3);
        for (const [r, sign] of [[0, 1], [0, -1], [1, 1], [1, -1], [2, 1]]) {
            const plane = row(r).map((value, k) => w[k] + sign * value);
            const length = Math.hypot(plane[0], plane[1], plane[2]);
            planes.push(plane.map((value) => value / length));
        }
        return planes;
    }

    /** Whether a box, relative to the origin, may be in sight. */
    sees(min, max) {
        for (const [x, y, z, d] of this.planes) {
            const px = (x > 0 ? max[0] : min[0]) - this.eye[0], py = (y > 0 ? max[1] : min[1]) - this.eye[1];
            const pz = (z > 0 ? max[2] : min[2]) - this.eye[2];
            if (x * px + y * py + z * pz + d < 0) return false;
        }
        return true;
    }

    /** Pixels (CSS) per metre at a distance from the eye. */
    pixelsPerMetre(distance) {
        const unit = this.height / (2 * Math.tan(FOV / 2));
        return unit / (this.isFlat ? this.topDistance : Math.max(distance, this.near));
    }

    /** The ray through a pixel: {from, along} relative to the origin; along has length 1. */
    ray(x, y) {
        const t = Math.tan(FOV / 2), aspect = this.width / this.height;
        const u = ((2 * x) / this.width - 1) * aspect * t, v = (1 - (2 * y) / this.height) * t;
        const d = this.topDistance;
        if (this.isFlat)
            return {
                from: this.eye.map((value, k) => value + d * (u * this.right[k] + v * this.up[k])),
                along: [0, 0, -1],
            };
        const along = this.back.map((value, k) => u * this.right[k] + v * this.up[k] - value);
        const length = Math.hypot(...along);
        return { from: [...this.eye], along: along.map((value) => value / length) };
    }

    /** Where that ray meets the plane of height z; null when it does not, or very far away. */
    ground(x, y, z) {
        const { from, along } = this.ray(x, y);
        const s = (z - from[2]) / along[2];
        if (!(s > 0) || s > this.far) return null;
        return [from[0] + s * along[0], from[1] + s * along[1], z];
    }

    /** The pixel of a position: [x, y], or null behind the eye. */
    project(position) {
        const p = position.map((value, k) => value - this.eye[k]), m = this.clip;
        const w = m[3] * p[0] + m[7] * p[1] + m[11] * p[2] + m[15];
        if (w <= 0) return null;
        const x = (m[0] * p[0] + m[4] * p[1] + m[8] * p[2] + m[12]) / w;
        const y = (m[1] * p[0] + m[5] * p[1] + m[9] * p[2] + m[13]) / w;
        return [(0.5 + 0.5 * x) * this.width, (0.5 - 0.5 * y) * this.height];
    }

    orbit(dx, dy) {
        if (this.isFlat) {
            this.topYaw = turn(this.topYaw + dx);
        } else {
            this.yaw = turn(this.yaw + dx);
            this.pitch = clamp(this.pitch + dy, 0.03, 1.55);
        }
        this.update();
    }

    /** Moves the picture by pixels, along the ground. */
    pan(dx, dy) {
        if (this.mode === "follow") this.setMode("free");
        this.pinned = false;
        const s = this.pixel_m, tilt = this.isFlat ? 1 : Math.max(Math.sin(this.pitch), 0.25);
        const ahead = this.isFlat ? this.up : [Math.cos(this.heading), Math.sin(this.heading), 0];
        for (let k = 0; k < 2; k++) this.target[k] += s * (-dx * this.right[k] + (dy / tilt) * ahead[k]);
        this.update();
    }

    /** Changes the distance by a factor; the place under the pixel stays there unless the vehicle is followed. */
    zoom(factor, x, y) {
        const name = this.isFlat ? "topDistance" : "distance";
        const before = this[name];
        const place = this.pinned || x === undefined ? null : this.ground(x, y, this.target[2]);
        this[name] = clamp(before * factor, CLOSEST_M, FARTHEST_M);
        const ratio = this[name] / before;
        if (place && Math.hypot(place[0] - this.target[0], place[1] - this.target[1]) < 8 * before)
            for (let k = 0; k < 2; k++) this.target[k] = place[k] + ratio * (this.target[k] - place[k]);
        this.update();
    }
}

/** Moves a camera by the pointers, the wheel and the keys of an element; calls changed after each move. */
export class Controls {
    /** bulk(): the box that the key Home shows. */
    constructor(element, camera, changed, bulk) {
        this.bulk = bulk;
        this.element = element;
        this.camera = camera;
        this.changed = changed;
        this.pointers = new Map();
        const listen = (name, listener, options) => element.addEventListener(name, listener.bind(this), options);
        element.style.touchAction = "none";
        if (!element.hasAttribute("tabindex")) element.tabIndex = 0;
        listen("pointerdown", this.down);
        listen("pointermove", this.move);
        for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) listen(name, this.up);
        listen("wheel", this.wheel, { passive: false });
        listen("contextmenu", (event) => event.preventDefault());
        listen("keydown", (event) => {
            if (this.key(event)) event.preventDefault();
        });
    }

    down(event) {
        this.pointers.set(event.pointerId, [event.offsetX, event.offsetY]);
        this.element.setPointerCapture?.(event.pointerId);
        this.element.focus?.({ preventScroll: true });
    }

    up(event) {
        this.pointers.delete(event.pointerId);
    }

    move(event) {
        const before = this.pointers.get(event.pointerId);
        if (!before) return;
        const now = [event.offsetX, event.offsetY];
        if (this.pointers.size === 1) this.drag(event, now[0] - before[0], now[1] - before[1]);
        else if (this.pointers.size === 2) this.pinch(event.pointerId, before, now);
        this.pointers.set(event.pointerId, now);
        this.changed();
    }

    drag(event, dx, dy) {
        const second = (event.buttons & 6) !== 0 || event.shiftKey;
        const orbits = this.camera.isFlat ? second : !second;
        if (orbits) this.camera.orbit(-0.006 * dx, 0.006 * dy);
        else this.camera.pan(dx, dy);
    }

    pinch(id, before, now) {
        const [, other] = [...this.pointers].find(([key]) => key !== id);
        const was = [before[0] - other[0], before[1] - other[1]], is = [now[0] - other[0], now[1] - other[1]];
        const factor = Math.hypot(...was) / Math.max(1, Math.hypot(...is));
        const twist = turn(Math.atan2(is[1], is[0]) - Math.atan2(was[1], was[0]));
        this.camera.zoom(clamp(factor, 0.5, 2), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
        this.camera.orbit(twist, 0);
        if (this.camera.mode !== "follow") this.camera.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
    }

    wheel(event) {
        event.preventDefault();
        const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
        this.camera.zoom(Math.exp(clamp(event.deltaY * lines, -400, 400) * 0.0015), event.offsetX, event.offsetY);
        this.changed();
    }

    /** Arrows move, with shift they turn; + and - zoom; Home shows everything. Returns whether the key was one. */
    key(event) {
        if (event.ctrlKey || event.altKey || event.metaKey) return false;
        const camera = this.camera, step = 60;
        const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
        const arrow = arrows[event.key];
        if (arrow && event.shiftKey) camera.orbit(0.1 * arrow[0], -0.1 * arrow[1]);
        else if (arrow) camera.pan(step * arrow[0], step * arrow[1]);
        else if (event.key === "+" || event.key === "=") camera.zoom(0.8);
        else if (event.key === "-") camera.zoom(1.25);
        else if (event.key === "Home") camera.fit(this.bulk());
        else return false;
        this.changed();
        return true;
    }
}
