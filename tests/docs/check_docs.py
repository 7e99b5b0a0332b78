#!/usr/bin/env python3
"""Checks the pages: every link leads somewhere, every command exists with its options, the README's examples run.

    check_docs.py RULE SOURCE_DIR BIN_DIR      RULE: links, lines, commands, readme, selftest

Exit codes: 0 kept, 1 broken (one line per place), 77 cannot be checked here.
"""
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile

PROGRAM = re.compile(r"^(?:sudo )?(build/bin/[\w-]+|tools/[\w./-]+)(.*)$")


def pages(source):
    names = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=source,
                           capture_output=True, text=True, check=False)
    if names.returncode != 0:
        print("not a git checkout: the list of files is not known")
        sys.exit(77)
    return [source / name for name in names.stdout.split() if (source / name).exists()]


def blocks(page):
    """(line number, text) of every line inside an indented block or a fence of shell; continued lines are joined.
    The fences of CONTRIBUTING.md are steps that walk_throughs.py follows."""
    fence = None
    for number, line in enumerate(page.read_text().replace("\\\n", " ").splitlines(), 1):
        if line.startswith("```"):
            fence = None if fence is not None else line[3:].strip()
        elif (fence in ("", "sh", "bash") and page.name != "CONTRIBUTING.md") or (fence is None and line.startswith("    ")):
            yield number, line.strip()


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def check_links(source, _):
    for page in pages(source):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            aim = (page.parent / name).resolve() if name else page
            if not aim.exists():
                yield f"{page.relative_to(source)}: {target} does not exist"
            elif anchor and anchor not in [slug(h) for h in re.findall(r"^#+ (.*)$", aim.read_text(), re.M)]:
                yield f"{page.relative_to(source)}: {target}: there is no such heading"


def check_lines(source, _):
    """Prose within 120 columns; tables and commands may be wider."""
    for page in pages(source):
        fence = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            fence ^= line.lstrip().startswith("```")
            if len(line) > 120 and not fence and not line.startswith("    ") and not line.lstrip().startswith("|"):
                yield f"{page.relative_to(source)}:{number}: {len(line)} columns"


def ask_help(program, *words):
    run = subprocess.run([program, *words, "--help"], capture_output=True, text=True, timeout=60, check=False)
    return run.stdout + run.stderr if run.returncode == 0 else ""


def check_command(source, binaries, words):
    """What is wrong with one command line, or None."""
    program = binaries / words[0][10:] if words[0].startswith("build/bin/") else source / words[0]
    if not program.exists():
        return f"{words[0]} does not exist"
    if program.suffix == ".py" or not words[0].startswith("build/bin/"):
        return None
    text = ask_help(program)
    if len(words) > 1 and not words[1].startswith("-"):
        text = ask_help(program, words[1]) or text
    options = None
    for word, value in zip(words[1:], words[2:] + [""]):
        if word.startswith("-") and not re.match(r"-[\d.]", word):
            if not re.search(rf"(?<![\w-]){re.escape(word.split('=')[0])}(?![\w-])", text):
                return f"{word} is not in {words[0]} --help"
        if word == "--set":
            options = options or subprocess.run([binaries / "ndtd", "--help-options", "--all"], capture_output=True, text=True, check=True).stdout
            if not re.search(rf"^{re.escape(value.split('=')[0])} = ", options, re.M):
                return f"{value}: there is no such option"
        if word in ("-c", "--config") and value.startswith("config/") and not (source / value).exists():
            return f"{value} does not exist"
    return None


def check_commands(source, binaries):
    seen = 0
    for page in pages(source):
        for number, line in blocks(page):
            for part in re.split(r"&&|\|", line.split("   #")[0]):
                match = PROGRAM.match(part.strip())
                if not match:
                    continue
                seen += 1
                wrong = check_command(source, binaries, [match.group(1), *shlex.split(match.group(2))])
                if wrong:
                    yield f"{page.relative_to(source)}:{number}: {wrong}"
    if seen == 0:
        yield "no command was found"


def section(source, heading):
    """Command lines of one section of the README."""
    lines, inside = [], False
    for line in (source / "README.md").read_text().splitlines():
        if line.startswith("## "):
            inside = line == f"## {heading}"
        elif inside and line.startswith("    "):
            lines.append(line.strip())
    return lines


def run_live(source, binaries, folder):
    """The three commands of the section Live, together; the daemon has to answer with poses."""
    runtime = {"RUNTIME_DIRECTORY": f"{folder}/run", "NOTIFY_SOCKET": f"{folder}/ready", "PATH": "/usr/bin:/bin"}
    pathlib.Path(folder, "run").mkdir()
    ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    ready.bind(f"{folder}/ready")
    ready.settimeout(120)
    lines = section(source, "Live")
    if len(lines) != 3:
        return [f"README: Live has {len(lines)} commands instead of 3"]
    started = []
    try:
        for line in (lines[0], lines[2], lines[1]):  # the listener before the sender
            started.append(subprocess.Popen(line, shell=True, cwd=folder, env=runtime, text=True, start_new_session=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
            while len(started) == 1 and b"READY=1" not in ready.recv(4096):
                pass
        listener = started[1]
        poses = []
        for _ in range(20):
            poses.append(listener.stdout.readline())
    finally:
        for process in reversed(started):
            subprocess.run(["kill", "--", f"-{process.pid}"], check=False, stderr=subprocess.DEVNULL)
    good = [line for line in poses if len(line.split()) == 8]
    return [] if len(good) >= 15 else [f"README: Live gave {len(good)} poses in 20 lines: {poses[:3]}"]


def check_readme(source, binaries):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config", "tools"):
            pathlib.Path(folder, name).symlink_to(source / name)
        pathlib.Path(folder, "build").mkdir()
        pathlib.Path(folder, "build/bin").symlink_to(binaries)
        for line in section(source, "Replay"):
            run = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, timeout=240, check=False)
            if run.returncode != 0:
                yield f"README: {line}: exit code {run.returncode}: {(run.stderr or run.stdout)[-300:]}"
        yield from run_live(source, binaries, folder)


def check_selftest(source, binaries):
    with tempfile.TemporaryDirectory() as folder:
        broken = pathlib.Path(folder)
        subprocess.run(["git", "init", "-q", folder], check=True)
        (broken / "README.md").write_text("[x](nowhere.md) " + "wide " * 30 + "\n\n    build/bin/ndtd --no-such-option\n\n## Replay\n\n    false\n\n## Live\n\n    true\n")
        for rule in (check_links, check_lines, check_commands, check_readme):
            if not list(rule(broken, binaries)):
                yield f"{rule.__name__} does not see that it is broken"


def main(rule, source, binaries):
    found = list(globals()[f"check_{rule}"](pathlib.Path(source).resolve(), pathlib.Path(binaries).resolve()))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
