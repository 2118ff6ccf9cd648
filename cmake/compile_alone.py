#!/usr/bin/env python3
"""Compiles each source of a build folder alone, so that each is seen to include the headers it uses: builds
that compile 26 sources at a time do not notice (together.cmake).

    cmake/compile_alone.py build/release common server models ...

Checks syntax and types only, by Clang. The headers of SHARED take most of the time; sources that include the
same of them, directly or through the project's headers, share a precompiled header of just these, or of some
of these. So no source sees a name that its own includes do not bring. A source that compiled before with the same text,
headers, command and compiler is left out: its hash is a file below ~/.cache/kumo/compile-alone, which all
clones share.

Exits with 1 if a source does not compile, and prints the compiler's messages.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from clang_tidy import CACHE as TIDY_CACHE
from clang_tidy import ROOT, hash_of, tasks_of

CACHE = TIDY_CACHE.parent / "compile-alone"
COMPILER = "clang++"
TAKES_A_WORD = {"-o", "-MT", "-MF"}  # options of a compilation, with the word behind each
ALONE = {"-c", "-MD"}
# The commands are GCC's. Macros and optimisation differ from source to source, and mean nothing to SHARED.
CLANG = ["-Wno-unknown-warning-option", "-Wno-ignored-optimization-argument", "-Xclang", "-fno-validate-pch"]

# Headers, in the order in which they are precompiled, and about the seconds that each takes behind those
# before it, templates that it instantiates included.
SHARED = {
    "string": .25, "vector": .1, "memory": .25, "map": .1, "algorithm": .15, "functional": .2, "chrono": .4,
    "filesystem": .3, "glog/logging.h": .3, "proto/checkpoint.pb.h": .7, "proto/wire.pb.h": .5,
    "proto/model.pb.h": .5, "common/base/status.h": .15, "common/base/file.h": .1, "common/base/mutex.h": .2,
    "common/optimiser/optimiser.h": .1, "common/settings/choices.h": .2, "common/settings/experiment.h": .3,
    "common/transport/message.h": .3, "common/job/job_plan.h": .3, "models/layers/ops.h": .4,
    "models/layers/losses.h": .2, "models/backend/op.h": .2, "models/graph/graph.h": 1.2,
    "cli/arguments/environment.h": .3}
PRECOMPILING = 1.5  # times as long as reading the same headers
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)


def command_for(task, source):
    """The compiler's call for one source of a task."""
    words = iter(shlex.split(task.entry["command"]))
    kept = []
    for word in words:
        if word in TAKES_A_WORD:
            next(words)
        elif word not in ALONE and word != task.entry["file"]:
            kept.append(word)
    while not pathlib.Path(kept[0]).name.startswith(("c++", "g++", "clang++")):
        kept = kept[1:]  # ccache
    return [COMPILER, *kept[1:], *CLANG, "-fsyntax-only", str(ROOT / source)]


def included(source, known):
    """Which of SHARED a source includes, directly or through headers of the project; known: for each of these."""
    todo, seen = [str(source)], set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        if path not in known:
            file = ROOT / path
            known[path] = INCLUDE.findall(file.read_text()) if file.is_file() else []
        todo += known[path]
    return frozenset(header for header in SHARED if header in seen)


def shares(wanted):
    """For the sets of headers that sources include, one for each source: {set: which of them to precompile}.
    Each next precompiled header is the one that saves most."""
    def seconds(headers):
        return sum(map(SHARED.get, headers))
    counts = collections.Counter(wanted)
    chosen = dict.fromkeys(counts, frozenset())
    while True:
        def saved(headers):
            return sum(count * max(0, seconds(headers) - seconds(chosen[of])) for of, count in counts.items()
                       if headers <= of) - PRECOMPILING * seconds(headers)
        best = max(counts, key=saved, default=frozenset())
        if saved(best) <= 0:
            return chosen
        for of, before in chosen.items():
            if best <= of and seconds(best) > seconds(before):
                chosen[of] = best


def precompile(calls, folder):
    """For sources and their commands: {source: options that begin with a precompiled header}."""
    known = {}
    wanted = {source: included(source, known) for source in calls}
    shared = shares(wanted.values())
    groups = collections.defaultdict(list)
    for source, headers in wanted.items():
        if shared[headers]:
            groups[shared[headers]].append(source)

    def make(numbered):
        number, (headers, sources) = numbered
        file = folder / f"{number}.h"
        file.write_text("".join(f"#include <{header}>\n" for header in SHARED if header in headers))
        task, command = calls[sources[0]]
        made = subprocess.run([*command[:-2], "-fpch-instantiate-templates", "-x", "c++-header", str(file), "-o",
                               f"{file}.pch"], cwd=task.entry["directory"], capture_output=True)
        # Without it the sources read the headers themselves, and say what is wrong with them.
        return {source: ["-include-pch", f"{file}.pch"] for source in sources} if made.returncode == 0 else {}

    options = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for some in pool.map(make, enumerate(groups.items())):
            options.update(some)
    return options


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folders", nargs="+")
    arguments = parser.parse_args()
    calls = {}
    for task in tasks_of(arguments.build.resolve()):
        for source in task.sources:
            if not any(source.is_relative_to(folder) for folder in arguments.folders):
                continue
            if task.texts is None:
                sys.exit(f"{arguments.build} has not compiled {source}: build it first")
            calls.setdefault(source, (task, command_for(task, source)))
    if not calls:
        sys.exit(f"{arguments.build} compiles no source of {' '.join(arguments.folders)}")
    version = subprocess.run([COMPILER, "--version"], check=True, capture_output=True).stdout
    CACHE.mkdir(parents=True, exist_ok=True)

    def key_of(task, command):
        return CACHE / hash_of([version, " ".join(command).replace(str(ROOT), "").encode(),
                                *(path.read_bytes() for path in sorted(task.texts))])
    keys = {source: key_of(*call) for source, call in calls.items()}
    changed = {source: calls[source] for source in sorted(calls) if not keys[source].exists()}

    failed = 0
    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        options = precompile(changed, pathlib.Path(folder))

        def compile_one(source):
            task, command = changed[source]
            run = subprocess.run([*command, *options.get(source, [])], cwd=task.entry["directory"],
                                 capture_output=True, text=True)
            if run.returncode == 0:
                keys[source].touch()
            return run

        for run in pool.map(compile_one, changed):
            if run.returncode != 0:
                failed += 1
                print(run.stdout + run.stderr, end="")
    print(f"compiled alone: {len(changed)} of {len(calls)} sources, the others compiled before; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
