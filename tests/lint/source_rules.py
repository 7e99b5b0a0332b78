#!/usr/bin/env python3
"""Lint rules that need more than grep; called by lint.sh, which names the files.

  source_rules.py circles BUILD_DIR FILE...   no circle: headers that include each other, sources whose objects use
                                              each other's symbols

Prints one line per place. Exit codes: 0 kept, 1 broken, 77 cannot be checked here."""
import collections
import os
import re
import subprocess
import sys

CODE = re.compile(r"\.(c|h|cu|cuh|cpp)$")
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.M)


def text_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def stem(path):
    """Names a source or its object; file names are unique in the tree."""
    return os.path.basename(path).split(".")[0]


# ---- circles


def include_edges(files):
    """From a header to each header of the project that it includes."""
    headers = collections.defaultdict(list)
    for path in files:
        headers[os.path.basename(path)].append(path)
    for path in files:
        if not re.search(r"\.(h|cuh)$", path):
            continue
        for included in INCLUDE.findall(text_of(path)):
            for other in headers[os.path.basename(included)]:
                if ("/" + other).endswith("/" + included):
                    yield os.path.basename(path), os.path.basename(other), '#include "%s"' % included


def symbol_edges(build, stems):
    """An object that uses a symbol needs the file that defines it. A symbol that several files define (main, stand-ins
    of tests) belongs to the one of the same target; one that a test defines, to that test."""
    objects = []  # existing ones: a partial build gives a partial graph
    for folder, inner, names in os.walk(build):
        # A build of its own, such as that of the Python package, has the same objects once more.
        inner[:] = [n for n in inner if not os.path.exists(os.path.join(folder, n, "CMakeCache.txt"))]
        objects += [os.path.join(folder, n) for n in names if n.endswith(".o") and stem(n) in stems]
    defined, used = collections.defaultdict(set), []
    for at in range(0, len(objects), 200):
        listing = subprocess.run(["nm", "-A", "-g", *objects[at : at + 200]], capture_output=True, text=True)
        for line in listing.stdout.splitlines():
            path, _, rest = line.rpartition(":")
            kind, symbol = rest.split()[-2:]
            target = re.sub(r"\.dir/.*", "", path)
            if kind == "U":
                used.append((target, stem(path), symbol))
            else:
                defined[symbol].add((target, stem(path)))
    for target, user, symbol in used:
        tests = os.path.join(build, "tests", "")
        owners = {name for where, name in defined[symbol] if where == target or not where.startswith(tests)}
        if len(owners) > 1:
            owners = {name for where, name in defined[symbol] if where == target}
        if len(owners) == 1 and user not in owners:
            yield user, owners.pop(), symbol + "()"


def components(graph):
    """Tarjan's strongly connected components of more than one node."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            found.append(stack[stack.index(node) :])
            del stack[stack.index(node) :]

    for node in list(graph):
        if node not in index:
            visit(node)
    return [sorted(part) for part in found if len(part) > 1]


def circles(build, files):
    files = [f for f in files if CODE.search(f)]
    why = {}
    edges = list(include_edges(files)) + list(symbol_edges(build, {stem(f) for f in files if not f.endswith("h")}))
    for user, needed, reason in edges:
        if user != needed:
            why.setdefault((user, needed), reason)
    graph = collections.defaultdict(set)
    for user, needed in why:
        graph[user].add(needed)
        graph[needed] |= set()
    sys.setrecursionlimit(10000)
    found = components(graph)
    for part in sorted(found):
        print("circle of files: %s" % ", ".join(part))
        for (user, needed), reason in sorted(why.items()):
            if user in part and needed in part:
                print("    %s needs %s: %s" % (user, needed, reason))
    print("%d files, %d edges, %d circles" % (len(graph), len(why), len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(circles(sys.argv[2], sys.argv[3:]))
