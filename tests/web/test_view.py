"""The view of the map: places, cameras, memory, lost contexts, and that nothing is drawn when nothing changes."""
import pathlib
import tempfile

import numpy
import pytest
from page_driver import number_in, pixels_that_changed, pixels_unlike_background
from web_programs import Drive, Web, wait_until

COMPLETE = "() => ndt.view.stats.points > 0 && ndt.view.stats.complete"


def read_pcd(path):
    """n x 3 coordinates of a binary PCD of doubles or floats."""
    data = pathlib.Path(path).read_bytes()
    head, _, body = data.partition(b"DATA binary\n")
    fields = {line.split()[0]: line.split()[1:] for line in head.decode().splitlines() if not line.startswith("#")}
    kinds = [f"<f{size}" if kind == "F" else f"<{kind.lower()}{size}" for size, kind in zip(fields["SIZE"], fields["TYPE"])]
    table = numpy.frombuffer(body, numpy.dtype(list(zip(fields["FIELDS"], kinds))), int(fields["POINTS"][0]))
    return numpy.stack([table[k].astype(float) for k in "xyz"], axis=1)


@pytest.fixture(scope="module")
def far_map(bin_dir):
    """A street at UTM coordinates."""
    return Drive(bin_dir, pathlib.Path(tempfile.mkdtemp()), "--world", "utm", "--scans", 5).map


@pytest.fixture
def view(bin_dir, folder, far_map, open_page):
    web = Web(bin_dir, folder, "--map", far_map, token=None).start()
    page = open_page(web.url)
    page.evaluate("() => { ndt.view.setMode('free'); ndt.view.fit(); }")
    page.wait_for("the map is complete", COMPLETE)
    yield page
    page.page.goto("about:blank")
    web.end()


def test_places(view, far_map):
    """What is picked is a point of the map, to millimetres times the distance; in the plan north is up."""
    points = read_pcd(far_map)
    view.evaluate("() => { const v = ndt.view; v.setMode('top'); v.fit(); v.setPointSize(4); }")
    view.wait_for("the map is complete", COMPLETE)
    box = view.evaluate("() => [ndt.view.canvas.clientWidth, ndt.view.canvas.clientHeight]")
    pixel_m = view.evaluate("() => ndt.view.camera.pixel_m")
    for x, y in ((0.5, 0.5), (0.4, 0.55), (0.6, 0.4), (0.5, 0.3)):
        place = view.evaluate("([x, y]) => ndt.view.pick(x, y)", [x * box[0], y * box[1]])
        assert numpy.all(points.min(axis=0) - 60 < place) and numpy.all(place < points.max(axis=0) + 60)
        away = numpy.linalg.norm(points[:, :2] - place[:2], axis=1)
        near = points[away < 9 * pixel_m]
        if len(near):
            assert numpy.min(numpy.abs(near[:, 2] - place[2])) < 0.02, (place, near[:5])
    centre, north = view.evaluate("w => [0.5, 0.2].map(y => ndt.view.placeAt(w, y * innerHeight, 120))", box[0] / 2)
    assert north[1] > centre[1] + 10 and abs(north[0] - centre[0]) < 1e-6
    view.evaluate("() => { const v = ndt.view; v.setMode('free'); v.camera.pitch = 0.03; v.camera.update(); v.cameraMoved(); }")
    assert view.evaluate("() => ndt.view.pick(200, 2)") is None


def test_cameras(view):
    """Follow stays on the vehicle until the picture is moved; keys and wheel move it."""
    pose = view.evaluate("() => [...ndt.view.origin, 0, 0, 0, 1]")
    view.evaluate("pose => { ndt.view.setPose({pose}); ndt.view.setMode('follow'); }", pose)
    moved = [pose[0] + 30, pose[1] + 5, *pose[2:]]
    at = view.evaluate("p => { ndt.view.setPose({pose: p}); return ndt.view.camera.target.map((v, k) => v + ndt.view.origin[k]); }", moved)
    assert numpy.allclose(at, moved[:3])
    view.page.locator("#view").focus()
    distance = view.evaluate("() => ndt.view.camera.distance")
    view.page.keyboard.press("-")
    assert view.evaluate("() => ndt.view.camera.distance") > distance
    assert view.evaluate("() => ndt.view.mode") == "follow"
    view.page.keyboard.press("ArrowLeft")
    assert view.evaluate("() => ndt.view.mode") == "free"
    before = view.evaluate("() => [...ndt.view.camera.target]")
    view.evaluate("p => ndt.view.setPose({pose: p})", pose)
    assert view.evaluate("() => [...ndt.view.camera.target]") == before
    place = view.evaluate("() => { const v = ndt.view; v.setMode('top'); v.lookAt(v.origin); return v.camera.project([20, 10, 0]); }")
    corner = view.page.locator("#view").bounding_box()
    view.page.mouse.move(corner["x"] + place[0], corner["y"] + place[1])
    view.page.mouse.wheel(0, -300)
    again = wait_until("the wheel", lambda: view.evaluate("d => ndt.view.camera.project([20, 10, 0])", None))
    assert numpy.allclose(again, place, atol=1.0)  # what is under the pointer stays there


