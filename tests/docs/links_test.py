#!/usr/bin/env python3
"""README.md, CHANGELOG.md, CONTRIBUTING.md and docs/**/*.md, compared with the project: each link and
anchor has a target, named files and tests exist, commands have the options that the pages use, and no line
of prose is longer than 122 characters.

  tests/docs/links_test.py [--bin DIR]      DIR: the folder of kumo and the other programs

Prints FILE:LINE: ... for each error, and exits with 1 if there are any.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("kumo", "kumo-server", "kumo-worker", "kumo-data")
FOLDERS = ("bench", "cli", "cmake", "common", "data", "docs", "experiments", "k8s", "models", "proto",
           "server", "tests", "worker")
MOST_COLUMNS = 122  # of a line of prose
GENERATED = ("docs/experiments.md",)  # whose lines come from `kumo options --markdown`


def pages():
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]


def lines_of(page):
    """(number, line, whether it is code) of each line but the fences."""
    fenced = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        else:
            yield number, line, fenced or line.startswith("    ")


def anchors_of(page):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for _, line, code in lines_of(page):
        if not code and (heading := re.match(r"#+ (.*)", line)):
            text = re.sub(r"[^\w\- ]", "", heading[1].lower())
            found.add(text.replace(" ", "-"))
    return found


def broken_links(page):
    for number, line, code in lines_of(page):
        for target in () if code else re.findall(r"\]\(([^)\s]+)\)", line):
            path, _, anchor = target.partition("#")
            if "://" in path:
                continue
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                yield number, f"a link to {target}, but there is no {path}"
            elif anchor and anchor not in anchors_of(file):
                yield number, f"a link to {target}, but {file.name} has no heading #{anchor}"


def missing_files(page):
    """Of paths below the project's folders, in `code` of the text or in a command."""
    pattern = rf"(?<![\w/.<-])((?:{'|'.join(FOLDERS)})/[\w./-]*\.\w+)"
    for number, line, code in lines_of(page):
        for text in [line] if code else re.findall(r"`([^`]+)`", line):
            for path in re.findall(pattern, text):
                if not (ROOT / path).exists():
                    yield number, f"{path} does not exist"


def long_lines(page):
    """Lines of prose with a blank at which they could end. Tables, headings, code and a link that is all of
    a list's line may be longer. An indented line is code only behind a blank line or code, as in CommonMark:
    else it goes on a list."""
    if page.relative_to(ROOT).as_posix() in GENERATED:
        return
    before = ""  # the line before: "" blank, "code", "prose"
    previous = 0
    for number, line, code in lines_of(page):
        if number > previous + 1:
            before = ""  # a fence
        previous = number
        indented = line.startswith("    ")
        if not line.strip():
            before = ""
        elif (code and not indented) or (indented and before != "prose"):
            before = "code"
        else:
            before = "prose"
            text = re.match(r"\s*(?:(?:[-*+>]|\d+[.)])\s+)*", line).end()
            if (len(line) > MOST_COLUMNS and " " in line[text:MOST_COLUMNS + 1]
                    and not re.fullmatch(r"[#|].*|\[[^]]*\]\([^)]*\)", line[text:])):
                yield number, f"{len(line)} characters, but a line of prose has at most {MOST_COLUMNS}; wrap it"


def test_names():
    """Suite.Name of all tests, as CTest knows them, and the names of test executables."""
    sources = "\n".join(file.read_text() for file in ROOT.glob("tests/**/*.cc"))
    names = {f"{suite}.{test}"
             for suite, test in re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)", sources)}
    cmake = "\n".join(file.read_text() for folder in ("tests", "bench")
                      for file in ROOT.glob(f"{folder}/**/CMakeLists.txt"))
    return names | set(re.findall(r"(?:kumo_add_test\(|add_test\(NAME |kumo_add_python_test\()([\w.]+)", cmake))


def missing_tests(page, tests):
    for number, line, code in lines_of(page):
        for name in () if code else re.findall(r"`([A-Z]\w+\.[A-Z]\w+|\w+_test|bench\.\w+)`", line):
            if name not in tests:
                yield number, f"{name} is no test"


class Helps:
    """The --help of each program and command, asked once."""

    def __init__(self, folder):
        self.folder = folder
        self.known = {}

    def of(self, *command):
        if command not in self.known:
            ended = subprocess.run([self.folder / command[0], *command[1:], "--help"],
                                   capture_output=True, text=True)
            self.known[command] = ended.stdout if ended.returncode == 0 else None
        return self.known[command]


def commands_in(line, code):
    """Word lists of the commands of Kumo's programs that a line names."""
    for text in [line.split(" # ")[0]] if code else re.findall(r"`([^`]+)`", line):
        start = rf"(?:^|[ /$(])((?:{'|'.join(PROGRAMS)}) [^#|;)]*)"
        for command in re.findall(start, text.strip()):
            words = command.split()
            if re.fullmatch(r"[a-z]+|--\w+|FILE|[\w/.-]+\.conf", words[1]):
                yield words


def wrong_options(page, helps):
    for number, line, code in lines_of(page):
        for words in commands_in(line, code):
            program, command = words[0], []
            if program == "kumo" and re.fullmatch("[a-z]+", words[1]):
                command = [words[1]]
            text = helps.of(program, *command)
            if text is None:
                yield number, f"there is no command {' '.join([program, *command])}"
                continue
            for option in re.findall(r"(?<=\s)--[a-z][\w-]*", " " + " ".join(words)):
                if not re.search(rf"(?<!\S){option}(?![\w-])", text + " --help"):
                    yield number, f"{' '.join([program, *command])} has no option {option}"


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    helps = Helps(options.parse_args().bin)
    tests = test_names()
    wrong = 0
    for page in pages():
        for number, what in sorted({*broken_links(page), *missing_files(page),
                                    *missing_tests(page, tests), *wrong_options(page, helps),
                                    *long_lines(page)}):
            print(f"{page.relative_to(ROOT)}:{number}: {what}")
            wrong += 1
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
