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

    Worker            takes part in a job: blocks(), leave()
    Block, Work       what a worker computes: minibatches(), add()
    Metric            a figure of the job
    ArrayModel, Tree  models of numpy arrays and of JAX pytrees, in the place of a torch.nn.Module
    load_state_dict   the weights of a checkpoint
    export            the same, written into a file
    KumoError         what goes wrong, and what to do
"""
from ._arrays import ArrayModel
from ._checkpoints import export, load_state_dict
from ._library import KumoError, library as _shared_library
from ._tree import Tree
from ._worker import Block, Metric, Work, Worker

__version__: str = _shared_library.kumo_library_version().decode()
__all__ = ["ArrayModel", "Block", "KumoError", "Metric", "Tree", "Work", "Worker", "export",
           "load_state_dict"]
for _one in __all__:
    globals()[_one].__module__ = "kumo"
del _one
