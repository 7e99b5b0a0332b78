// Programs of the view: points of the map and of the scan, eye-dome lighting, lines, shapes, the grid of the ground.
//
// Positions reach the GPU relative to the eye, subtracted in doubles: maps far from their origin do not shake.

const FULL_SCREEN = `#version 300 es
void main() {
    vec2 corner = vec2((gl_VertexID << 1) & 2, gl_VertexID & 2);
    gl_Position = vec4(2.0 * corner - 1.0, 0.0, 1.0);
}`;

// A point of a node is at offset + position * size; spacing is that of the finest node drawn around it, by octant.
const MAP_VERTEX = `#version 300 es
layout(location = 0) in vec3 a_position;
layout(location = 1) in float a_intensity;
uniform mat4 u_clip;
uniform vec3 u_offset;
uniform float u_edge;
uniform float u_spacing[8];
uniform float u_scale;
uniform vec2 u_pixels;
uniform vec2 u_heights;
uniform int u_colouring;
uniform float u_shade;
uniform vec3 u_plain;
uniform sampler2D u_ramp;
flat out vec3 v_colour;
void main() {
    vec3 p = u_offset + a_position * u_edge;
    gl_Position = u_clip * vec4(p, 1.0);
    ivec3 side = ivec3(greaterThanEqual(a_position, vec3(0.5)));
    float size = u_spacing[side.x + 2 * side.y + 4 * side.z] * u_scale / gl_Position.w;
    gl_PointSize = clamp(size, u_pixels.x, u_pixels.y);
    float height = (p.z - u_heights.x) * u_heights.y;
    float level = u_colouring == 1 ? a_intensity : clamp(height, 0.0, 1.0);
    v_colour = u_colouring == 2 ? u_plain : texelFetch(u_ramp, ivec2(255.0 * level, 0), 0).rgb;
    if (u_colouring != 1)
        v_colour *= 1.0 + u_shade * (a_intensity - 0.4);
}`;

const ROUND_FRAGMENT = `#version 300 es
precision highp float;
flat in vec3 v_colour;
out vec4 colour;
void main() {
    vec2 d = gl_PointCoord - 0.5;
    if (dot(d, d) > 0.26)
        discard;
    colour = vec4(v_colour, 1.0);
}`;

// The scan lies on surfaces of the map: u_lift.x metres, and u_lift.y per metre of distance, towards the eye keep it in front of them.
const SCAN_VERTEX = `#version 300 es
layout(location = 0) in vec3 a_position;
uniform mat4 u_clip;
uniform mat3 u_rotation;
uniform vec3 u_offset;
uniform vec4 u_toward;
uniform vec2 u_lift;
uniform float u_pixels;
uniform vec3 u_plain;
flat out vec3 v_colour;
void main() {
    vec3 p = u_rotation * a_position + u_offset;
    vec3 toward = u_toward.w > 0.0 ? u_toward.xyz : -normalize(p);
    float away = length(p), lift = u_lift.x + u_lift.y * away;
    vec4 lifted = u_clip * vec4(p + (u_toward.w > 0.0 ? lift : min(lift, 0.5 * away)) * toward, 1.0);
    gl_Position = u_clip * vec4(p, 1.0);
    gl_Position.z = lifted.z / lifted.w * gl_Position.w;
    gl_PointSize = u_pixels;
    v_colour = u_plain;
}`;

