/** Elements and numbers as text. Text from outside only ever becomes a text node. */

export const $ = (id) => document.getElementById(id);

/** An element: h("p", {class: "muted"}, "text", child). Attributes that are null or false are left out. */
export function h(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (name === "onclick")
            element.addEventListener("click", value);
        else if (value !== null && value !== undefined && value !== false)
            element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** One of the symbols of index.html. */
export function icon(name) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "icon");
    svg.setAttribute("aria-hidden", "true");
    const use = document.createElementNS(SVG, "use");
    use.setAttribute("href", "#i-" + name);
    svg.append(use);
    return svg;
}

/** Sets the text where it changes: the browser does no work for what stays. */
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

const NONE = "–";
const MINUS = "\u2212";

/** A number with `digits` after the point; a dash where there is none. */
export function fixed(value, digits = 2) {
    if (value === null || value === undefined || !Number.isFinite(Number(value))) return NONE;
    return Number(value).toFixed(digits).replace("-", MINUS);
}

/** Digits so that about three count: 0.0123, 1.23, 12.3, 123. */
export function short(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
    const size = Math.abs(value);
    if (size === 0) return "0";
    if (size >= 1e6 || size < 1e-3) return value.toExponential(1).replace("e+", "e").replace(/-/g, MINUS);
    return fixed(value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** A round number of an axis, without zeros at the end. */
export function tick(value) { return String(Number(value.toPrecision(4))); }

/** A count with thin spaces between thousands. */
export function count(value) {
    if (value === null || value === undefined || value === "") return NONE;
    return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

export function bytes(value) {
    if (!Number.isFinite(value)) return NONE;
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let at = 0;
    while (value >= 1024 && at + 1 < units.length) {
        value /= 1024;
        at++;
    }
    return `${value.toFixed(at && value < 100 ? 1 : 0)} ${units[at]}`;
}

/** 75 -> "1 min 15 s" */
export function duration(seconds) {
    if (!Number.isFinite(seconds)) return NONE;
    const s = Math.max(0, Math.floor(seconds));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** 75.25 -> "1:15.3" */
export function clock(seconds) {
    const s = Math.max(0, seconds);
    const minutes = Math.floor((s + 0.05) / 60);
    return `${minutes}:${Math.max(0, s - minutes * 60).toFixed(1).padStart(4, "0")}`;
}

/** Quaternion x y z w at `at` of a pose -> angle about z, degrees */
export function yawDeg(pose, at = 3) {
    const [x, y, z, w] = [pose[at], pose[at + 1], pose[at + 2], pose[at + 3]];
    return Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) * 180 / Math.PI;
}

/** Pose from position, m, and angle about z, degrees */
export function poseOf(x, y, z, yaw) {
    const half = yaw * Math.PI / 360;
    return [x, y, z, 0, 0, Math.sin(half), Math.cos(half)];
}

/** A list of names and values of a <dl>. Values are text or elements; null leaves the row out. */
export function fillValues(list, rows) {
    const children = [];
    for (const [name, value] of rows) {
        if (value === null || value === undefined) continue;
        children.push(h("dt", {}, name), h("dd", {}, value));
    }
    list.replaceChildren(...children);
}

/** "12.3 m" with the unit muted; no space before a degree sign */
export function withUnit(text, unit) {
    return h("span", {}, text, unit.startsWith("°") ? "" : "\u00a0", h("span", { class: "unit" }, unit));
}

let theme = null;

/** Colour of a CSS variable in the theme in force. */
export function colour(name) {
    if (!theme) theme = new Map();
    if (!theme.has(name)) theme.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
    return theme.get(name);
}

export function setTheme(name) {
    document.documentElement.dataset.theme = name;
    theme = null;
}
