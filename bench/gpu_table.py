#!/usr/bin/env python3
"""Result table of bench/gpu_check.sh, from the files that its steps and benchmarks left in a folder.

  bench/gpu_table.py FOLDER GPU COMMIT     FOLDER: steps.tsv, *.log and *.json
"""
import json
import os
import pathlib
import sys


def results(folder):
    """The benchmarks' JSON, by name: files, or lines of logs."""
    found = {}
    for path in [*sorted(folder.glob("*.log")), *sorted(folder.glob("*.json"))]:
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith('{"benchmark"'):
                try:
                    entry = json.loads(line)
                except ValueError:  # cut short
                    continue
                if "results" in entry and entry["benchmark"] in found:  # in several steps
                    found[entry["benchmark"]]["results"] += entry["results"]
                else:
                    found[entry["benchmark"]] = entry
    return found


def spread(low, median, high, digits=0):
    return f"{median:.{digits}f} ({low:.{digits}f} - {high:.{digits}f})"


def train_speed(entry):
    for result in entry["results"]:
        yield f"train {result['work']}", "samples/s", spread(*result["kumo"]), "", ""
        for rival in result["torch"]:
            yield ("", f"  PyTorch {entry['torch']} {rival['setting']}", spread(*rival["speed"]),
                   f"{rival['ratio']:.2f}", "Kumo over PyTorch")


def device_codecs(entry):
    yield "codecs", "copy on the device, GB/s", f"{entry['copy_gb_per_s']:.0f}", "", ""
    for row in entry["rows"]:
        yield ("", f"  {row['name']}, GB/s of float32", spread(*row["gb_per_s"], digits=1),
               f"{row['share']:.2f}",
               f"of the copy's rate: the kernel alone, {row['kernel_gb_per_s']:.0f} GB/s; bus "
               f"{row['bus_ms']:.2f} ms")


def blocks(entry):
    for row in entry["rows"]:
        yield (row["name"], f"samples/s, 2 workers on {entry['devices']}",
               spread(row["min"], row["median"], row["max"]), f"{row['wait']:.2f}",
               f"of a round waits; computes {row['compute']:.2f}, network {row['network']:.2f}")


def time_to_accuracy(entry):
    rows = entry["rows"]
    first = next((row["median"] for row in rows if row["reached"]), None)
    for row in rows:
        value, ratio = "not reached", ""
        if row["reached"]:
            value = spread(row["min"], row["median"], row["max"], digits=1)
            ratio = f"{row['median'] / first:.2f}"
        yield (f"to {entry['target']:g}", f"s, {row['name']}", value, ratio,
               f"times the first; epochs {row.get('epochs', '-')}")


def chaos(entry):
    for row in entry["rows"]:
        after = row["going_on_s"]
        yield (f"{row['fault']} {row['role']}", "s until it goes on",
               f"{after['median']:.1f}" if after else "-", "",
               {True: "accuracy of the undisturbed run", False: "OTHER RESULT",
                None: "no job ended"}[row["same_weights"]])


def print_table(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main():
    folder, gpu, commit = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    print(f"\n{gpu}; {os.cpu_count()} cores; commit {commit}")
    steps = [line.split("\t") for line in (folder / "steps.tsv").read_text().splitlines()]
    lines = [("what", "", "median (low - high)", "ratio", "")]
    lines += [(name, outcome, f"{seconds} s", "", remark)
              for name, outcome, seconds, remark in steps]
    found = results(folder)
    for reader in (train_speed, device_codecs, blocks, time_to_accuracy, chaos):
        if reader.__name__ in found:
            lines += reader(found[reader.__name__])
    print_table(lines)
    counts = {outcome: sum(step[1] == outcome for step in steps)
              for outcome in ("ok", "skipped", "FAILED")}
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))


if __name__ == "__main__":
    main()
