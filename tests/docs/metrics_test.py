#!/usr/bin/env python3
"""The metrics that the sources name, against the table of docs/operations.md: the same, both ways. Exits
with 1 and says which where they differ.

  tests/docs/metrics_test.py
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = re.compile(r'"((?:kumo|process)_[a-z_]+)"')
ROW = re.compile(r"^\| `((?:kumo|process)_[a-z_]+)` \|", re.MULTILINE)


def main():
    served = set(NAME.findall((ROOT / "common/job/http/metrics_text.cc").read_text()))
    told = ROW.findall((ROOT / "docs/operations.md").read_text())
    wrong = [f"docs/operations.md: {name} is not served" for name in sorted(set(told) - served)]
    wrong += [f"docs/operations.md: {name} is missing" for name in sorted(served - set(told))]
    wrong += [f"docs/operations.md: {name} is there twice" for name in sorted(set(told))
              if told.count(name) > 1]
    print("\n".join(wrong) or f"{len(served)} metrics")
    return 1 if wrong or not served else 0


if __name__ == "__main__":
    sys.exit(main())
