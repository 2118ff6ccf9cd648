"""Cells of a notebook, one after the other in one namespace; worker_test.py runs it with a server.

  notebook_cells.py CELLS    the names of the cells to run
"""
import sys

OPEN = """
import numpy as np
import kumo
weights = {"w": np.zeros(4, np.float32)}
worker = kumo.Worker("job.conf", weights, train_samples=48, name="notebook")
def train(interrupt_in=None, blocks=None):
    for done, block in enumerate(worker.blocks()):
        if done == blocks:
            break
        for minibatch, indices in enumerate(block.minibatches()):
            if block.round == interrupt_in and minibatch == 1:
                raise KeyboardInterrupt
            weights["w"] += np.float32(0.1) * (np.random.normal(size=4) + indices.mean())
            block.add(loss=1, samples=len(indices))
"""
CELLS = {
    "open": OPEN,
    "interrupt": "train(interrupt_in=1)",
    "go-on": "train(blocks=3)",
    "train": "train()",
    "close": "worker.close()",
}

notebook = {"__name__": "__main__"}
for name in sys.argv[1:]:
    try:
        exec(compile(CELLS[name], name, "exec"), notebook)
        print(name, "ok")
    except BaseException as error:  # as a notebook, which goes on with the next cell
        print(name, type(error).__name__, error)
        kept = error.__traceback__  # with the loop's frames