def lattice(path, spacing_m, half):
    """Writes a PCD of single points on a plane, and one high up that gives the box a height."""
    at = numpy.arange(-half, half + 1) * spacing_m
    points = numpy.array([(x, y, 0) for x in at for y in at] + [(0, 0, 30)], numpy.float32)
    head = f"VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH {len(points)}\nHEIGHT 1\nPOINTS {len(points)}\nDATA binary\n"
    path.write_bytes(head.encode() + points.tobytes())
    return path


def test_near_points_are_no_discs(bin_dir, folder, open_page):
    """In Follow no point between the eye and the vehicle is a disc that hides the scan: near the vehicle no square of six pixels lies
    within one, near the eye none of three."""
    web = Web(bin_dir, folder, "--map", lattice(folder / "map.pcd", 1.0, 60), token=None).start()
    page = open_page(web.url, color_scheme="dark")
    page.evaluate("() => { ndt.view.setPose({pose: [...ndt.view.origin.slice(0, 2), 0, 0, 0, 0, 1]}); ndt.view.setMode('follow');"
                  "ndt.view.camera.distance = 30; ndt.view.camera.update(); ndt.view.cameraMoved(); }")
    page.wait_for("the map is complete", COMPLETE)
    page.evaluate("() => document.querySelectorAll('.toolbar').forEach(bar => { bar.hidden = true; })")
    page.settle()
    pixels = numpy.asarray(page.canvas(), dtype=int)
    lit = numpy.abs(pixels - pixels[2, 2]).sum(axis=2) > 90

    def squares(side, first, last):
        """How many squares are within something drawn; rows as parts of the height."""
        part = lit[int(first * len(lit)) : int(last * len(lit))]
        height, width = part.shape
        shifted = [part[y : height - side + y, x : width - side + x] for y in range(side) for x in range(side)]
        return int(numpy.logical_and.reduce(shifted).sum())

    assert squares(2, 0.6, 0.85) > 100  # they are there
    assert squares(6, 0.6, 0.85) == 0 and squares(3, 0.85, 1) == 0
    page.page.goto("about:blank")
    web.end()


LENGTH = "() => document.getElementById('ruler-length').textContent"


def test_scale_and_ruler(view):
    """The bar is as long as it says; the ruler tells the distance between two places, by pointer and by keys."""
    view.page.keyboard.press("t")
    view.page.keyboard.press("g")
    view.settle()
    pixel_m = view.evaluate("() => ndt.view.camera.pixel_m")
    number, unit = view.page.inner_text("#scale-text").split()
    length_m = float(number) * {"cm": 0.01, "m": 1, "km": 1000}[unit]
    assert view.page.locator("#scale-bar").bounding_box()["width"] == pytest.approx(length_m / pixel_m, abs=0.2)
    view.page.keyboard.press("m")
    box = view.page.locator("#view").bounding_box()
    ends = [(0.45, 0.4), (0.55, 0.55)]
    places = [view.evaluate("([x, y]) => ndt.view.pick(x, y)", [x * box["width"], y * box["height"]]) for x, y in ends]
    pixels = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in ends]
    view.page.mouse.move(*pixels[0])
    view.page.mouse.down()
    view.page.mouse.move(*pixels[1], steps=5)
    view.page.mouse.up()
    told = number_in(view.wait_for("a length", LENGTH))
    assert told == pytest.approx(numpy.linalg.norm(numpy.subtract(*places)), abs=0.02 + 2 * pixel_m)
    view.page.mouse.move(*pixels[0])
    assert number_in(view.evaluate(LENGTH)) == told  # it stays
    view.page.keyboard.press("Escape")
    assert not view.page.is_visible("#ruler-label") and view.page.get_attribute("#ruler", "aria-pressed") == "false"
    view.page.keyboard.press("m")
    view.page.keyboard.press("Enter")
    before = view.evaluate("() => [...ndt.view.camera.target]")
    view.page.keyboard.press("ArrowUp")
    moved_m = view.evaluate("b => Math.hypot(...[0, 1].map(k => ndt.view.camera.target[k] - b[k]))", before)
    view.settle()
    view.page.keyboard.press("Enter")
    level_m = view.evaluate("() => Math.hypot(...[0, 1].map(k => ndt.measure.to[k] - ndt.measure.from[k]))")
    assert moved_m > 10 * pixel_m and level_m == pytest.approx(moved_m, abs=0.02 + 4 * pixel_m)