// Eye-dome lighting (Boucheny 2009): a pixel is darkened by neighbours that are nearer, which draws edges and depth.
const LIGHT_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D u_colour;
uniform highp sampler2D u_depth;
uniform vec2 u_range;
uniform float u_flat;
uniform float u_strength;
uniform int u_radius;
uniform ivec2 u_last;
uniform vec3 u_background;
uniform vec3 u_shadow;
out vec4 colour;
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    float depth = texelFetch(u_depth, at, 0).r;
    gl_FragDepth = depth;
    if (depth >= 1.0) {
        colour = vec4(u_background, 1.0);
        return;
    }
    colour = vec4(texelFetch(u_colour, at, 0).rgb, 1.0);
    if (u_strength <= 0.0)
        return;
    // Relative differences of distance, which are nearly those of its logarithm; absolute ones in a plan.
    float scale = u_flat > 0.0 ? (u_range.y - u_range.x) / u_flat
                               : (u_range.y - u_range.x) / (u_range.y - depth * (u_range.y - u_range.x));
    ivec2 low = max(at - u_radius, ivec2(0)), high = min(at + u_radius, u_last);
    vec4 others = vec4(texelFetch(u_depth, ivec2(low.x, at.y), 0).r, texelFetch(u_depth, ivec2(high.x, at.y), 0).r,
                       texelFetch(u_depth, ivec2(at.x, low.y), 0).r, texelFetch(u_depth, ivec2(at.x, high.y), 0).r);
    float sum = dot(clamp((depth - others) * scale, 0.0, 0.04), vec4(1.0));
    colour.rgb = mix(u_shadow, colour.rgb, 1.0 / (1.0 + u_strength * sum));
}`;

const COPY_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D u_colour;
uniform highp sampler2D u_depth;
uniform float u_detail;
out vec4 colour;
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy * u_detail);
    gl_FragDepth = texelFetch(u_depth, at, 0).r;
    colour = vec4(texelFetch(u_colour, at, 0).rgb, 1.0);
}`;

// Depth as bytes, for reading back.
const DEPTH_FRAGMENT = `#version 300 es
precision highp float;
uniform highp sampler2D u_depth;
uniform ivec2 u_corner;
out vec4 colour;
void main() {
    float depth = texelFetch(u_depth, u_corner + ivec2(gl_FragCoord.xy), 0).r;
    vec3 parts = fract(depth * vec3(1.0, 255.0, 65025.0));
    parts -= vec3(parts.yz / 255.0, 0.0);
    colour = vec4(parts, depth < 1.0 ? 1.0 : 0.0);
}`;

// A segment as a quad of u_width pixels, clipped in front of the eye.
const LINE_VERTEX = `#version 300 es
layout(location = 0) in vec3 a_from;
layout(location = 1) in vec3 a_to;
layout(location = 2) in vec4 a_from_colour;
layout(location = 3) in vec4 a_to_colour;
uniform mat4 u_clip;
uniform vec3 u_offset;
uniform vec2 u_viewport;
uniform float u_width;
uniform float u_near;
uniform vec4 u_tint;
out vec4 v_colour;
out float v_side;
void main() {
    vec4 from = u_clip * vec4(a_from + u_offset, 1.0), to = u_clip * vec4(a_to + u_offset, 1.0);
    if (a_from_colour.a == 0.0 || a_to_colour.a == 0.0 || (from.w < u_near && to.w < u_near)) {
        gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
        return;
    }
    if (from.w < u_near)
        from = mix(from, to, (u_near - from.w) / (to.w - from.w));
    if (to.w < u_near)
        to = mix(to, from, (u_near - to.w) / (from.w - to.w));
    vec2 along = (to.xy / to.w - from.xy / from.w) * u_viewport;
    along = dot(along, along) > 1e-12 ? normalize(along) : vec2(1.0, 0.0);
    bool is_end = gl_VertexID > 1;
    float side = (gl_VertexID & 1) == 0 ? -1.0 : 1.0;
    vec4 p = is_end ? to : from;
    vec2 shift = side * vec2(-along.y, along.x) * (u_width + 1.5) + (is_end ? 1.0 : -1.0) * along * 0.35 * u_width;
    p.xy += shift / u_viewport * p.w;
    gl_Position = p;
    v_colour = mix(is_end ? a_to_colour : a_from_colour, vec4(u_tint.rgb, 1.0), u_tint.a);
    v_colour.a = (is_end ? a_to_colour : a_from_colour).a;
    v_side = side * (u_width + 1.5);
}`;

