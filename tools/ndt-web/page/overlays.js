// What is drawn over the map: trail, vehicle, covariance, weak axes, candidates, GNSS, arrow of an initial pose.
//
// Lines are quads of constant width on the screen. The trail keeps its texture; the few other items are built anew for
// every picture, relative to the eye.

const STRIDE = 16; // float x y z, then four bytes of colour
const ROW = 1024; // vertices in a row of a texture, as in the shader
const CHI_95 = 2.4477; // deviations that hold 95 % of a plane's normal distribution
const TRAIL_MAX = 65536;
const JUMP_M = 8;

/** Rotates by a quaternion [x, y, z, w]. */
export function rotate([x, y, z, w], [a, b, c]) {
    const tx = 2 * (y * c - z * b), ty = 2 * (z * a - x * c), tz = 2 * (x * b - y * a);
    return [a + w * tx + y * tz - z * ty, b + w * ty + z * tx - x * tz, c + w * tz + x * ty - y * tx];
}

/** Heading of a pose [x, y, z, qx, qy, qz, qw] about z [rad]. */
export function headingOf(pose) {
    const ahead = rotate(pose.slice(3), [1, 0, 0]);
    return Math.atan2(ahead[1], ahead[0]);
}

/** "#rrggbb", "#rgb" or [r, g, b] with values from 0 to 1: to [r, g, b] of the latter kind. */
export function rgb(colour) {
    if (Array.isArray(colour)) return colour;
    const digits = colour.trim().replace("#", "");
    const wide = digits.length < 6 ? [...digits].map((d) => d + d).join("") : digits;
    return [0, 2, 4].map((at) => parseInt(wide.slice(at, at + 2), 16) / 255);
}

export const mix = (a, b, t) => a.map((value, k) => value + (b[k] - value) * t);

/** Colour of a confidence from 0 to 1, from bad by fair to good; NaN and null: the colour of the unknown. */
export function confidenceColour(theme, confidence) {
    if (confidence === null || confidence === undefined || Number.isNaN(confidence)) return rgb(theme.unknown);
    const t = Math.min(Math.max(confidence, 0), 1);
    return t < 0.5 ? mix(rgb(theme.bad), rgb(theme.fair), 2 * t) : mix(rgb(theme.fair), rgb(theme.good), 2 * t - 1);
}

/** Vertices of position and colour in one buffer that grows. */
class Vertices {
    constructor(capacity) {
        this.resize(capacity);
        this.count = 0;
    }
    resize(capacity) {
        const bytes = new ArrayBuffer(capacity * STRIDE);
        if (this.colours) new Uint8Array(bytes).set(this.colours.subarray(0, this.count * STRIDE));
        this.capacity = capacity;
        this.floats = new Float32Array(bytes);
        this.colours = new Uint8Array(bytes);
    }
    add(position, colour, opacity) {
        if (this.count === this.capacity) this.resize(2 * this.capacity);
        const at = this.count++ * STRIDE;
        this.floats.set(position, at / 4);
        for (let k = 0; k < 3; k++) this.colours[at + 12 + k] = 255 * colour[k];
        this.colours[at + 15] = 255 * opacity;
    }
    get used() {
        return this.colours.subarray(0, this.count * STRIDE);
    }
}

/** Vertices of lines as a texture. */
class LineTexture {
    constructor(gl) {
        this.gl = gl;
        this.texture = gl.createTexture();
        this.rows = 0;
    }

