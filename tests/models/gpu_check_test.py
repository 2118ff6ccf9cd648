#!/usr/bin/env python3
"""Targets and test filters of bench/gpu_check.sh against this build. Nothing else runs that script before a
machine with a GPU does: there, an unknown target stops the build, and a filter that matches nothing checks
nothing. Prints each name that this build does not know, and exits with 1 if there are any.

  tests/models/gpu_check_test.py --build BUILD --ninja NINJA [--left-out TARGET ...]

--left-out: targets that this build was configured without.
"""
import argparse
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench" / "gpu_check.sh"


def lines(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def known_targets(build, ninja):
    return {line.split(":")[0] for line in lines(ninja, "-C", build, "-t", "targets", "all")}


def matches(program, pattern):
    """Whether a test of the program has a name that the pattern matches."""
    listed = lines(program, "--gtest_list_tests", f"--gtest_filter={pattern}")
    return any(line.startswith("  ") for line in listed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--ninja", required=True)
    parser.add_argument("--left-out", nargs="*", default=[])
    options = parser.parse_args()
    known = known_targets(options.build, options.ninja)
    targets, patterns, wrong = [], 0, []
    for line in lines(SCRIPT, "--list"):
        kind, *words = line.split()
        if kind == "target":
            targets += words
            continue
        _, _, test, text = words
        program = options.build / "bin" / test
        if test not in targets:
            wrong.append(f"compute-sanitizer runs {test}, which is no target of the script")
            continue
        if not program.exists():
            wrong.append(f"compute-sanitizer runs {test}, and {program} is not built")
            continue
        # Each part of the filter has to match: `first:second-excluded`.
        chosen, _, excluded = text.partition("-")
        for pattern in [*chosen.split(":"), *filter(None, excluded.split(":"))]:
            patterns += 1
            if not matches(program, pattern):
                wrong.append(f"{test} has no test {pattern}")
    wrong += [f"there is no target {target}" for target in targets
              if target not in known and target not in options.left_out]
    for message in wrong:
        print(f"bench/gpu_check.sh: {message}")
    print(f"{len(targets)} targets, {patterns} filters, {len(wrong)} unknown")
    return 1 if wrong or not targets or not patterns else 0


if __name__ == "__main__":
    sys.exit(main())
