"""The program of bench/goodput.py: a worker of a Kumo job, or (below torchrun) a rank of PyTorch DDP, or
torchft's lighthouse, which starts its replicas again and again. All train one perceptron on the same drawn
samples, in minibatches of 64 on one thread. Without torch a Kumo worker trains it with numpy.

GOODPUT_FOLDER: for count-PID, the samples that this process has computed, progress-RANK, and rank 0's
checkpoint. GOODPUT_CHECKPOINT_STEPS: DDP's steps between two checkpoints. TORCHFT_REPLICAS: how many the
lighthouse starts.
"""
import datetime
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np

try:
    import torch
except ImportError:
    torch = None

WIDTHS = (784, 512, 512, 10)
MINIBATCH, SAMPLES, DRAWN = 64, 640000, 6400  # the drawn samples come again and again
RATE = 0.05
FOLDER = pathlib.Path(os.environ["GOODPUT_FOLDER"])


class Number:
    """A number in a file, which a process that is killed has written up to its last step."""

    def __init__(self, name):
        self.file = os.open(FOLDER / name, os.O_RDWR | os.O_CREAT)
        self.value = 0

    def add(self, some):
        self.set(self.value + some)

    def set(self, value):
        self.value = value
        os.pwrite(self.file, b"%20d" % value, 0)


def draw():
    random = np.random.default_rng(1)
    return random.random((DRAWN, WIDTHS[0]), np.float32), random.integers(0, WIDTHS[-1], DRAWN)


def make_torch_model():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # drawn labels teach nothing: numbers that vanish would halve the speed
    layers = []
    for inputs, outputs in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    return model, torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9)


def torch_step(model, optimizer, x, y, average=lambda: None):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    average()
    optimizer.step()
    return loss.detach()


def make_numpy_model():
    random = np.random.default_rng(1)
    return {f"{kind}{i}": random.normal(0, 0.05, shape).astype(np.float32)
            for i, (inputs, outputs) in enumerate(zip(WIDTHS, WIDTHS[1:]))
            for kind, shape in (("weight", (inputs, outputs)), ("bias", (outputs,)))}


def numpy_step(model, x, y):
    layers = len(WIDTHS) - 1
    values = [x]
    for i in range(layers):
        value = values[-1] @ model[f"weight{i}"] + model[f"bias{i}"]
        values.append(value if i == layers - 1 else np.maximum(value, 0))
    shares = np.exp(values[-1] - values[-1].max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    loss = -np.log(shares[np.arange(len(y)), y]).mean()
    shares[np.arange(len(y)), y] -= 1
    error = shares / len(y)
    for i in reversed(range(layers)):
        below = (error @ model[f"weight{i}"].T) * (values[i] > 0)
        model[f"weight{i}"] -= RATE * values[i].T @ error
        model[f"bias{i}"] -= RATE * error.sum(axis=0)
        error = below
    return loss


def be_a_worker():
    import kumo
    x, y = draw()
    count = Number(f"count-{os.getpid()}")
    if torch:
        x, y = torch.from_numpy(x), torch.from_numpy(y)
        model, optimizer = make_torch_model()
    else:
        model, optimizer = make_numpy_model(), None
    with kumo.Worker(None, model, optimizer, train_samples=SAMPLES) as worker:
        for block in worker.blocks():
            for indices in block.minibatches():
                drawn = indices % DRAWN
                loss = (torch_step(model, optimizer, x[drawn], y[drawn]) if torch else
                        numpy_step(model, x[drawn], y[drawn]))
                block.add(loss=loss, samples=len(indices))
                count.add(len(indices))


def be_a_rank():
    import torch.distributed as dist
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = map(torch.from_numpy, draw())
    model, optimizer = make_torch_model()
    checkpoint, every = FOLDER / "checkpoint.pt", int(os.environ["GOODPUT_CHECKPOINT_STEPS"])
    first = 0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    model = torch.nn.parallel.DistributedDataParallel(model)
    count, progress = Number(f"count-{os.getpid()}"), Number(f"progress-{rank}")
    for step in range(first, sys.maxsize):
        at = (step * size + rank) * MINIBATCH
        drawn = np.arange(at, at + MINIBATCH) % DRAWN
        torch_step(model, optimizer, x[drawn], y[drawn])
        count.add(MINIBATCH)
        progress.set((step + 1) * size * MINIBATCH)
        if rank == 0 and (step + 1) % every == 0:
            torch.save({"model": model.module.state_dict(), "optimizer": optimizer.state_dict(),
                        "step": step + 1}, FOLDER / "checkpoint.tmp")
            os.replace(FOLDER / "checkpoint.tmp", checkpoint)


def be_a_lighthouse():
    from torchft.coordination import LighthouseServer
    lighthouse = LighthouseServer(bind="[::]:0", min_replicas=1, join_timeout_ms=10000, quorum_tick_ms=100)

    def start(replica):
        return subprocess.Popen([sys.executable, __file__], env=dict(
            os.environ, REPLICA_GROUP_ID=str(replica), TORCHFT_LIGHTHOUSE=lighthouse.address()))

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    replicas = [start(replica) for replica in range(int(os.environ["TORCHFT_REPLICAS"]))]
    while True:
        replicas = [old if old.poll() is None else start(i) for i, old in enumerate(replicas)]
        time.sleep(0.05)


def be_a_replica():
    import torch.distributed as dist
    import torchft
    torch.set_num_threads(1)
    replica, size = int(os.environ["REPLICA_GROUP_ID"]), int(os.environ["TORCHFT_REPLICAS"])
    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    x, y = map(torch.from_numpy, draw())
    model, optimizer = make_torch_model()

    def state():
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    def load(state):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=datetime.timedelta(seconds=10)), load_state_dict=load, state_dict=state,
        min_replica_size=1, replica_id=f"replica-{replica}-", rank=0, world_size=1, store_addr="localhost",
        store_port=store.port, timeout=datetime.timedelta(seconds=10))
    parameters = list(model.parameters())

    def average():
        """What torchft's DistributedDataParallel does, which in 0.2.0 ends the survivor of a kill in an assertion."""
        flat = torch.cat([parameter.grad.flatten() for parameter in parameters])
        manager.allreduce(flat).wait()
        parts = flat.split([parameter.numel() for parameter in parameters])
        for parameter, part in zip(parameters, parts):
            parameter.grad = part.view_as(parameter)

    wrapped = torchft.Optimizer(manager, optimizer)
    count, progress = Number(f"count-{os.getpid()}"), Number(f"progress-{replica}")
    while True:
        at = (manager.current_step() * size + replica) * MINIBATCH
        drawn = np.arange(at, at + MINIBATCH) % DRAWN
        torch_step(model, wrapped, x[drawn], y[drawn], average)
        count.add(MINIBATCH)
        progress.set(manager.batches_committed() * MINIBATCH)


if __name__ == "__main__":
    if "RANK" in os.environ:
        be_a_rank()
    elif "REPLICA_GROUP_ID" in os.environ:
        be_a_replica()
    elif "TORCHFT_REPLICAS" in os.environ:
        be_a_lighthouse()
    else:
        be_a_worker()
