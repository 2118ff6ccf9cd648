"""The program of worker.command in worker_test.py for torch: batch normalisation, dropout, a shared and a
frozen parameter, parameters and a layer of other precisions, a buffer that the model replaces, gradients
accumulated over two parts of a minibatch, and AdamW.

CASE: as in own_model.py: stop; kills: worker-0 kills itself once in round 2, and worker-1 kills server-1 once in
round 5; late_zero_grad: zero_grad() comes after step(); replaced: a parameter is
replaced; clipped: weights are clipped, also in gradient mode; own_step: the Worker gets no optimizer; no_step:
the optimizer takes no step; nadam: the optimizer is NAdam; nesterov: it is an SGD that changes gradients;
slowing: it counts its steps in its groups; moved, target, unfrozen: a frozen parameter is changed, or a layer
that the optimizer leaves out, or the layer requires gradients; others: the optimizer has another model's
parameters; loader: a DataLoader's process reports."""
import contextlib
import os
import pathlib
import signal

import kumo
import torch
from torch import nn

CASE = os.environ.get("CASE", "")
NAME = os.environ["KUMO_WORKER_NAME"]
SAMPLES, VALIDATION = 200, 30
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
torch.manual_seed(1)
x = torch.randn(SAMPLES + VALIDATION, 8)
y = (x @ torch.randn(8)).tanh()[:, None]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.second = nn.Linear(8, 8)
        self.second.weight = self.first.weight  # shared
        self.drop = nn.Dropout(0.1)
        self.frozen = nn.Linear(8, 8)
        self.frozen.requires_grad_(False)
        self.narrow = nn.Linear(8, 8).to(torch.bfloat16)
        self.last = nn.Linear(8, 1).to(torch.float64)
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x):
        if self.training:
            self.seen = 0.9 * self.seen + 0.1 * x.mean(0)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.first(x)
        x = self.drop(self.norm(x.float()).tanh())
        x = self.frozen(self.second(x)) + self.narrow(x.to(torch.bfloat16)).float()
        return self.last(x.double()).float()


model = Net()
before = model.frozen.weight.clone()
stepped = Net() if CASE == "others" else model
if CASE == "target":
    stepped = nn.ModuleList([model.first, model.last])
optimizer = torch.optim.AdamW((p for p in stepped.parameters() if p.requires_grad), lr=0.01)
if CASE == "nadam":
    optimizer = torch.optim.NAdam(model.parameters())
if CASE == "nesterov":
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1, momentum=0.9,
                                nesterov=True, foreach=True)
if CASE == "slowing":
    class Slowing(torch.optim.AdamW):
        def step(self, closure=None):
            for group in self.param_groups:
                group["count"] = group.get("count", 0) + 1
                group["weight_decay"] = 1 / group["count"]
            return super().step(closure)
    optimizer = Slowing((p for p in model.parameters() if p.requires_grad), lr=0.01)


def once(what):
    """Whether no process of the job has come here before."""
    try:
        pathlib.Path("once-" + what).touch(exist_ok=False)
        return True
    except FileExistsError:
        return False


def kill_server(index):
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if parent == os.environ["LAUNCHER"] and f"\0--index\0{index}\0" in (folder / "cmdline").read_text():
                os.kill(int(folder.name), signal.SIGKILL)


def disturb(block):
    if CASE == "stop" and block.round == 3 and once("stop"):
        os.kill(int(os.environ["LAUNCHER"]), signal.SIGINT)
    if CASE == "kills" and NAME == "worker-0" and block.round >= 2 and once("worker"):
        os.kill(os.getpid(), signal.SIGKILL)
    if CASE == "kills" and NAME == "worker-1" and block.round >= 5 and once("server"):
        kill_server(1)


def evaluate(part):
    assert not model.training and not torch.is_grad_enabled()
    # Processes that are forked from this one.
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[SAMPLES:], y[SAMPLES:]),
                                         batch_sampler=list(part.minibatches()), num_workers=1)
    for inputs, outputs in loader:
        part.add(loss=nn.functional.mse_loss(model(inputs), outputs), samples=len(inputs))


with kumo.Worker(None, model, None if CASE == "own_step" else optimizer, train_samples=SAMPLES,
                 validation_samples=VALIDATION) as worker:
    for block in worker.blocks(evaluate):
        disturb(block)
        if CASE == "replaced":
            model.first.bias = nn.Parameter(torch.zeros(8))
        if CASE == "loader":
            class Reporting(torch.utils.data.Dataset):
                def __getitem__(self, i):
                    block.add(loss=0, samples=1)
            list(torch.utils.data.DataLoader(Reporting(), batch_sampler=[[0]], num_workers=1))
        if CASE == "unfrozen":
            model.frozen.requires_grad_(True)
        for indices in block.minibatches():
            assert model.training
            if CASE != "late_zero_grad":
                optimizer.zero_grad()
            for part in filter(len, (indices[:4], indices[4:])):
                loss = nn.functional.mse_loss(model(x[part]), y[part])
                (loss * (len(part) / len(indices))).backward()
                block.add(loss=loss, samples=len(part))
            if CASE != "no_step":
                optimizer.step()
            if CASE == "clipped":
                for parameter in model.first.parameters():
                    parameter.data.clamp_(-0.01, 0.01)
            if CASE == "moved":
                model.frozen.bias.data.mul_(0.99).add_(0.01)
            if CASE == "target":
                model.narrow.weight.data.mul_(0.5)
            if CASE == "late_zero_grad":
                optimizer.zero_grad()
assert torch.equal(before, model.frozen.weight)
