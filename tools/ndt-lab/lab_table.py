"""Every experiment, one row each: adding one is adding a row (and, for ndt-lab, a function)."""


class Experiment:
    """name; about: one line; how: `lab` (ndt-lab NAME), `bench` (a list of words for ndt-bench), `queue`, `peer`,
    `count`; product: the variant that is in the product ('' where all of them are, by option or by size); why: one
    line on that; gpu: needs a device."""

    def __init__(self, name, about, how, product="", why="", words=(), gpu=False, repetitions=21):
        self.name, self.about, self.how, self.product, self.why = name, about, how, product, why
        self.words, self.gpu, self.repetitions = list(words), gpu, repetitions

    def command(self):
        """What is run, without data and paths."""
        program = {"bench": "ndt-bench", "device": "ndt-lab-device", "lab": "ndt-lab"}.get(self.how)
        return " ".join([program] + (self.words or [self.name])) if program else "tools/lab run --only " + self.name


def gpu(name, about, how, words=(), why=""):
    return Experiment(name, about, how, "", why, words, True, 7)


PIPELINES = "cuda:fused,cuda:staged,cuda:resident,cuda:resident-block,cuda:resident-cluster,cuda:resident-graph," \
            "cuda:resident-chain"

EXPERIMENTS = [
    Experiment("vector-width", "instruction sets of the evaluation; whole align, 1 thread", "lab", "*",
               "all: the best that the processor has is chosen at start", repetitions=15),
    Experiment("threads", "threads of the CPU backend; whole align", "lab", "*",
               "option cpu.threads; by default as many as there are cores, 4 at most; more than cores lose", repetitions=15),
    Experiment("spin", "how long idle workers spin; whole align, 2 threads, 2 ms after the last", "lab", "100 us",
               "option cpu.spin_us", repetitions=11),
    Experiment("pinning", "workers pinned to cores; whole align, 2 threads, 2 ms after the last", "lab",
               "workers pinned", "option cpu.pin_threads, on", repetitions=11),
    Experiment("prefetch", "neighbour lists fetched ahead", "lab", "lists prefetched", "one instruction per point; pays where caches are cold, as they are between scans"),
    Experiment("order", "order of the scan's points", "lab", "as sampled", "a sort that costs nothing would gain what the free one gains; qsort by Morton number takes more"),
    Experiment("lists", "direct7: neighbour lists against seven look-ups", "lab", "neighbour lists", ""),
    Experiment("layout", "voxels as records or as arrays", "lab", "array of structures", ""),
    Experiment("accumulation", "sums over points in double or float", "lab", "float in chunks of 128",
               "chunks are added in double"),
    Experiment("fusing", "fused multiply-add", "lab", "fused in all variants",
               "processors without it compute the same bits by rounding to odd, slowly"),
    Experiment("huge-pages", "pages behind the map (madvise)", "lab", "pages of 4 KiB",
               "they can only help where a map is far larger than what the processor's tables of pages cover: wide maps "
               "of 100 MiB and more; a map of one drive gains nothing"),
    Experiment("solve", "the 6x6 step", "lab", "Cholesky", "eigenvectors where -H is not safely positive definite"),
    Experiment("batch", "batches of guesses on the CPU", "lab", "ndt_align_batch",
               "one after the other on the CPU as well: the call exists for devices", repetitions=11),
    Experiment("chunking", "large clouds handed over in pieces", "lab", "one piece",
               "a cloud in pieces of 100 000 points stays in the cache between copy and evaluation; scans are smaller than "
               "that; max_points bounds the memory"),
    Experiment("tiles", "margin of tiles around what the sensor reaches; position told ahead", "lab",
               "margin 100 m (default)", "option dynamic_map_loading.lidar_radius; the ring covers the way ahead too"),
    Experiment("queue", "depth of the daemon's queue", "queue", "depth 3", "option live.queue_depth. Under lasting overload depth only adds latency (drops differ by what is still answered "
               "after the last scan); in bursts it saves scans. A depth that adapts would be a fixed one here, and is not in "
               "the product"),
    Experiment("front", "decoding and preprocessing, step by step", "bench",
               words=["--front", "--points", "10000,30000,120000"]),
    Experiment("cost", "cost over points, voxels, threads", "lab", repetitions=5),
    Experiment("peer", "whole align against PCL in the same run", "bench",
               words=["--levels", "2", "--neighbours", "radius", "--points", "756,1500,5000,20000", "--threads", "1,2"]),
    Experiment("roofline", "one evaluation against the machine's peaks, and its parts", "lab"),
    Experiment("count", "instructions of one evaluation (callgrind)", "count"),
    gpu("gpu-pipelines", "staged, fused, and whole searches on the device: block, cluster, graph, chain; against the CPU",
        "bench", ["--levels", "2", "--neighbours", "radius", "--points", "756,1500,5000,20000", "--backend",
                  "cpu," + PIPELINES]),
    gpu("gpu-overheads", "copies, launch and wait by themselves; kernels alone", "bench", ["--overheads"]),
    gpu("gpu-batch", "batches of 1 to 200 guesses in one launch", "lab", ["batch", "--backend", "cuda:resident"]),
    gpu("gpu-staging", "pinned against pageable staging", "device", ["staging"]),
    gpu("gpu-streams", "one stream against copies and kernels on streams of their own", "device", ["streams"]),
    gpu("gpu-reduction", "sums by warp shuffles against shared memory", "device", ["reduction"]),
    gpu("gpu-layout", "voxels as records or as arrays on the device", "device", ["layout"]),
]


def find(name):
    return next(experiment for experiment in EXPERIMENTS if experiment.name == name)
