"""Kumo: distributed training with sharded parameter servers, for models in Python.

A script keeps its model, its data and its loop; Kumo's servers hold the weights, decide which samples are
trained where, and survive the loss of workers:

    import kumo, torch
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    with kumo.Worker("job.conf", model, optimizer, train_samples=len(train)) as worker:
        for block in worker.blocks():
            for indices in block.minibatches():
                x, y = train[indices]
                loss = loss_function(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                block.add(loss=loss, samples=len(indices))

job.conf says `worker.command = python3 train.py`, and `kumo launch job.conf --workers 4` starts servers
and workers. docs/pytorch.md is the guide.
"""
from ._arrays import ArrayModel
from ._library import KumoError, library as _shared_library
from ._worker import Block, Metric, Work, Worker, load_state_dict

__version__: str = _shared_library.kumo_library_version().decode()
__all__ = ["ArrayModel", "Block", "KumoError", "Metric", "Work", "Worker", "load_state_dict"]
for _one in (ArrayModel, Block, KumoError, Metric, Work, Worker, load_state_dict):
    _one.__module__ = "kumo"
del _one
