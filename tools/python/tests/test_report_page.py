"""Reports of real replays in a browser: a simulated drive, one that is lost, KITTI; and ndtd --report."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from report_folders import DESKTOP, PHONE, check_page, replay

pytest.importorskip("matplotlib")

from ndtd import ndt_report  # noqa: E402

WITH_TRUTH = ("Trajectory over the map", "Absolute pose error (APE)", "Relative pose error (RPE)", "Errors per axis", "longitudinal [",
              "Is the reported covariance right?", "NEES")
ALWAYS = ("Latency by stage", "preprocess", "Outcomes, states and hypotheses", "innovation [sigma]", "Worst scans", "Newton iterations",
          "settings differ from the defaults", "map id", "trajectory hash", "ndtd --replay")


@pytest.fixture(scope="module")
def street_run(simulate, run_program, tmp_path_factory):
    """A drive of 120 scans that ends well."""
    drive = simulate("--seed", 3, "--scans", 120, "--beams", 16, "--columns", 900)
    return replay(run_program, tmp_path_factory.mktemp("runs") / "street", drive.bag, drive.map, "--set", "preprocess.deskew=time")


def report(folder, out):
    assert ndt_report.main([str(folder), "--out", str(out), "-q"]) == 0
    assert out.stat().st_size < 5_000_000
    return out


def test_a_simulated_drive(street_run, browser, tmp_path):
    out = report(street_run, tmp_path / "street.html")
    for viewport, scheme in ((DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "dark")):
        found = check_page(browser, out, viewport, scheme)
        assert found["figures"] == 9 and found["images"] == 40, "two overviews and two details of ten scans"
        missing = [text for text in WITH_TRUTH + ALWAYS if text not in found["text"]]
        assert missing == [] and "120 scans, all converged, median error" in found["text"] and found["drawn"] > 10_000
        assert found["paper"] == ("rgb(254, 254, 254)" if scheme == "light" else "rgb(22, 25, 29)")


def test_pictures_lie_on_the_map(street_run, browser, tmp_path):
    """The result's points cover points of the map: more than those of a scan that is put one metre aside."""
    import numpy as np

    from ndtd.report import map_above, raster, worst_scans
    from ndtd.report.run import Run

    run = Run(street_run)
    points = worst_scans.points_of(run, [60])
    window = worst_scans.windows(run, [60], points)[60]
    box = raster.Box.around(window.centre, 10, 10)
    assert map_above.read(run.path_of("map"), box, 10, 10, [window])[1] == ""
    placed = worst_scans._place(points[60], run.pose[60], window.centre)
    world = {tuple(cell) for cell in np.floor(window.points / 0.25).astype(int).tolist()}

    def covered(cloud):
        return np.mean([tuple(cell) in world for cell in np.floor(cloud / 0.25).astype(int).tolist()])

    assert covered(placed) > 0.5 and covered(placed) > 1.5 * covered(placed + [1.0, 1.0, 0.5])


def test_a_drive_that_is_lost(simulate, run_program, browser, tmp_path):
    """Nothing is known at the start, and the first pose is a kilometre off: states, recovery and hints are told."""
    drive = simulate("--seed", 5, "--scans", 80, "--beams", 16, "--columns", 900, "--world", "utm", "--gaps", 2)
    folder = replay(run_program, tmp_path / "run", drive.bag, drive.map, "--set", "preprocess.deskew=time",
                    "--set", "recovery.enable=false", "--set", "initial_pose.mode=given", "--initial-pose", "389500,4970300,120,0,0,0,1")
    found = check_page(browser, report(folder, tmp_path / "lost.html"), DESKTOP)
    assert "Not good" in found["text"].replace("NOT GOOD", "Not good") and "no trusted pose at all" in found["text"]
    assert "Something may be set wrongly" in found["text"] and "off_map" in found["text"]


def test_kitti(shared_data, run_program, browser, tmp_path):
    data = shared_data / "kitti0005_lite"
    run_program("ndt-bag", "pack", "--scans", data / "scans", "--times", data / "times.txt", "--format", "kitti",
                "--truth", data / "poses_velo_lidar_refined.txt", "--initial", "0,0,0,0,0,0,1", "--out", tmp_path / "kitti.bag")
    folder = replay(run_program, tmp_path / "kitti", tmp_path / "kitti.bag", data / "map_from_even_scans_0.20m.pcd",
                    "--set", "preprocess.deskew=azimuth_cw")
    out = report(folder, tmp_path / "kitti.html")
    for viewport, scheme in ((DESKTOP, "light"), (PHONE, "dark")):
        found = check_page(browser, out, viewport, scheme)
        assert [text for text in WITH_TRUTH + ALWAYS if text not in found["text"]] == [] and found["images"] == 40
        assert "154 scans, all converged, median error" in found["text"] and "preprocess.deskew" in found["text"]


def test_on_paper(street_run, browser, tmp_path):
    """Printed: light, without the contents, no wider than the page."""
    context = browser.new_context(color_scheme="dark", viewport={"width": 690, "height": 1000})  # A4 without its margins
    sheet = context.new_page()
    sheet.goto(report(street_run, tmp_path / "street.html").as_uri())
    sheet.emulate_media(media="print")
    assert sheet.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(254, 254, 254)"
    assert sheet.locator("nav").is_hidden() and sheet.evaluate("document.documentElement.scrollWidth") <= 690
    assert len(sheet.pdf(format="A4")) > 100_000
    context.close()


def test_ndtd_makes_the_report(drive, bin_dir, run_program, tmp_path):
    """ndtd --report: the folder is kept with --output and gone without; what ndt-report says is the end of its output."""
    program = Path(sys.executable).with_name("ndt-report")
    if not program.exists():
        pytest.skip("ndt-report is not beside this Python")
    environment = {**os.environ, "NDT_REPORT": str(program), "TMPDIR": str(tmp_path)}
    for options in ((), ("--output", tmp_path / "kept")):
        out = tmp_path / f"{len(options)}.html"
        done = run_program("ndtd", "--replay", drive.bag, "--map", drive.map, *options, "--report", out, env=environment)
        assert f"written: {out}" in done.stdout and "20 scans, all converged" in out.read_text()
        assert ("/kept" in out.read_text()) == bool(options) and "ndtd-replay-" not in out.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.html", "2.html", "kept"]
    command = [str(program), str(tmp_path / "kept"), "--out", str(tmp_path / "again.html"), "-q"]
    again = subprocess.run(command, capture_output=True, text=True)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
