#!/usr/bin/env python3
"""Does what CONTRIBUTING.md says, on a copy of the tree: every walk-through builds, passes its check and edits at most
three files; six where points are evaluated.

    walk_throughs.py SOURCE_DIR WORK_DIR [CMAKE-ARGUMENT...]

The steps it understands, each followed by a fenced block:
    New file `PATH`:                        the block becomes that file
    In `PATH`, below the line with `TEXT`:  the block goes below the only line that contains TEXT
    Check, as `NAME.c` / `NAME.sh`:         the block is compiled against the libraries and run / run by bash, in the copy
Exit codes: 0 done, 1 a walk-through does not do what it says.
"""
import pathlib
import re
import shutil
import subprocess
import sys

STEP = re.compile(r"^(?:New file `(?P<new>[^`]+)`:|In `(?P<edit>[^`]+)`, below the line with\s`(?P<at>[^\n]+)`:|"
                  r"Check, as `(?P<check>[^`]+)`:)\n\n```[a-z]*\n(?P<text>.*?)^```$", re.M | re.S)


def walk_throughs(source):
    """(title, steps) of every section "Add ..." of CONTRIBUTING.md."""
    for part in (source / "CONTRIBUTING.md").read_text().split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        if title.startswith("Add "):
            yield title, [match.groupdict() for match in STEP.finditer(body)]


def copy_tree(source, copy):
    shutil.rmtree(copy, ignore_errors=True)
    names = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"], cwd=source,
                           capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, names):
        if (source / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, copy / name)


def apply(title, steps, copy):
    """Edits the copy; returns what is wrong, or None."""
    touched = set()
    for step in steps:
        path = step["new"] or step["edit"]
        if not path:
            continue
        touched.add(path)
        if step["new"]:
            if (copy / path).exists():
                return f"{title}: {path} is there already"
            (copy / path).write_text(step["text"])
            continue
        lines = (copy / path).read_text().split("\n")
        at = [i for i, line in enumerate(lines) if step["at"] in line]
        if len(at) != 1:
            return f"{title}: {path} has {len(at)} lines with '{step['at']}'"
        lines[at[0] + 1:at[0] + 1] = step["text"].rstrip("\n").split("\n")
        (copy / path).write_text("\n".join(lines))
    print(f"{title}: {len(touched)} files: {', '.join(sorted(touched))}")
    most = 6 if any("point_math" in path for path in touched) else 3
    return None if 0 < len(touched) <= most else f"{title}: edits {len(touched)} files, at most {most} are promised"


def build(copy, arguments):
    commands = (["cmake", "-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O0", "-DNDT_TESTS=OFF", "-DNDT_CUDA=OFF", "-DNDT_WERROR=ON",
                 *arguments], ["cmake", "--build", "build", "--parallel", "2", "--target", "ndtd", "ndt-sim"])
    for command in commands:
        run = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            errors = [line for line in (run.stdout + run.stderr).splitlines() if "error" in line.lower()]
            return "the copy does not build: " + "\n".join(errors[:8] or run.stderr.splitlines()[-8:])
    return None


def check(title, steps, copy):
    checks = [step for step in steps if step["check"]]
    if not checks:
        return f"{title}: has no check"
    for step in checks:
        script = copy / "build" / step["check"]
        script.write_text(step["text"])
        command = ["bash", "-e", str(script)]
        if script.suffix == ".c":
            libraries = ["build/proto/libndt_proto.a", "build/src/io/libndt_io.a", "build/src/core/libndt_core.a"]
            command = ["sh", "-ec", f"cc -std=gnu17 -Wall -Wextra -Werror -Isrc/core/include -Isrc/io/include -Iproto/include {script} "
                       f"{' '.join(libraries)} $(pkg-config --libs --silence-errors msgpack-c || pkg-config --libs msgpack) -llzf -lyaml "
                       f"-lm -lpthread -o build/{script.stem} && build/{script.stem}"]
        run = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=120, check=False)
        if run.returncode != 0:
            return f"{title}: {step['check']} failed: {(run.stderr or run.stdout)[-600:]}"
    return None


def main(source, work, *arguments):
    source, copy = pathlib.Path(source).resolve(), pathlib.Path(work).resolve()
    copy_tree(source, copy)
    found = list(walk_throughs(source))
    wrong = [] if len(found) == 5 else [f"CONTRIBUTING.md has {len(found)} walk-throughs instead of 5"]
    wrong += filter(None, [apply(title, steps, copy) for title, steps in found])
    wrong += filter(None, [build(copy, arguments)] if not wrong else [])
    wrong += filter(None, [check(title, steps, copy) for title, steps in found] if not wrong else [])
    print("\n".join(wrong))
    shutil.rmtree(copy, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
