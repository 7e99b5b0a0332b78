// Draws the map, the scan and the items over them in WebGL2; the view decides what and when.

import { rgb, rotate, SketchBuffers } from "./overlays.js";
import { makePrograms } from "./shaders.js";

const COLOURINGS = { height: 0, intensity: 1, plain: 2 };
const PICK_RADIUS = 7; // pixels
const LARGEST = 2.5; // a point of the map over the size that the user has chosen

export class Painter {
    /** scene: what is drawn (the view): camera, tiles, trail, sketch, grid, theme, scan, ratio of pixels. */
    constructor(gl, scene) {
        this.gl = gl;
        this.scene = scene;
        this.layers = null;
        this.programs = makePrograms(gl);
        this.buffers = new SketchBuffers(gl);
        this.nothing = gl.createVertexArray();
        this.ramp = gl.createTexture();
        this.scanBuffer = gl.createBuffer();
        this.scanArray = gl.createVertexArray();
        gl.bindVertexArray(this.scanArray);
        gl.bindBuffer(gl.ARRAY_BUFFER, this.scanBuffer);
        gl.enableVertexAttribArray(0);
        gl.vertexAttribPointer(0, 3, gl.SHORT, false, 8, 0);
        gl.bindVertexArray(null);
        this.uploadRamp();
        this.uploadScan();
    }

