"""mypy --strict of a program of a user: the stubs are found and say what is wrong."""
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = '''
import asyncio

import numpy as np
import numpy.typing as npt

import ndtd

target = ndtd.Map("map.pcd", levels=[2.0, 1.0])
cloud: npt.NDArray[np.float32] = ndtd.preprocess(np.zeros((5, 3)), voxel_m=0.2)
result: ndtd.Result = ndtd.align(target, cloud, np.eye(4), threads=2)
pose: npt.NDArray[np.float64] = result.pose
if result.covariance is not None:
    deviations: npt.NDArray[np.float64] = np.sqrt(np.diag(result.covariance))
scores: list[float] = [row.score for row in result.trace] + [result.scores.nvtl]
part: ndtd.Cloud = (ndtd.Cloud.read("map") + ndtd.Cloud(cloud)).crop(center=(0, 0), radius_m=50.0).thin(0.2).transform(result.pose)
target.plot(points=part.points, scans=ndtd.Replay("drive.bag", "map.pcd"))
many: list[ndtd.Result] = ndtd.Aligner(target).align_batch(cloud, [np.eye(4)] * 2)
for scan in ndtd.Replay("drive.bag", "map.pcd", options={"preprocess.deskew": "time"}):
    stamp: int = scan.stamp_ns
with ndtd.Client() as daemon:
    seq: int = daemon.publish_scan(0, cloud)
    reply = daemon.request("status")


async def main() -> None:
    async with ndtd.AsyncClient() as client:
        await client.publish_scan(0, cloud)
        async for answer in client.results():
            print(answer["seq"])


asyncio.run(main())
'''
BAD = {"ndtd.align(target, cloud, max_iter=3)": "max_iter", "ndtd.Map(1, levels=2)": "levels", "result.poses": "poses",
       "result.covariance.shape": "None", "ndtd.Client(port=1)": "port", "ndtd.Cloud(cloud).crop(circle=1)": "circle"}


def mypy(tmp_path, text):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(text)
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "user.py"],
                          capture_output=True, text=True, cwd=tmp_path)


def test_a_program_of_a_user(tmp_path):
    import ndtd

    if not (Path(ndtd.__file__).parent / "_core.pyi").exists():
        pytest.skip("an editable install: its stubs are elsewhere")
    done = mypy(tmp_path, GOOD)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = ["import numpy as np", "import ndtd", 'target = ndtd.Map("a")', "cloud = np.zeros((5, 3))",
             "result = ndtd.align(target, cloud)", *BAD]
    said = mypy(tmp_path, "\n".join(lines) + "\n").stdout
    for number, (line, word) in enumerate(BAD.items(), 6):
        assert any(row.startswith(f"user.py:{number}: error") and word in row for row in said.splitlines()), f"{line}\n{said}"
