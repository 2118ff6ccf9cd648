#!/usr/bin/env python3
"""Each file of tests is part of a test: its CMakeLists.txt, in its folder or above, names it or takes all
files of its kind. A file that nobody builds passes unnoticed. Prints each file that is left out, and exits
with 1 if there are any.

  tests/docs/test_sources_test.py
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
GLOB = re.compile(r"file\(GLOB \w+(?: CONFIGURE_DEPENDS)?([^)]*)\)", re.DOTALL)


def is_named(path, page):
    """By a CMakeLists.txt: CMake's lists have paths from its folder, Python's tests often stems in a loop."""
    text = page.read_text()
    own = path.relative_to(page.parent).as_posix()
    patterns = [pattern for found in GLOB.findall(text) for pattern in found.split()]
    if any(fnmatch.fnmatchcase(own, pattern) and pattern.count("/") == own.count("/") for pattern in patterns):
        return True
    words = set(re.split(r"[\s()]+|\$\{\w+\}/?", text))
    return own in words or path.suffix == ".py" and path.stem in words


def main():
    tests = sorted([*(ROOT / "tests").rglob("*_test.cc"), *(ROOT / "tests").rglob("*_test.py"),
                    *(ROOT / "tests").rglob("*_test.sh")])
    left_out = [path for path in tests
                if not any(is_named(path, page) for folder in path.parents if folder.is_relative_to(ROOT / "tests")
                           if (page := folder / "CMakeLists.txt").exists())]
    for path in left_out:
        print(f"{path.relative_to(ROOT)}: no CMakeLists.txt names it, so nothing runs it")
    print(f"{len(tests)} files of tests, {len(left_out)} that nothing runs")
    return 1 if left_out or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
