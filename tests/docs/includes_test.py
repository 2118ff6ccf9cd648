#!/usr/bin/env python3
"""Includes of the sources, compared with "Allowed includes" in docs/architecture.md: each room may
include itself and the rooms that its line names, and no others. A class may be declared where its header may be
included. Inside a top folder a line names each room; elsewhere a top folder stands for all its rooms. A room with a
* is the files that fit. Each arrow is used, and the rooms of common/, data/, models/, server/ and worker/ include
each other without a cycle. And the name of each header's class is unique: if two rooms that may not include each
other have classes of one name, a test that links both rooms gets the wrong destructor, and no compiler reports an
error. Prints FILE:LINE: ... for each violation, and exits with 1 if there are any.

  tests/docs/includes_test.py
"""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ANYTHING = {"tests", "bench"}
WITHOUT_CYCLES = ("common", "data", "models", "server", "worker")
ARROW = re.compile(r"^(\S+) -> (\S+(?:, \S+)*)$", re.MULTILINE)
INCLUDE = re.compile(r'^#include "([^"]+)"')
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{")
DECLARED = re.compile(r"^(?:class|struct|enum class) (\w+)(?: : \w+)?;")
CLASS = re.compile(r"^(?:class|struct|enum class) (\w+)(?: final)?(?: : [^;]*)?\s*\{")


def arrows(page):
    """{room: the rooms it may include}, from the first block of code below the heading."""
    block = page.split("## Allowed includes", 1)[1].split("```")[1]
    return {room: set(named.split(", ")) for room, named in ARROW.findall(block)}


def room_of(path, rooms):
    """The room with a * that a path, relative to the project, fits, or the longest that it lies in; None outside of
    all."""
    fitting = [room for room in rooms if "*" in room and fnmatch.fnmatch(path, room)]
    if fitting:
        return fitting[0]
    inside = [room for room in rooms if path.startswith(room + "/")]
    return max(inside, key=len, default=None)


def names(named, room, target):
    """Whether the name of a room in the line of `room` stands for `target`."""
    other_top = named.split("/")[0] != room.split("/")[0]
    return target == named or (other_top and f"{target}/".startswith(f"{named}/"))


def cycle(allowed):
    """Rooms that include each other in a circle, from the first to the first again; [] if there are none."""
    done = set()

    def visit(room, path):
        if room in path:
            return path[path.index(room):] + [room]
        if room in done:
            return []
        for target in sorted(allowed.get(room, ())):
            if found := visit(target, path + [room]):
                return found
        done.add(room)
        return []

    for room in sorted(allowed):
        if found := visit(room, []):
            return found
    return []


def classes(source, form=CLASS):
    """(line, name with its namespace) of each class that a header defines, or declares, outside of others."""
    namespace = ""
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if found := NAMESPACE.match(line):
            namespace = found[1]
        elif found := form.match(line):
            yield number, f"{namespace}::{found[1]}"


def main():
    allowed = arrows((ROOT / "docs/architecture.md").read_text())
    rooms = set(allowed) | set().union(*allowed.values())
    wrong = [f"docs/architecture.md: there is no folder {room}" for room in sorted(rooms)
             if not any(ROOT.glob(room))]
    for top in WITHOUT_CYCLES:
        inside = {room: {target for target in targets if f"{target}/".startswith(f"{top}/")}
                  for room, targets in allowed.items() if f"{room}/".startswith(f"{top}/")}
        if found := cycle(inside):
            wrong.append(f"docs/architecture.md: rooms in a circle: {' -> '.join(found)}")
    used = set()
    checked = 0
    named = {}
    declared = []
    for folder in sorted({room.split("/")[0] for room in rooms}):
        for source in sorted(path for path in (ROOT / folder).rglob("*.*")
                             if path.suffix in (".h", ".cc", ".cu", ".cuh")):
            name = source.relative_to(ROOT).as_posix()
            room = room_of(name, rooms)
            for number, a_class in classes(source) if source.suffix == ".h" else ():
                if a_class in named:
                    wrong.append(f"{name}:{number}: {a_class} is the name of another class, in "
                                 f"{named[a_class]}")
                named[a_class] = name
            declared += [(name, number, a_class) for number, a_class in classes(source, DECLARED)]
            for number, line in enumerate(source.read_text().splitlines(), 1):
                include = INCLUDE.match(line)
                if not include:
                    continue
                checked += 1
                target = room_of(include[1], rooms)
                if target is None and include[1].split("/")[0] not in ANYTHING:
                    continue  # another program's
                if target == room:
                    continue
                arrow = next(((room, named_room) for named_room in allowed.get(room, ())
                              if target and names(named_room, room, target)), None)
                if arrow is None:
                    wrong.append(f"{name}:{number}: {room} may not include {include[1]}")
                used.add(arrow)
    for name, number, a_class in declared:
        room, owner = room_of(name, rooms), named.get(a_class, name)
        target = room_of(owner, rooms)
        if target != room and not any(names(named_room, room, target) for named_room in allowed.get(room, ())):
            wrong.append(f"{name}:{number}: {room} may not declare {a_class} of {owner}")
    wrong += [f"docs/architecture.md: no source uses the arrow {room} -> {target}; remove it"
              for room in sorted(allowed) for target in sorted(allowed[room])
              if (room, target) not in used]
    print(*wrong, sep="\n")
    if not checked or not named:
        wrong.append("nothing was checked")
    print(f"{checked} includes of {len(rooms)} rooms, {len(named)} classes, {len(wrong)} that are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
