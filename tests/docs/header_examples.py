#!/usr/bin/env python3
"""Compiles the example at the top of every public header, so that none calls what is not there any more.

  header_examples.py SOURCE_DIR CC

An example is an indented block of a header's first comment with a call that ends in a semicolon. What it uses without
declaring it is declared in CONTEXTS. Exit codes: 0 all compile, 1 one does not, or has no context."""
import pathlib
import re
import subprocess
import sys

# Header: declarations in front of the example.
CONTEXTS = {
    "ndt/align.h": """struct ndt_align_params params; struct ndt_backend *backend; struct ndt_backend_config config = {0};
        struct ndt_error err; struct ndt_map *map = NULL; const struct ndt_cloud *scan = NULL; struct ndt_pose T_map_guess = {0};
        struct ndt_align_result result;""",
    "ndt/newton.h": """struct ndt_newton newton; const struct ndt_newton_rules rules = {0}; struct ndt_newton_row *rows = NULL;
        const size_t capacity = 0; struct ndt_eval sums = {0};""",
    "ndt/part_observer.h": """struct ndt_part_observer *observer; const char *isa = NULL; struct ndt_error err;
        struct ndt_map *map = NULL; const struct ndt_parts parts = {0}; struct ndt_observation observations[1];""",
    "ndt_io/output_file.h": 'const char *path = ""; double x = 0; struct ndt_error *err = NULL;',
    "ndtd/session.h": """struct ndt_error err; struct ndt_pose_message odometry = {0}; struct ndt_scan_message scan = {0};
        struct ndt_cloud points = {0}; struct ndt_result_message result;""",
    "ndt_odometry/odometry.h": """struct ndt_odometry_params params; struct ndt_odometry *odometry; struct ndt_backend *backend = NULL;
        struct ndt_track_imu_sample sample = {0}; struct ndt_cloud raw = {0}; struct ndt_odometry_result result;
        struct ndt_error err; const int64_t stamp_ns = 0;""",
    "ndt_search/hypothesis_test.h": """struct ndt_search_result result = {0}; struct ndt_hypothesis_features features; uint32_t i = 0;
        struct ndt_hypothesis_test evidence = {0}; struct ndt_pose T_map_sensor = {0};""",
    "ndt_search/search.h": """struct ndt_search_params params; struct ndt_search *search; struct ndt_search_config config = {0};
        struct ndt_map *map = NULL; struct ndt_field *field = NULL; const struct ndt_cloud *scan = NULL;
        struct ndt_search_result result; struct ndt_error err;""",
    "ndt_track/track.h": """struct ndt_track track; struct ndt_track_params params = {0}; int64_t stamp_ns = 0;
        struct ndt_pose T_map_base = {0}; struct ndt_track_odometry_sample sample = {0};
        struct ndt_track_measurement measurement = {0}; struct ndt_track_state predicted, updated;""",
    "ndt_track/track_window.h": """static struct ndt_track_window window; static struct ndt_track track; static struct ndt_track_step step; int64_t stamp_ns = 0;
        struct ndt_track_state updated = {0}; struct ndt_track_pose pose; int is_trusted = 1;""",
}


def example_of(text):
    """The first block of code in the first comment; None: there is none."""
    comment = text.split("*/")[0]
    for block in re.findall(r"(?:^ \*     .*\n)+", comment, re.M):
        code = re.sub(r"^ \*", "", block, flags=re.M)
        if re.search(r"\w\(.*\);", code):
            return code
    return None


def main(source, compiler):
    source = pathlib.Path(source)
    headers = sorted(p for top in ("src", "gpu", "proto") for p in (source / top).rglob("include/*/*.h"))
    folders = sorted({f"-I{p.parent.parent}" for p in headers} | {f"-I{source / 'src/backends/include'}"})
    count = failed = 0
    for path in headers:
        name = f"{path.parent.name}/{path.name}"
        code = example_of(path.read_text())
        if code is None:
            continue
        count += 1
        if name not in CONTEXTS:
            print(f"{name}: an example, and no row of CONTEXTS in {__file__}")
            failed += 1
            continue
        program = f'#include <stdio.h>\n#include "{name}"\nint example(void);\nint example(void)\n{{\n{CONTEXTS[name]}\n{code}return 0;\n}}\n'
        run = subprocess.run([compiler, "-std=gnu17", "-fsyntax-only", "-Wall", "-Wno-unused", "-Werror", *folders, "-x", "c", "-"],
                             input=program, text=True, capture_output=True)
        if run.returncode:
            print(f"{name}: the example does not compile:\n{run.stderr[:2000]}")
            failed += 1
    print(f"{count} examples, {failed} failed")
    return 1 if failed or count < len(CONTEXTS) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
