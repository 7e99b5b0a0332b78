// Programs of the view: points of the map and of the scan, eye-dome lighting, lines, shapes.
//
// Positions reach the GPU relative to the eye, subtracted in doubles: maps far from their origin do not shake.

const FULL_SCREEN = `#version 300 es
void main() {
    vec2 corner = vec2((gl_VertexID << 1) & 2, gl_VertexID & 2);
    gl_Position = vec4(2.0 * corner - 1.0, 0.0, 1.0);
}`;

// A point of a node is at offset + position * size; spacing is that of the finest node drawn around it, by octant. Points fill
// the gaps between them, up to u_pixels.y; what stands between the eye and u_reach, the vehicle, is fine dots to look through.
const MAP_VERTEX = `#version 300 es
layout(location = 0) in vec3 a_position;
layout(location = 1) in float a_intensity;
uniform mat4 u_clip;
uniform vec3 u_offset;
uniform float u_edge;
uniform float u_spacing[8];
uniform float u_scale;
uniform vec2 u_pixels;
uniform float u_reach;
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
    float most = u_pixels.y * (u_reach > 0.0 ? mix(0.3, 1.0, smoothstep(0.5, 1.1, gl_Position.w / u_reach)) : 1.0);
    gl_PointSize = min(max(size, u_pixels.x), most);
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
    ivec2 low = max(at - u_radius, ivec2(0)), high = min(at + u_radius, textureSize(u_depth, 0) - 1);
    vec4 others = vec4(texelFetch(u_depth, ivec2(low.x, at.y), 0).r, texelFetch(u_depth, ivec2(high.x, at.y), 0).r,
                       texelFetch(u_depth, ivec2(at.x, low.y), 0).r, texelFetch(u_depth, ivec2(at.x, high.y), 0).r);
    float sum = dot(clamp((depth - others) * scale, 0.0, 0.04), vec4(1.0));
    colour.rgb = mix(u_shadow, colour.rgb, 1.0 / (1.0 + u_strength * sum));
}`;

const COPY_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D u_colour;
uniform highp sampler2D u_depth;
out vec4 colour;
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
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
    ivec2 at = u_corner + ivec2(gl_FragCoord.xy), size = textureSize(u_depth, 0);
    bool is_inside = all(greaterThanEqual(at, ivec2(0))) && all(lessThan(at, size));
    float depth = is_inside ? texelFetch(u_depth, at, 0).r : 1.0;
    vec3 parts = fract(depth * vec3(1.0, 255.0, 65025.0));
    parts -= vec3(parts.yz / 255.0, 0.0);
    colour = vec4(parts, depth < 1.0 ? 1.0 : 0.0);
}`;

// A segment as a quad of u_width pixels, clipped in front of the eye. Vertices are texels (three floats and a colour), of
// which segment i joins u_step * i and the next: instances and copies of vertices are slow where a CPU draws them.
const LINE_VERTEX = `#version 300 es
uniform highp usampler2D u_vertices;
uniform int u_step;
uniform mat4 u_clip;
uniform vec3 u_offset;
uniform vec2 u_viewport;
uniform float u_width;
uniform float u_near;
uniform vec4 u_tint;
out vec4 v_colour;
out float v_side;
uvec4 vertex(int i) {
    return texelFetch(u_vertices, ivec2(i & 1023, i >> 10), 0);
}
vec4 place(uvec4 texel) {
    return u_clip * vec4(uintBitsToFloat(texel.xyz) + u_offset, 1.0);
}
void main() {
    int first = u_step * (gl_VertexID / 6), corner = gl_VertexID % 6;
    uvec4 from_texel = vertex(first), to_texel = vertex(first + 1);
    vec4 from = place(from_texel), to = place(to_texel);
    if (from_texel.w >> 24 == 0u || to_texel.w >> 24 == 0u || (from.w < u_near && to.w < u_near)) {
        gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
        return;
    }
    if (from.w < u_near)
        from = mix(from, to, (u_near - from.w) / (to.w - from.w));
    if (to.w < u_near)
        to = mix(to, from, (u_near - to.w) / (from.w - to.w));
    vec2 along = (to.xy / to.w - from.xy / from.w) * u_viewport;
    along = dot(along, along) > 1e-12 ? normalize(along) : vec2(1.0, 0.0);
    bool is_end = corner == 1 || corner == 4 || corner == 5;
    float side = corner == 2 || corner == 3 || corner == 5 ? 1.0 : -1.0;
    gl_Position = is_end ? to : from;
    vec2 shift = side * vec2(-along.y, along.x) * (u_width + 1.5) + (is_end ? 1.0 : -1.0) * along * 0.35 * u_width;
    gl_Position.xy += shift / u_viewport * gl_Position.w;
    uint colour = is_end ? to_texel.w : from_texel.w;
    v_colour = vec4(colour & 255u, colour >> 8 & 255u, colour >> 16 & 255u, colour >> 24) / 255.0;
    v_colour.rgb = mix(v_colour.rgb, u_tint.rgb, u_tint.a);
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
uniform vec3 u_offset;
out vec4 v_colour;
void main() {
    gl_Position = u_clip * vec4(a_position + u_offset, 1.0);
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

const SOURCES = {
    map: [MAP_VERTEX, ROUND_FRAGMENT],
    scan: [SCAN_VERTEX, ROUND_FRAGMENT],
    light: [FULL_SCREEN, LIGHT_FRAGMENT],
    copy: [FULL_SCREEN, COPY_FRAGMENT],
    depth: [FULL_SCREEN, DEPTH_FRAGMENT],
    line: [LINE_VERTEX, LINE_FRAGMENT],
    shape: [SHAPE_VERTEX, SHAPE_FRAGMENT],
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
