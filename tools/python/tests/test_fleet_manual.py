"""docs/fleet.md: its first commands run as they are written, its tables name every column."""
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

for needed in ("distributed", "pyarrow", "fsspec"):
    pytest.importorskip(needed)

MANUAL = Path(__file__).resolve().parents[3] / "docs/fleet.md"


def commands():
    """Commands of the first section."""
    text = MANUAL.read_text(encoding="utf-8").split("\n## ")[0]
    return [line.strip().split("   #")[0] for line in text.splitlines() if line.startswith("    ndt-fleet ")]


def test_the_first_commands(run_program, bin_dir, tmp_path):
    (tmp_path / "drives").mkdir()
    for number in (1, 2):
        run_program("ndt-sim", "--seed", 1, "--noise", f"0.0{number}", "--scans", 25, "--beams", 16, "--columns", 600, "--map-spacing", 0.3,
                    "--out", tmp_path / "drives" / str(number))
    found = commands()
    assert [line.split()[1] for line in found] == ["run", "report", "status", "run", "report"]
    for line in found[:4]:
        done = subprocess.run([sys.executable, "-m", "ndtd.ndt_fleet", *shlex.split(line)[1:]], cwd=tmp_path, capture_output=True, text=True,
                              timeout=240, env={**os.environ, "NDT_BIN": str(bin_dir), "XDG_CACHE_HOME": str(tmp_path / "cache")})
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    assert "<html" in (tmp_path / "release.html").read_text()[:1000]
    code = re.search(r"```python\n(.*?)```", MANUAL.read_text(encoding="utf-8"), re.S).group(1)
    for path, columns in re.findall(r'read_parquet\("([^"]+)"(?:, columns=\[([^\]]*)\])?\)', code):
        import pyarrow.parquet as pq

        assert pq.read_table(tmp_path / path, columns=re.findall(r'"(\w+)"', columns) or None).num_rows > 0


@pytest.mark.parametrize("schema", ["SCANS", "RUNS"])
def test_every_column_is_explained(schema):
    from ndtd.fleet import scan_table

    text = MANUAL.read_text(encoding="utf-8").split(f"| column of {schema.lower()} |")[1].split("\n\n")[0]
    told = set()
    for row in text.splitlines():
        names = re.findall(r"`(\w+)`", row.split(" | ")[0]) if row.startswith("| `") else []
        for name in names:  # `error_m_median` `_p95`: the other ends of the name before
            told.add(re.sub(r"_[a-z0-9]+$", name, last) if name.startswith("_") else name)
            last = last if name.startswith("_") else name
    assert told == set(getattr(scan_table, schema).names)
