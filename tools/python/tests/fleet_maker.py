"""A run folder of synthetic tables; nothing is replayed. For tests of what reads one."""
import numpy as np

from ndtd.fleet import scan_table
from ndtd.fleet.run_folder import Bag, BagIndex, Configuration, Failure, Job, RunFolder, digest, task_key

MAP_ID, VERSION = "00000000deadbeef", "ndtd 1.0"


def scans(bag, config, size, seed=0):
    """A table SCANS with values as those of a drive: poses to the last bit, few outcomes, whole microseconds."""
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    yaw = np.cumsum(rng.normal(0, 0.005, size))
    place = np.cumsum(np.stack([np.cos(yaw), np.sin(yaw), rng.normal(0, 0.01, size)]) * 1.1, axis=1)
    values = dict(zip("xyz", place), qx=rng.normal(0, 0.005, size), qy=rng.normal(0, 0.005, size), qz=np.sin(yaw / 2), qw=np.cos(yaw / 2))
    values.update(seq=np.arange(size), stamp_ns=1_700_000_000_000_000_000 + np.arange(size) * 100_000_000 + rng.integers(0, 200_000, size))
    trusted = rng.random(size) > 0.01
    values.update(outcome=np.where(trusted, "converged", "rejected"), state=np.where(trusted, "tracking", "lost"),
                  reason=np.where(trusted, "", "confidence"), trusted=trusted, bag=np.full(size, bag), config=np.full(size, config))
    for field in scan_table.SCANS:
        name = field.name
        if name.startswith("error"):
            values[name] = np.where(trusted, rng.normal(0, 0.03, size), np.nan)
        elif name.endswith("_us"):
            values[name] = np.round(rng.gamma(20, 60, size))
        elif name in ("iterations", "evaluations"):
            values[name] = rng.integers(2, 12, size)
        else:
            values.setdefault(name, rng.gamma(40, 0.02, size))
    columns = [pa.array(values[field.name], from_pandas=True) for field in scan_table.SCANS]
    return pa.table(columns, names=scan_table.SCANS.names).cast(scan_table.SCANS)


class Maker:
    """A run folder of `bags` with some configurations. Bags are done by done(), fail by fail(); nothing is replayed."""

    def __init__(self, folder, bags=3, configurations=("base",), scans=20):
        self.run, self.scans = RunFolder(folder), scans
        self.configurations = tuple(Configuration(name, f"{name}.yaml", digest(name)) for name in configurations)
        job = Job("token", VERSION, "map.pcd", self.configurations)
        self.run.write_json(self.run.run_file, {"format": 1, **job.__dict__, "configurations": [one.__dict__ for one in self.configurations]})
        self.run.write_json(self.run.path / "maps.json", {"a": MAP_ID})
        self.list_bags([f"s3://fleet/2026/{number:07d}.bag" for number in range(bags)])

    def list_bags(self, urls):
        self.bags = [Bag(url, self.scans * 1000, "1") for url in urls]
        self.run.write_json(self.run.path / "bags.json", [bag.__dict__ for bag in self.bags])

    def index(self, bag, content=None, damage=""):
        index = BagIndex(bag.url, bag.fingerprint, digest(content or bag.url), bag.bytes, self.scans, 0, self.scans * 10**8, damage)
        self.run.save_index(bag, index)
        return index

    def key(self, bag, configuration):
        return task_key(self.run.index(bag).hash, MAP_ID, configuration.hash, VERSION)

    def done(self, bag, configuration, worker="w1", url=None):
        """Writes the done file; returns its path."""
        index = self.run.index(bag) or self.index(bag)
        seed = int(index.hash[:8], 16) + self.configurations.index(configuration)
        table = scans(url or bag.url, configuration.name, self.scans, seed)
        row = {**scan_table.measures(table), "status": "done", "bag": url or bag.url, "bag_hash": index.hash, "bag_bytes": bag.bytes,
               "config": configuration.name, "config_hash": configuration.hash, "map_id": MAP_ID, "version": VERSION,
               "trajectory_hash": f"{seed:016x}", "pieces": 1, "attempts": 1, "worker": worker, "replay_s": 1.5, "ended_ns": 10**18 + seed}
        path = self.run.done_file(self.key(bag, configuration))
        with self.run.new_file(path) as part:
            scan_table.write(part, table, row)
        return path

    def done_all(self, **options):
        return [self.done(bag, one, **options) for bag in self.bags for one in self.configurations]

    def fail(self, bag, configuration=None, reason="it failed", ended_ns=1):
        key = self.key(bag, configuration) if configuration else bag.id
        name = configuration.name if configuration else ""
        self.run.save_failure(Failure(key, bag.url, name, reason, ("a line",), 3, worker="w1", ended_ns=ended_ns))
