#!/usr/bin/env python3
"""(h) Cost of synchronisation: two workers and two servers, blocks of 1, 10 and 100 minibatches.

LeNet as in scaling.py: 2 partitions, minibatches of 64, 1bit pushes, two workers on the same device
(or --devices: one after the other), two servers. All blocks run in turn, several times; reported are
medians and ranges of samples per second of the whole job, and the shares of a round in which a
worker trains, waits for the other workers, and pushes or pulls (compute_ms, wait_ms and network_ms
of log.jsonl), after a second to warm up.

  bench/blocks.py [--devices LIST] [--blocks 1,10,100] [--runs N] [--seconds S] [--data DIR]
                  [--bin DIR] [--json FILE]
"""
import json
import statistics
import tempfile

from jobs import commit, draw_data, machine, parser, rate, run_job

WARM_UP_S = 1
PARTS = ("compute_ms", "wait_ms", "network_ms")


def measure(arguments, block, folder):
    """Samples per second, and the shares of compute, wait and network."""
    entries = run_job(arguments, 2, folder, servers=2, block=block,
                      start_up=("--devices", arguments.devices))
    warm = [e for e in entries if e["wall_time"] - entries[0]["wall_time"] >= WARM_UP_S]
    if len(warm) > 1:
        entries = warm
    lines = [e for e in entries if all(e.get(part) is not None for part in PARTS)]
    parts = [statistics.mean(line[part] for line in lines) for part in PARTS]
    return rate(entries, block), [part / (sum(parts) or 1) for part in parts]


def main():
    options = parser(__doc__, runs=3, seconds=5)
    options.add_argument("--devices", default="cpu", help="of the workers, in turn (default cpu)")
    options.add_argument("--blocks", default="1,10,100")
    arguments = options.parse_args()
    blocks = [int(block) for block in arguments.blocks.split(",")]

    found = {block: [] for block in blocks}
    with tempfile.TemporaryDirectory() as folder:
        draw_data(arguments, folder)
        for _ in range(arguments.runs):
            for block in blocks:
                found[block].append(measure(arguments, block, folder))

    print(f"{machine()}, workers on {arguments.devices}, commit {commit()}; {arguments.runs} runs in "
          "turn")
    print("minibatches a block      samples/s                 compute  wait  network")
    rows = []
    for block, runs in found.items():
        rates = [samples for samples, _ in runs]
        shares = [statistics.median(share[i] for _, share in runs) for i in range(len(PARTS))]
        rows.append({"name": f"blocks of {block}", "median": statistics.median(rates),
                     "min": min(rates), "max": max(rates), "compute": shares[0],
                     "wait": shares[1], "network": shares[2]})
        print(f"{block:19d} {rows[-1]['median']:14.0f}  ({min(rates):.0f} .. {max(rates):.0f})"
              f"{shares[0]:12.2f}  {shares[1]:.2f}  {shares[2]:.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "benchmark": "blocks", "machine": machine(), "commit": commit(),
            "devices": arguments.devices, "rows": rows}) + "\n")


if __name__ == "__main__":
    main()