def test_quiet(view):
    """A picture that does not change is not drawn."""
    def drawn():
        return view.evaluate("() => ndt.view.stats.pictures")

    wait_until("quiet", lambda: view.evaluate("async () => { const n = ndt.view.stats.pictures;"
                                              "await new Promise(r => setTimeout(r, 1500)); return n === ndt.view.stats.pictures; }"))
    count = drawn()
    view.evaluate("() => ndt.view.setGnss(null)")
    wait_until("a picture", lambda: drawn() > count)


def test_lost_context(view):
    """After the GPU was lost everything is as before."""
    view.settle()
    before = view.canvas()
    assert pixels_unlike_background(before) > 3000
    view.expect_errors("context", "Context", "CONTEXT")
    view.evaluate("() => { window.lost = ndt.view.gl.getExtension('WEBGL_lose_context'); lost.loseContext(); }")
    view.wait_for("the context is lost", "() => ndt.view.isLost")
    view.evaluate("() => { ndt.view.appendTrail({pose: [...ndt.view.origin, 0, 0, 0, 1], confidence: 1}); ndt.view.pick(9, 9); }")
    view.evaluate("() => lost.restoreContext()")
    view.wait_for("the map is back", "() => !ndt.view.isLost && ndt.view.stats.complete && ndt.view.drawn.points > 0")
    view.settle()
    assert pixels_that_changed(before, view.canvas()) < 200


def test_memory_of_nodes(view, far_map):
    """A cache that is too small for the map holds its limit, and still shows what is in sight."""
    done = view.evaluate("""async () => {
        const { View } = await import('/view.js');
        const canvas = document.createElement('canvas');
        canvas.className = 'small';
        Object.assign(canvas.style, { width: '320px', height: '240px', position: 'fixed', left: '0', top: '0' });
        document.body.append(canvas);
        const view = new View(canvas, { cacheBytes: 150000 });
        const info = await (await fetch('/api/map')).json();
        view.setMap(info);
        view.setMode('free');
        const rows = [];
        for (let i = 0; i < 8; i++) {
            const place = info.min.map((low, k) => info.origin[k] + low + ((i * 0.37 + 0.1 * k) % 1) * (info.max[k] - low));
            view.lookAt(place);
            view.camera.zoom(i % 2 ? 0.1 : 4);
            view.cameraMoved();
            for (let n = 0; n < 400 && !(view.stats.complete && view.stats.points > 0); n++) await new Promise((r) => setTimeout(r, 50));
            rows.push({ gpu: view.stats.gpu_bytes, complete: view.stats.complete, shown: 8 * view.stats.points });
        }
        canvas.remove();
        return { rows, bytes: info.bytes };
    }""")
    assert done["bytes"] > 400_000
    for row in done["rows"]:
        assert row["complete"] and row["gpu"] <= max(150_000, row["shown"]) + 160_000, done


def test_glide(view):
    """Where pictures are quick the vehicle glides from result to result, and stands where the last one is."""
    end = view.evaluate("""async () => {
        const v = ndt.view;
        v.finish = ((finish) => function (took, plan) { finish.call(this, 5, plan); })(v.finish);
        v.measured.frame_ms = 5;
        v.setMode('follow');
        const seen = [];
        for (let i = 0; i < 10; i++) {
            const h = 0.05 * i;
            v.setPose({ pose: [v.origin[0] + 0.5 * i, v.origin[1], v.origin[2] + 1, 0, 0, Math.sin(h), Math.cos(h)] });
            for (let n = 0; n < 5; n++) {
                await new Promise((r) => setTimeout(r, 20));
                seen.push(v.shownPose[0] - v.origin[0]);
            }
        }
        for (let n = 0; n < 600 && v.glide; n++) await new Promise((r) => setTimeout(r, 50));
        return { seen, shown: v.shownPose, pose: v.pose, glides: !!v.glide };
    }""")
    assert end["shown"] == pytest.approx(end["pose"]) and not end["glides"]
    view.page.emulate_media(reduced_motion="reduce")
    assert not view.evaluate("() => { const v = ndt.view; v.setPose({ pose: [v.pose[0] + 0.5, ...v.pose.slice(1)] }); return v.glide; }")
    view.page.emulate_media(reduced_motion="no-preference")
    assert view.evaluate("() => { const v = ndt.view; v.setPose({ pose: [v.pose[0] + 0.5, ...v.pose.slice(1)] }); return v.glide; }")
    assert all(b >= a - 1e-9 for a, b in zip(end["seen"], end["seen"][1:]))
