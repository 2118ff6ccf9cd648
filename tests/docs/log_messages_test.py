#!/usr/bin/env python3
"""Messages that scripts search for in logs (bench/log_messages.py), compared with the string literals of the
sources: a message that is reworded has to be reworded there too. And scripts in bench/ and tests/ search
logs for no other text. Exits with 1 and says which messages are not found.

  tests/docs/log_messages_test.py
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench"))
import log_messages

LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
SEAM = re.compile(r'(?<!\\)"\s*\n\s*"')  # between the parts of a literal of several lines
SEARCHED_LOG = re.compile(r"re\.\w+\([^\n]*\blog\w*\.read_text\(\)")


def literals():
    """All string literals of the programs, one a line."""
    sources = [source for folder in ("cli", "common", "server", "worker")
               for source in sorted(ROOT.glob(f"{folder}/**/*.cc"))]
    return "\n".join(literal for source in sources
                     for literal in LITERAL.findall(SEAM.sub("", source.read_text())))


def main():
    said = literals()
    wrong = []
    for name, messages in log_messages.MESSAGES.items():
        log_messages.pattern(name)
        for message in messages:
            wrong += [f'bench/log_messages.py: {name}: no source says "{words}"'
                      for words in log_messages.VALUE.split(message)[::2] if words not in said]
    for script in sorted([*ROOT.glob("bench/*.py"), *ROOT.glob("tests/**/*.py")]):
        wrong += [f"{script.relative_to(ROOT)}: {found[0]}: take the pattern from bench/log_messages.py"
                  for found in SEARCHED_LOG.finditer(script.read_text())
                  if "self.log.read_text" not in found[0]]  # Prometheus's own log
    print("\n".join(wrong) or f"{sum(map(len, log_messages.MESSAGES.values()))} messages")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