    uploadRamp() {
        const gl = this.gl, stops = this.scene.theme.ramp.map(rgb), texels = new Uint8Array(256 * 4);
        for (let i = 0; i < 256; i++) {
            const place = (i / 255) * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2);
            for (let k = 0; k < 3; k++)
                texels[4 * i + k] = 255 * (stops[low][k] + (place - low) * (stops[low + 1][k] - stops[low][k]));
            texels[4 * i + 3] = 255;
        }
        gl.bindTexture(gl.TEXTURE_2D, this.ramp);
        gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, texels);
        for (const name of ["MIN_FILTER", "MAG_FILTER"]) gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${name}`], gl.NEAREST);
    }

    uploadScan() {
        if (!this.scene.scan || this.gl.isContextLost()) return;
        this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.scanBuffer);
        this.gl.bufferData(this.gl.ARRAY_BUFFER, this.scene.scan.points, this.gl.DYNAMIC_DRAW);
    }

    layer(width, height) {
        const gl = this.gl, frame = gl.createFramebuffer(), colour = gl.createTexture(), depth = gl.createTexture();
        gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
        for (const [texture, format, point] of [
            [colour, gl.RGBA8, gl.COLOR_ATTACHMENT0],
            [depth, gl.DEPTH_COMPONENT24, gl.DEPTH_ATTACHMENT],
        ]) {
            gl.bindTexture(gl.TEXTURE_2D, texture);
            gl.texStorage2D(gl.TEXTURE_2D, 1, format, width, height);
            for (const name of ["MIN_FILTER", "MAG_FILTER"]) gl.texParameteri(gl.TEXTURE_2D, gl[`TEXTURE_${name}`], gl.NEAREST);
            gl.framebufferTexture2D(gl.FRAMEBUFFER, point, gl.TEXTURE_2D, texture, 0);
        }
        return { frame, colour, depth, width, height };
    }

    prepareLayers() {
        const gl = this.gl, { width, height } = this.scene.canvas;
        if (this.layers && this.layers.raw.width === width && this.layers.raw.height === height) return;
        for (const layer of this.layers ? Object.values(this.layers) : []) {
            gl.deleteFramebuffer(layer.frame);
            gl.deleteTexture(layer.colour);
            gl.deleteTexture(layer.depth);
        }
        this.layers = { raw: this.layer(width, height), lit: this.layer(width, height) };
    }

    /** Straight to the canvas: on a CPU, light and copies cost as much as the points. */
    drawPlainMap(nodes) {
        const { gl, scene } = this;
        gl.bindFramebuffer(gl.FRAMEBUFFER, null);
        this.clear(scene.canvas.width, scene.canvas.height, rgb(scene.theme.background));
        this.drawNodes(nodes);
        this.drawGrid();
    }

    /** Into the layers, with light. */
    drawMap(nodes) {
        const gl = this.gl;
        this.prepareLayers();
        gl.bindFramebuffer(gl.FRAMEBUFFER, this.layers.raw.frame);
        this.clear(this.layers.raw.width, this.layers.raw.height, [0, 0, 0]);
        this.drawNodes(nodes);
        this.light();
        this.drawGrid();
    }

    clear(width, height, [r, g, b]) {
        const gl = this.gl;
        gl.viewport(0, 0, width, height);
        gl.disable(gl.BLEND);
        gl.enable(gl.DEPTH_TEST);
        gl.depthMask(true);
        gl.clearColor(r, g, b, 1);
        gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    }

    drawNodes(chosen) {
        const gl = this.gl, camera = this.scene.camera, p = this.programs.map, { ratio } = this.scene;
        const [low, high] = this.scene.tiles.heights || [0, 1];
        gl.useProgram(p.program);
        gl.uniformMatrix4fv(p.clip, false, camera.clip);
        const unit = camera.pixelsPerMetre(1) * ratio;
        gl.uniform1f(p.scale, 1.4 * unit * (this.scene.pointSize / 2));
        gl.uniform2f(p.pixels, this.scene.pointSize * ratio * 0.7, LARGEST * this.scene.pointSize * ratio);
        gl.uniform1f(p.reach, camera.mode === "follow" ? camera.distance : 0);
        gl.uniform2f(p.heights, low - camera.eye[2], 1 / (high - low));
        const hasIntensity = this.scene.tiles.info && this.scene.tiles.info.has_intensity;
        gl.uniform1i(p.colouring, this.scene.colouring === "intensity" && !hasIntensity ? 0 : COLOURINGS[this.scene.colouring]);
        gl.uniform1f(p.shade, hasIntensity ? 0.35 : 0);
        gl.uniform3fv(p.plain, rgb(this.scene.theme.plain));
        gl.activeTexture(gl.TEXTURE0);
        gl.bindTexture(gl.TEXTURE_2D, this.ramp);
        gl.uniform1i(p.ramp, 0);
        for (const node of chosen) {
            gl.uniform3f(p.offset, node.min[0] - camera.eye[0], node.min[1] - camera.eye[1], node.min[2] - camera.eye[2]);
            gl.uniform1f(p.edge, node.size);
            gl.uniform1fv(p.spacing, node.gaps);
            gl.bindVertexArray(node.array);
            gl.drawArrays(gl.POINTS, 0, node.count);
        }
    }

    light() {
        const gl = this.gl, camera = this.scene.camera, p = this.programs.light, { raw, lit } = this.layers;
        gl.bindFramebuffer(gl.FRAMEBUFFER, lit.frame);
        gl.useProgram(p.program);
        this.bindLayer(p, raw);
        gl.uniform2f(p.range, camera.near, camera.far);
        gl.uniform1f(p.flat, camera.isFlat ? 250 * camera.pixel_m : 0);
        gl.uniform1f(p.strength, camera.isFlat ? 6 : 14);
        gl.uniform1i(p.radius, this.scene.ratio > 1.4 ? 2 : 1);
        gl.uniform3fv(p.background, rgb(this.scene.theme.background));
        gl.uniform3fv(p.shadow, rgb(this.scene.theme.shadow));
        this.drawFullScreen();
    }

    bindLayer(program, layer) {
        const gl = this.gl;
        gl.activeTexture(gl.TEXTURE0);
        gl.bindTexture(gl.TEXTURE_2D, layer.colour);
        gl.activeTexture(gl.TEXTURE1);
        gl.bindTexture(gl.TEXTURE_2D, layer.depth);
        gl.activeTexture(gl.TEXTURE0);
        if (program.colour) gl.uniform1i(program.colour, 0);
        gl.uniform1i(program.depth, 1);
    }

    drawFullScreen() {
        const gl = this.gl;
        gl.depthFunc(gl.ALWAYS);
        gl.bindVertexArray(this.nothing);
        gl.drawArrays(gl.TRIANGLES, 0, 3);
        gl.depthFunc(gl.LEQUAL);
    }

    drawGrid() {
        const gl = this.gl, { camera, grid, origin } = this.scene;
        const step_m = 10 ** Math.ceil(Math.log10(camera.pixel_m * 14));
        grid.place(step_m, camera.target[0] + origin[0], camera.target[1] + origin[1], rgb(this.scene.theme.grid));
        const offset = this.scene.relative([...grid.anchor, this.scene.ground]).map((value, k) => value - camera.eye[k]);
        this.shapeProgram(this.scene.theme.gridOpacity, offset);
        this.blend(true);
        gl.depthMask(false);
        gl.bindVertexArray(grid.array);
        gl.drawArrays(gl.LINES, 0, grid.count);
        gl.depthMask(true);
        this.blend(false);
    }

    blend(on) {
        const gl = this.gl;
        if (!on) return gl.disable(gl.BLEND);
        gl.enable(gl.BLEND);
        gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    }

    /** Copies the map with its depths to the canvas. */
    compose() {
        const gl = this.gl, p = this.programs.copy, { lit } = this.layers;
        gl.bindFramebuffer(gl.FRAMEBUFFER, null);
        gl.viewport(0, 0, this.scene.canvas.width, this.scene.canvas.height);
        gl.enable(gl.DEPTH_TEST);
        gl.depthMask(true);
        gl.useProgram(p.program);
        this.bindLayer(p, lit);
        this.drawFullScreen();
    }

    /** Scan, trail and sketch, over what compose or drawPlainMap has drawn. */
    drawItems() {
        const gl = this.gl;
        this.drawScan();
        this.blend(true);
        gl.depthMask(false);
        this.drawTrail();
        this.drawSketch();
        gl.depthMask(true);
        this.blend(false);
    }

    drawScan() {
        if (!this.scene.scan || !this.scene.scan.pose) return;
        const gl = this.gl, camera = this.scene.camera, p = this.programs.scan, { pose, scale, count } = this.scene.scan;
        const columns = [0, 1, 2].map((k) => rotate(pose.slice(3), [0, 1, 2].map((i) => (i === k ? scale : 0))));
        const offset = this.scene.relative(pose).map((value, k) => value - camera.eye[k]);
        gl.useProgram(p.program);
        gl.uniformMatrix4fv(p.clip, false, camera.clip);
        gl.uniformMatrix3fv(p.rotation, false, columns.flat());
        gl.uniform3fv(p.offset, offset);
        gl.uniform4f(p.toward, 0, 0, 1, camera.isFlat ? 1 : 0);
        // As far as the discs of the map's points reach over the ground behind them.
        gl.uniform2f(p.lift, camera.isFlat ? 40 : 0.25, camera.isFlat ? 0 : 12 / camera.pixelsPerMetre(1));
        gl.uniform1f(p.pixels, Math.max(1.5, this.scene.pointSize + (camera.range < 100 ? 1 : 0.4)) * this.scene.ratio);
        gl.uniform3fv(p.plain, rgb(this.scene.theme.scan));
        gl.bindVertexArray(this.scanArray);
        gl.drawArrays(gl.POINTS, 0, count);
    }

    shapeProgram(opacity, offset) {
        const gl = this.gl, p = this.programs.shape;
        gl.useProgram(p.program);
        gl.uniformMatrix4fv(p.clip, false, this.scene.camera.clip);
        gl.uniform3fv(p.offset, offset);
        gl.uniform1f(p.opacity, opacity);
    }

    /** `step`: 1 for a path, 2 for pairs of vertices; `tint`: a colour instead of theirs, or null. */
    drawLines(texture, step, count, width, opacity, offset, tint) {
        const gl = this.gl, p = this.programs.line;
        gl.useProgram(p.program);
        gl.uniformMatrix4fv(p.clip, false, this.scene.camera.clip);
        gl.uniform3fv(p.offset, offset);
        gl.uniform2f(p.viewport, this.scene.canvas.width, this.scene.canvas.height);
        gl.uniform1f(p.width, width * this.scene.ratio);
        gl.uniform1f(p.near, this.scene.camera.isFlat ? -1 : this.scene.camera.near);
        gl.uniform4fv(p.tint, tint || [0, 0, 0, 0]);
        gl.uniform1f(p.opacity, opacity);
        gl.uniform1i(p.step, step);
        gl.activeTexture(gl.TEXTURE0);
        gl.bindTexture(gl.TEXTURE_2D, texture.texture);
        gl.uniform1i(p.vertices, 0);
        gl.bindVertexArray(this.nothing);
        gl.drawArrays(gl.TRIANGLES, 0, 6 * count);
    }

    /** Lines behind the map are drawn faintly. */
    twice(hidden, draw) {
        const gl = this.gl;
        gl.depthFunc(gl.GREATER);
        draw(hidden);
        gl.depthFunc(gl.LEQUAL);
        draw(1);
    }

    drawTrail() {
        const gl = this.gl;
        if (this.scene.trail.items.length < 2) return;
        if (this.scene.trail.stale) this.scene.trail.rebuild(this.scene.theme);
        const offset = this.scene.relative(this.scene.trail.anchor).map((value, k) => value - this.scene.camera.eye[k]);
        const edge = [...rgb(this.scene.theme.edge), 1];
        const { texture, segments } = this.scene.trail;
        const draw = (width, opacity, tint) => this.drawLines(texture, 1, segments, width, opacity, offset, tint);
        if (this.scene.camera.isFlat) gl.disable(gl.DEPTH_TEST);
        this.twice(0.35, (opacity) => {
            draw(6, 0.55 * opacity, edge);
            draw(3.5, opacity, null);
        });
        gl.enable(gl.DEPTH_TEST);
    }

    drawSketch() {
        const { gl, buffers } = this, { sketch } = this.scene;
        if (this.scene.camera.isFlat) gl.disable(gl.DEPTH_TEST);
        buffers.fill(sketch);
        const lines = [...sketch.lines].filter(([, vertices]) => vertices.count > 0).sort((a, b) => b[0] - a[0]);
        this.twice(0.75, (opacity) => {
            if (sketch.shapes.count > 0) {
                this.shapeProgram(opacity, [0, 0, 0]);
                gl.bindVertexArray(buffers.shapeArray);
                gl.drawArrays(gl.TRIANGLES, 0, sketch.shapes.count);
            }
            for (const [width, { count }] of lines)
                this.drawLines(buffers.lines.get(width), 2, count / 2, width, opacity, [0, 0, 0], null);
        });
        gl.enable(gl.DEPTH_TEST);
        gl.bindVertexArray(null);
    }

    // ---- picking

    /** The point of the map nearest to a pixel, relative to the origin; from the depths of the last picture. */
    pickPoint(x, y) {
        const gl = this.gl, camera = this.scene.camera, side = 2 * PICK_RADIUS + 1;
        if (!this.layers) return null;
        const { raw } = this.layers, scale = this.scene.ratio;
        const [px, py] = [Math.round(x * scale), Math.round(raw.height - y * scale)];
        const corner = [px - PICK_RADIUS, py - PICK_RADIUS];
        if (px < 0 || py < 0 || px >= raw.width || py >= raw.height) return null;
        if (!this.pickLayer || !gl.isFramebuffer(this.pickLayer.frame)) this.pickLayer = this.layer(side, side);
        gl.bindFramebuffer(gl.FRAMEBUFFER, this.pickLayer.frame);
        gl.viewport(0, 0, side, side);
        gl.useProgram(this.programs.depth.program);
        this.bindLayer(this.programs.depth, raw);
        gl.uniform2i(this.programs.depth.corner, corner[0], corner[1]);
        this.drawFullScreen();
        const bytes = new Uint8Array(4 * side * side);
        gl.readPixels(0, 0, side, side, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
        let best = Infinity, found = null;
        for (let i = 0; i < side * side; i++) {
            const dx = (i % side) - PICK_RADIUS, dy = Math.floor(i / side) - PICK_RADIUS, away = dx * dx + dy * dy;
            if (bytes[4 * i + 3] === 0 || away >= best) continue;
            best = away;
            found = (bytes[4 * i] + bytes[4 * i + 1] / 255 + bytes[4 * i + 2] / 65025) / 255;
        }
        return found === null ? null : this.unproject(x, y, found);
    }

    unproject(x, y, depth) {
        const camera = this.scene.camera, { from, along } = camera.ray(x, y), { near, far } = camera;
        if (camera.isFlat) return [from[0], from[1], camera.eye[2] - (near + depth * (far - near))];
        const forward = (near * far) / (far - depth * (far - near));
        const cosine = -(along[0] * camera.back[0] + along[1] * camera.back[1] + along[2] * camera.back[2]);
        return from.map((value, k) => value + (forward / cosine) * along[k]);
    }
}
