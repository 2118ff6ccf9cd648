#!/usr/bin/env python3
"""Counts the sources of a revision: product files, those below 60 lines, headers that one other source includes
beside their own, and the files of each of the last 200 commits.

  cmake/source_counts.py [REVISION]
"""
import io
import pathlib
import re
import statistics
import subprocess
import sys
import tarfile

ROOMS = ("common/", "server/", "worker/", "models/", "data/", "cli/")
COMMITS = 200


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True).stdout


def product(revision):
    """The text of each source, by its path."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", revision))) as tree:
        return {entry.name: tree.extractfile(entry).read().decode()
                for entry in tree
                if entry.isfile() and entry.name.startswith(ROOMS) and re.search(r"\.(h|cc|cu|cuh)$", entry.name)}


def users(texts):
    """The sources that include each header, without the header's own."""
    found = {path: set() for path in texts if path.endswith((".h", ".cuh"))}
    for path, text in texts.items():
        for header in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
            own = pathlib.PurePath(header).with_suffix("") == pathlib.PurePath(path).with_suffix("")
            if header in found and not own:
                found[header].add(path)
    return found


def main():
    revision = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    texts = product(revision)
    small = sum(text.count("\n") < 60 for text in texts.values())
    headers = users(texts)
    single = sum(len(sources) == 1 for sources in headers.values())
    log = git("log", f"-{COMMITS}", "--no-merges", "--format=format:%x00", "--name-only", revision).decode()
    touched = [len(commit.split()) for commit in log.split("\0")[1:]]
    print(f"product files       {len(texts)}")
    print(f"below 60 lines      {small} ({small / len(texts):.0%})")
    print(f"headers             {len(headers)}")
    print(f"with one user       {single} ({single / len(headers):.0%})")
    print(f"files of a commit   mean {statistics.mean(touched):.1f}, median {statistics.median(touched):.0f} "
          f"of the last {len(touched)}")


if __name__ == "__main__":
    main()
