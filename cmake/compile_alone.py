#!/usr/bin/env python3
"""Compiles each source of a build folder alone, without precompiled headers, so that each is seen to
include the headers it uses: builds that compile a dozen sources at a time do not notice (together.cmake).

    cmake/compile_alone.py build/release common server models ...

Checks syntax and types only. A source that compiled before with the same text, headers, command and
compiler is left out: its hash is a file below ~/.cache/kumo/compile-alone, which all clones share.

Exits with 1 if a source does not compile, and prints the compiler's messages.
"""
import argparse
import concurrent.futures
import os
import pathlib
import shlex
import subprocess
import sys

from clang_tidy import CACHE as TIDY_CACHE
from clang_tidy import ROOT, hash_of, tasks_of

CACHE = TIDY_CACHE.parent / "compile-alone"
TAKES_A_WORD = {"-o", "-MT", "-MF"}  # options of a compilation, with the word behind each
ALONE = {"-c", "-MD"}


def command_for(task, source):
    """The compiler's call for one source of a task."""
    words = iter(shlex.split(task.entry["command"]))
    kept = []
    for word in words:
        if word in TAKES_A_WORD:
            next(words)
        elif word not in ALONE and word != task.entry["file"]:
            kept.append(word)
    if pathlib.Path(kept[0]).name == "ccache":
        kept = kept[1:]
    return [*kept, "-fsyntax-only", str(ROOT / source)]


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
    versions = {compiler: subprocess.run([compiler, "--version"], check=True, capture_output=True).stdout
                for compiler in {command[0] for _, command in calls.values()}}
    CACHE.mkdir(parents=True, exist_ok=True)

    def compile_one(call):
        source, (task, command) = call
        key = hash_of([versions[command[0]], " ".join(command).replace(str(ROOT), "").encode(),
                       *(path.read_bytes() for path in sorted(task.texts))])
        if (CACHE / key).exists():
            return None
        run = subprocess.run(command, cwd=task.entry["directory"], capture_output=True, text=True)
        if run.returncode == 0:
            (CACHE / key).touch()
        return run

    compiled = failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for run in pool.map(compile_one, sorted(calls.items())):
            compiled += run is not None
            if run is not None and run.returncode != 0:
                failed += 1
                print(run.stdout + run.stderr, end="")
    print(f"compiled alone: {compiled} of {len(calls)} sources, the others compiled before; {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
