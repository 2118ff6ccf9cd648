#!/usr/bin/env python3
"""Runs clang-tidy over the sources of a build folder, those only that changed since they were clean.

    cmake/clang_tidy.py build/release common server/coordinator ...

Looks at each source of the named folders that the build compiles, but kernels, which include next to
nothing. A source was clean before when its text, the text of every header of the project that it
includes, its compile command, .clang-tidy and clang-tidy's version are the same: then there is a file
for their hash below ~/.cache/kumo/clang-tidy. So another clone, or another branch, finds it too.

Exits with 1 when clang-tidy finds something, and prints what.
"""
import concurrent.futures
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
# GCC's precompiled headers mean nothing to Clang, which reads the headers themselves.
PRECOMPILED = re.compile(r" -Winvalid-pch| -include \S*cmake_pch\.hxx")


def commands(build, folders):
    """Compile commands of the sources to look at, by source, relative to the root."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if not source.is_relative_to(ROOT) or source.suffix != ".cc" or "kernel" in source.name:
            continue
        name = source.relative_to(ROOT)
        if any(name.is_relative_to(folder) for folder in folders):
            entry["command"] = PRECOMPILED.sub("", entry["command"])
            found[str(name)] = entry
    for folder in folders:
        if not any(pathlib.Path(name).is_relative_to(folder) for name in found):
            sys.exit(f"{build} compiles no source of {folder}")
    return found


def headers(build):
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


def hash_of(parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def main(build, folders):
    build = pathlib.Path(build).resolve()
    sources = commands(build, folders)
    compiled_from = headers(build)
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    # Every source may include what is generated from these.
    protos = [path.read_bytes() for path in sorted((ROOT / "proto").glob("*.proto"))]
    common = hash_of([version, (ROOT / ".clang-tidy").read_bytes(), *protos]).encode()

    def key(entry):
        words = shlex.split(entry["command"])
        command = entry["command"].replace(str(ROOT), "").encode()
        texts = [path.read_bytes() for path in sorted(compiled_from[words[words.index("-o") + 1]])]
        return hash_of([common, command, *texts])

    keys = {name: key(entry) for name, entry in sources.items()}
    CACHE.mkdir(parents=True, exist_ok=True)
    changed = [name for name in sources if not (CACHE / keys[name]).exists()]
    database = build / "clang-tidy"
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(list(sources.values())))

    def tidy(name):
        run = subprocess.run(["clang-tidy", "--quiet", "-p", database, ROOT / name],
                             capture_output=True, text=True)
        if run.returncode == 0:
            (CACHE / keys[name]).touch()
        return name, run

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, run in pool.map(tidy, changed):
            if run.returncode != 0:
                failed += 1
                print(run.stdout + run.stderr, end="")
    print(f"clang-tidy: {len(changed)} of {len(sources)} sources, the others were clean before; "
          f"{failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], set(sys.argv[2:])))
