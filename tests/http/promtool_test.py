#!/usr/bin/env python3
"""What each process of a real run serves under /metrics is what Prometheus' own checker takes, names and
units included (`promtool check metrics`).

  tests/http/promtool_test.py --bin DIR     DIR: the folder of the programs

Exits with 77, saying so, where there is no promtool.
"""
import argparse
import shutil
import subprocess
import sys

import training
import ctest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    programs = parser.parse_args().bin
    promtool = shutil.which("promtool")
    if not promtool:
        ctest.skip("promtool is missing (Debian has it in prometheus)")
    failed = 0
    with training.Training(programs) as run:
        run.await_epochs(1)
        for name in training.NAMES:
            text = run.metrics(name)
            ended = subprocess.run([promtool, "check", "metrics"], input=text, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            print(f"{name}: {len(text.splitlines())} lines, promtool ends with {ended.returncode}")
            if ended.returncode != 0 or ended.stdout.strip():
                failed = 1
                print(ended.stdout + text)
    return failed


if __name__ == "__main__":
    sys.exit(main())