    /** Uploads the vertices from `first` on. */
    fill(vertices, first = 0) {
        const gl = this.gl, rows = vertices.capacity / ROW, begin = Math.floor(first / ROW);
        const end = Math.ceil(vertices.count / ROW), words = new Uint32Array(vertices.floats.buffer);
        gl.bindTexture(gl.TEXTURE_2D, this.texture);
        if (rows !== this.rows) {
            gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA32UI, ROW, rows, 0, gl.RGBA_INTEGER, gl.UNSIGNED_INT, words);
            for (const name of ["MIN_FILTER", "MAG_FILTER"]) gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${name}`], gl.NEAREST);
            this.rows = rows;
        } else if (end > begin) {
            const part = words.subarray(4 * ROW * begin, 4 * ROW * end);
            gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, begin, ROW, end - begin, gl.RGBA_INTEGER, gl.UNSIGNED_INT, part);
        }
    }
}

function shapeArray(gl, buffer) {
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 3, gl.FLOAT, false, STRIDE, 0);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, STRIDE, 12);
    gl.bindVertexArray(null);
    return array;
}

/** The path of the vehicle: one vertex per pose, relative to the first. */
export class Trail {
    constructor() {
        this.items = [];
        this.stale = true;
    }

    set(items) {
        this.items = items.slice(-TRAIL_MAX);
        this.stale = true;
    }

    append(item) {
        this.items.push(item);
        if (this.items.length > TRAIL_MAX) this.items.splice(0, TRAIL_MAX / 4);
        else if (!this.stale && this.gl) return this.addLast();
        this.stale = true;
    }

    recolour() {
        this.stale = true;
    }

    setContext(gl) {
        this.gl = gl;
        this.texture = new LineTexture(gl);
        this.stale = true;
    }

    vertex(i) {
        const { pose, confidence } = this.items[i], before = i > 0 ? this.items[i - 1].pose : pose;
        const jumped = Math.hypot(pose[0] - before[0], pose[1] - before[1], pose[2] - before[2]) > JUMP_M;
        // A jump is no path: a vertex without opacity hides both segments that it ends.
        if (jumped) this.vertices.add(this.relative(pose), [0, 0, 0], 0);
        this.vertices.add(this.relative(pose), confidenceColour(this.theme, confidence), 1);
    }

    relative(pose) {
        return [0, 1, 2].map((k) => pose[k] - this.anchor[k]);
    }

    rebuild(theme) {
        this.theme = theme;
        this.anchor = this.items.length > 0 ? this.items[0].pose.slice(0, 3) : [0, 0, 0];
        this.vertices = new Vertices(ROW * Math.ceil((this.items.length + 1) / (ROW / 2)));
        for (let i = 0; i < this.items.length; i++) this.vertex(i);
        this.texture.fill(this.vertices);
        this.stale = false;
    }

    addLast() {
        const { count } = this.vertices;
        this.vertex(this.items.length - 1);
        this.texture.fill(this.vertices, count);
    }

    get segments() {
        return this.vertices ? Math.max(0, this.vertices.count - 1) : 0;
    }
}

/** Lines on the ground around a place, every step_m; each tenth is stronger, and all fade with the distance. */
export class Grid {
    setContext(gl) {
        this.gl = gl;
        this.buffer = gl.createBuffer();
        this.array = shapeArray(gl, this.buffer);
        this.key = null;
    }

    /** Rebuilds the lines where step, place or colour have changed; x and y in the map frame. */
    place(step_m, x, y, colour) {
        const period = 10 * step_m, anchor = [x, y].map((value) => Math.round(value / period) * period);
        const key = [step_m, ...anchor, colour].join();
        if (key === this.key) return;
        Object.assign(this, { key, anchor, vertices: new Vertices(4096) });
        const parts = 12, count = 40;
        for (let i = -count; i <= count; i++) {
            const strength = i % 10 === 0 ? 1 : 0.45;
            for (let part = -parts; part < parts; part++) {
                const ends = [part, part + 1].map((end) => (end * count) / parts);
                const fades = ends.map((end) => Math.max(0, 1 - Math.hypot(i, end) / count) * strength);
                if (fades[0] + fades[1] < 0.02) continue;
                for (const along of [false, true])
                    for (const k of [0, 1]) {
                        const at = along ? [i, ends[k]] : [ends[k], i];
                        this.vertices.add([at[0] * step_m, at[1] * step_m, 0], colour, Math.max(fades[k], 0.005));
                    }
            }
        }
        this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffer);
        this.gl.bufferData(this.gl.ARRAY_BUFFER, this.vertices.used, this.gl.DYNAMIC_DRAW);
    }

    get count() {
        return this.vertices.count;
    }
}

/** Items of one picture: segments (by width) and triangles; positions in the map frame, doubles. */
export class Sketch {
    constructor() {
        this.lines = new Map();
        this.shapes = new Vertices(256);
    }

    begin(eye) {
        this.eye = eye;
        for (const lines of this.lines.values()) lines.count = 0;
        this.shapes.count = 0;
    }

    relative(position) {
        return [0, 1, 2].map((k) => position[k] - this.eye[k]);
    }

    line(from, to, colour, width, opacity = 1) {
        let lines = this.lines.get(width);
        if (!lines) this.lines.set(width, (lines = new Vertices(ROW)));
        lines.add(this.relative(from), colour, opacity);
        lines.add(this.relative(to), colour, opacity);
    }

    triangle(corners, colour, opacity = 1) {
        for (const corner of corners) this.shapes.add(this.relative(corner), colour, opacity);
    }

    path(points, colour, width, opacity, closed) {
        for (let i = closed ? 0 : 1; i < points.length; i++)
            this.line(points[(i + points.length - 1) % points.length], points[i], colour, width, opacity);
    }

    /** An ellipse about a centre with half axes a and b (vectors). */
    ellipse(centre, a, b, colour, width, opacity, fill) {
        const count = 48, points = [];
        for (let i = 0; i < count; i++) {
            const [c, s] = [Math.cos((2 * Math.PI * i) / count), Math.sin((2 * Math.PI * i) / count)];
            points.push([0, 1, 2].map((k) => centre[k] + c * a[k] + s * b[k]));
        }
        if (fill > 0)
            for (let i = 0; i < count; i++) this.triangle([centre, points[i], points[(i + 1) % count]], colour, fill);
        this.path(points, colour, width, opacity, true);
    }

    /** A flat arrow head of this length at a pose, its middle on the position. */
    marker(pose, length, fill, edge, opacity, width = 2) {
        const q = pose.slice(3), at = (x, y) => {
            const p = rotate(q, [x * length, y * length, 0]);
            return [pose[0] + p[0], pose[1] + p[1], pose[2] + p[2]];
        };
        const tip = at(0.6, 0), left = at(-0.4, 0.36), notch = at(-0.2, 0), right = at(-0.4, -0.36);
        this.triangle([tip, left, notch], fill, opacity);
        this.triangle([tip, notch, right], fill, opacity);
        this.path([tip, left, notch, right], edge, width, opacity, true);
    }

    /** x, y and z of a pose, this long. */
    axes(pose, length, colours, width) {
        for (let k = 0; k < 3; k++) {
            const tip = rotate(pose.slice(3), [0, 1, 2].map((i) => (i === k ? length : 0)));
            this.line(pose.slice(0, 3), tip.map((value, i) => pose[i] + value), colours[k], width);
        }
    }

    /** An arrow from a position to another one, at one height. */
    arrow(from, to, colour, edge, head) {
        const dx = to[0] - from[0], dy = to[1] - from[1], length = Math.hypot(dx, dy);
        const [c, s] = length > 0 ? [dx / length, dy / length] : [1, 0];
        const at = (x, y) => [to[0] + x * c - y * s, to[1] + x * s + y * c, from[2]];
        const corners = [at(0, 0), at(-head, 0.42 * head), at(-head, -0.42 * head)];
        this.line(from, at(-0.9 * head, 0), edge, 9);
        this.path(corners, edge, 5, 1, true);
        this.line(from, at(-0.9 * head, 0), colour, 5);
        this.triangle(corners, colour, 1);
        this.ellipse(from, [0.22 * head, 0, 0], [0, 0.22 * head, 0], colour, 3, 1, 1);
    }

    /** A line between two positions with a ring of this radius at both. */
    ruler(from, to, colour, edge, radius) {
        for (const [tone, width] of [[edge, 6], [colour, 3]]) {
            this.line(from, to, tone, width);
            for (const end of [from, to]) this.ellipse(end, [radius, 0, 0], [0, radius, 0], tone, width, 1, 0);
        }
    }

    /** The region of the position that holds it with 95 %, and what the scan does not determine. */
    uncertainty(pose, covariance, axes, theme, pixel_m) {
        const centre = pose.slice(0, 3);
        if (covariance) {
            const [a, b] = halfAxes(covariance[0], covariance[1], covariance[7]);
            this.ellipse(centre, a, b, rgb(theme.covariance), 2.5, 1, 0.22);
        }
        for (const axis of axes || []) {
            const shift = Math.hypot(axis[0], axis[1], axis[2]), reach = Math.max(4, 55 * pixel_m);
            if (shift > 0.3) this.weakLine(centre, axis.slice(0, 3).map((value) => (value / shift) * reach), theme, 0.16 * reach);
            if (Math.abs(axis[5]) > 0.5) this.weakTurn(pose, 0.75 * reach, theme);
        }
    }

    weakLine(centre, along, theme, head) {
        const colour = rgb(theme.weak), length = Math.hypot(...along);
        const side = Math.hypot(along[0], along[1]) > 0.1 * length ? [-along[1], along[0], 0] : [length, 0, 0];
        for (const sign of [-1, 1]) {
            const tip = centre.map((value, k) => value + sign * along[k]);
            const dash = (t) => centre.map((value, k) => value + sign * t * along[k]);
            for (let t = 0.2; t < 1; t += 0.2) this.line(dash(t), dash(t + 0.12), colour, 3);
            for (const wing of [-1, 1])
                this.line(tip, tip.map((value, k) => value - (head / length) * (sign * along[k] + 0.6 * wing * side[k])), colour, 3);
        }
    }

    weakTurn(pose, radius, theme) {
        const heading = headingOf(pose), colour = rgb(theme.weak);
        for (const sign of [-1, 1]) {
            const points = [];
            for (let i = 0; i <= 12; i++) {
                const angle = heading + sign * (0.15 + 0.06 * i);
                points.push([pose[0] + radius * Math.cos(angle), pose[1] + radius * Math.sin(angle), pose[2]]);
            }
            this.path(points, colour, 3, 1, false);
        }
    }

    gnss(fix, theme, pixel_m) {
        const colour = rgb(theme.gnss), [x, y, z] = fix.position, arm = Math.max(0.6, 9 * pixel_m);
        const [dx, dy] = fix.deviation || [0, 0];
        this.line([x - arm, y, z], [x + arm, y, z], colour, 3);
        this.line([x, y - arm, z], [x, y + arm, z], colour, 3);
        if (dx > 0 && dy > 0) this.ellipse([x, y, z], [CHI_95 * dx, 0, 0], [0, CHI_95 * dy, 0], colour, 2, 0.9, 0.08);
    }
}

/** Half axes of the ellipse of 95 % of a covariance [[xx, xy], [xy, yy]], as vectors. */
export function halfAxes(xx, xy, yy) {
    const mean = (xx + yy) / 2, spread = Math.hypot((xx - yy) / 2, xy);
    const angle = 0.5 * Math.atan2(2 * xy, xx - yy);
    const [a, b] = [mean + spread, mean - spread].map((value) => CHI_95 * Math.sqrt(Math.max(value, 0)));
    return [
        [a * Math.cos(angle), a * Math.sin(angle), 0],
        [-b * Math.sin(angle), b * Math.cos(angle), 0],
    ];
}

/** Source of the sketches. */
export class SketchBuffers {
    constructor(gl) {
        this.gl = gl;
        this.lines = new Map();
        this.shapes = gl.createBuffer();
        this.shapeArray = shapeArray(gl, this.shapes);
    }

    /** Uploads what the sketch holds. */
    fill(sketch) {
        const gl = this.gl;
        gl.bindBuffer(gl.ARRAY_BUFFER, this.shapes);
        gl.bufferData(gl.ARRAY_BUFFER, sketch.shapes.used, gl.STREAM_DRAW);
        for (const [width, vertices] of sketch.lines) {
            if (!this.lines.has(width)) this.lines.set(width, new LineTexture(gl));
            if (vertices.count > 0) this.lines.get(width).fill(vertices);
        }
    }
}
