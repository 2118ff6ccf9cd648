"""Messages of Kumo's processes that scripts search for in logs and output.

A {name} in braces stands for a value that the process fills in: VALUES has its regular expression.
tests/docs/log_messages_test.py requires that the sources have the words between the values.
"""
import re

VALUES = {"number": r"\d+", "round": r"round (\d+)", "checkpoint": r"round-(\d+)", "address": r"(\S+)",
          "url": r"(http://\S+)", "role": r"(worker|server)", "size": ".*", "bytes": r"(\d+)"}
VALUE = re.compile(r"\{(\w+)\}")

MESSAGES = {
    # First sign of a fault: a process that is missed or has left, or a return to a checkpoint.
    "fault": ("is lost", "has left: ", "is silent ", "has been silent ", "goes back to {round}",
              "was told to leave", "left on request", "no other process is heard",
              "generation {number} is over"),
    "went back": ("goes back to {round}", "goes on from checkpoint {checkpoint}"),
    "listens": ("listens at {address}",),
    "page": ("serves {url}",),
    "progress": ("{round}/",),
    "memory": ("a {role} needs {size} ({bytes} bytes)",),
}


def pattern(name):
    """A compiled pattern that finds any of these messages; its groups are those of the values."""
    def of(message):
        parts = VALUE.split(message)  # words and names of values in turn
        return "".join(VALUES[part] if at % 2 else re.escape(part) for at, part in enumerate(parts))
    return re.compile("|".join(map(of, MESSAGES[name])))
