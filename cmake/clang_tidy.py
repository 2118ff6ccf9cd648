#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build folder, those only that changed since they were clean.

    cmake/clang_tidy.py build/release common server/coordinator ...
    cmake/clang_tidy.py --together build/asan build/release common server models ...

Looks at each source of the named folders that the build compiles, but kernels, which include next to
nothing. With --together, at those that another build compiles several at a time (cmake/together.cmake)
several at a time, which takes a fifth of the time, and at the others alone. A source was clean before when
its text, the text of every header of the project that it includes, its compile command, .clang-tidy and
clang-tidy's version are the same: then there is a file for their hash below ~/.cache/kumo/clang-tidy. So
another clone, or another branch, finds it too.

Exits with 1 when clang-tidy finds something, and prints what.
"""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"),
                     "kumo/clang-tidy")
# GCC's precompiled headers mean nothing to Clang, and those of another Clang neither: it reads the headers
# themselves.
PRECOMPILED = re.compile(r" -Winvalid-pch| -Xclang -include(?:-pch)? -Xclang \S*cmake_pch\.hxx\S*"
                         r"| -include \S*cmake_pch\.hxx")
INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
# Of a declaration that only the check of this name looks at, and that it sees only where clang-tidy was
# given the source itself.
USING = re.compile(r"^\s*using \w+(?:::\w+)+;", re.MULTILINE)
USING_CHECK = "-*,misc-unused-using-decls"


@dataclasses.dataclass
class Task:
    """One call of clang-tidy."""
    build: pathlib.Path
    entry: dict    # of the compile commands
    sources: list  # what it compiles of the project, relative to the root
    texts: list    # the project's files that it was compiled from; None: it was not
    checks: str = ""  # "": .clang-tidy's

    def is_of(self, folders):
        return any(source.is_relative_to(folder) for source in self.sources for folder in folders)


def compiled_from(build):
    """What each object was compiled from, as far as it is the project's, by the object's name."""
    found, names = {}, None
    deps = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True,
                          text=True).stdout
    for line in deps.splitlines():
        if line.startswith(" "):
            path = pathlib.Path(os.path.normpath(build / line.strip()))
            if path.is_relative_to(ROOT) and not path.is_relative_to(build):
                names.append(path)
        elif ": #deps" in line:
            names = found.setdefault(line.split(": #deps")[0], [])
    return found


def tasks_of(build):
    """What a build compiles of the project, but kernels."""
    texts = compiled_from(build)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        together = file.is_relative_to(build) and file.parent.name == "Unity"
        paths = map(pathlib.Path, INCLUDE.findall(file.read_text())) if together else [file]
        sources = [path.relative_to(ROOT) for path in paths
                   if path.is_relative_to(ROOT) and not path.is_relative_to(build)
                   and path.suffix == ".cc" and "kernel" not in path.name]
        if sources:
            entry["command"] = PRECOMPILED.sub("", entry["command"])
            words = shlex.split(entry["command"])
            yield Task(build, entry, sources, texts.get(words[words.index("-o") + 1]))


def choose(build, together, folders):
    """The tasks that look at each source of the folders once, and at its using declarations."""
    chosen = {}
    if together:
        for task in tasks_of(together):
            if task.texts is not None and task.is_of(folders):
                chosen[task.entry["file"]] = task
    seen = {source for task in chosen.values() for source in task.sources}
    for task in tasks_of(build):
        if not task.is_of(folders):
            continue
        if not seen.issuperset(task.sources):
            chosen[task.entry["file"]] = task
        elif together and any(USING.search((ROOT / source).read_text()) for source in task.sources):
            task.checks = USING_CHECK
            chosen[task.entry["file"] + USING_CHECK] = task
    for folder in folders:
        if not any(task.is_of([folder]) for task in chosen.values()):
            sys.exit(f"{build} compiles no source of {folder}")
    for task in chosen.values():
        if task.texts is None:
            sys.exit(f"{build} has not compiled {task.entry['file']}: build it first")
    return list(chosen.values())


def hash_of(parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def keys_of(tasks):
    """For each task the hash of all that what it finds depends on."""
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    # Every source may include what is generated from these.
    protos = [path.read_bytes() for path in sorted((ROOT / "proto").glob("*.proto"))]
    common = hash_of([version, (ROOT / ".clang-tidy").read_bytes(), *protos]).encode()
    keys = []
    for task in tasks:
        command = task.entry["command"].replace(str(ROOT), "")
        keys.append(hash_of([common, task.checks.encode(), command.encode(),
                             *(path.read_bytes() for path in sorted(task.texts))]))
    return keys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--together", type=pathlib.Path, metavar="BUILD")
    arguments = parser.parse_args()
    together = arguments.together and arguments.together.resolve()
    tasks = choose(arguments.build.resolve(), together, arguments.folders)
    CACHE.mkdir(parents=True, exist_ok=True)
    changed = [(task, CACHE / key) for task, key in zip(tasks, keys_of(tasks))
               if not (CACHE / key).exists()]
    for build in {task.build for task in tasks}:
        entries = [task.entry for task in tasks if task.build == build]
        (build / "clang-tidy").mkdir(exist_ok=True)
        (build / "clang-tidy/compile_commands.json").write_text(json.dumps(entries))

    def tidy(change):
        task, clean = change
        run = subprocess.run(["clang-tidy", "--quiet", *([f"--checks={task.checks}"] if task.checks else []),
                              "-p", task.build / "clang-tidy", task.entry["file"]],
                             capture_output=True, text=True)
        if run.returncode == 0:
            clean.touch()
        return run

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for run in pool.map(tidy, changed):
            if run.returncode != 0:
                failed += 1
                print(run.stdout + run.stderr, end="")

    def count(some):
        return len({source for task in some for source in task.sources})
    print(f"clang-tidy: {count(task for task, _ in changed)} of {count(tasks)} sources in {len(changed)} runs, "
          f"the others were clean before; {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