const LINE_FRAGMENT = `#version 300 es
precision highp float;
uniform float u_width;
uniform float u_opacity;
in vec4 v_colour;
in float v_side;
out vec4 colour;
void main() {
    float cover = clamp(0.5 * (u_width - abs(v_side)) + 0.75, 0.0, 1.0);
    colour = vec4(v_colour.rgb, v_colour.a * cover * u_opacity);
}`;

const SHAPE_VERTEX = `#version 300 es
layout(location = 0) in vec3 a_position;
layout(location = 1) in vec4 a_colour;
uniform mat4 u_clip;
out vec4 v_colour;
void main() {
    gl_Position = u_clip * vec4(a_position, 1.0);
    v_colour = a_colour;
}`;

const SHAPE_FRAGMENT = `#version 300 es
precision highp float;
uniform float u_opacity;
in vec4 v_colour;
out vec4 colour;
void main() {
    colour = vec4(v_colour.rgb, v_colour.a * u_opacity);
}`;

// Lines of the ground, one pixel wide at any distance; those of a coarser step are stronger.
const GRID_VERTEX = `#version 300 es
uniform mat4 u_clip;
uniform vec3 u_centre;
uniform float u_reach;
uniform vec2 u_phase;
out vec2 v_ground;
out vec2 v_away;
void main() {
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
    v_away = corner;
    v_ground = corner * u_reach + u_phase;
    gl_Position = u_clip * vec4(u_centre + vec3(corner * u_reach, 0.0), 1.0);
}`;

const GRID_FRAGMENT = `#version 300 es
precision highp float;
uniform float u_step;
uniform vec3 u_colour;
uniform float u_opacity;
in vec2 v_ground;
in vec2 v_away;
out vec4 colour;
float lines(float step) {
    vec2 place = v_ground / step, width = fwidth(place);
    vec2 near = abs(fract(place - 0.5) - 0.5) / max(width, 1e-6);
    vec2 cover = clamp(1.0 - near, 0.0, 1.0) * clamp(0.5 / max(width, 1e-6) - 1.0, 0.0, 1.0);
    return max(cover.x, cover.y);
}
void main() {
    float fade = clamp(1.0 - length(v_away), 0.0, 1.0);
    float strength = max(0.45 * lines(u_step), lines(10.0 * u_step));
    colour = vec4(u_colour, u_opacity * strength * fade);
}`;

const SOURCES = {
    map: [MAP_VERTEX, ROUND_FRAGMENT],
    scan: [SCAN_VERTEX, ROUND_FRAGMENT],
    light: [FULL_SCREEN, LIGHT_FRAGMENT],
    copy: [FULL_SCREEN, COPY_FRAGMENT],
    depth: [FULL_SCREEN, DEPTH_FRAGMENT],
    line: [LINE_VERTEX, LINE_FRAGMENT],
    shape: [SHAPE_VERTEX, SHAPE_FRAGMENT],
    grid: [GRID_VERTEX, GRID_FRAGMENT],
};

function compile(gl, kind, source) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    return shader;
}

function link(gl, name, [vertex, fragment]) {
    const program = gl.createProgram();
    const shaders = [compile(gl, gl.VERTEX_SHADER, vertex), compile(gl, gl.FRAGMENT_SHADER, fragment)];
    for (const shader of shaders) gl.attachShader(program, shader);
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
        const logs = shaders.map((shader) => gl.getShaderInfoLog(shader)).join(" ");
        throw new Error(`program ${name}: ${gl.getProgramInfoLog(program)} ${logs}`);
    }
    for (const shader of shaders) gl.deleteShader(shader);
    const uniforms = {};
    const count = gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS) || 0;
    for (let i = 0; i < count; i++) {
        const uniform = gl.getActiveUniform(program, i).name;
        uniforms[uniform.replace(/^u_/, "").replace(/\[0\]$/, "")] = gl.getUniformLocation(program, uniform);
    }
    return { program, ...uniforms };
}

/** Compiles all programs: {map: {program, clip, offset, ...locations of uniforms}, ...}. Throws with the log. */
export function makePrograms(gl) {
    return Object.fromEntries(Object.entries(SOURCES).map(([name, sources]) => [name, link(gl, name, sources)]));
}
