"""The program of worker.command in worker_test.py for torch: batch normalisation, dropout, a shared and a
frozen parameter, and AdamW.

CASE: as in own_model.py: stop; late_zero_grad: zero_grad() comes after step()."""
import os
import pathlib
import signal

import kumo
import torch
from torch import nn

CASE = os.environ.get("CASE", "")
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
        self.last = nn.Linear(8, 1).to(torch.float64)

    def forward(self, x):
        x = self.drop(self.norm(self.first(x)).tanh())
        return self.last(self.frozen(self.second(x)).double()).float()


model = Net()
before = model.frozen.weight.clone()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=0.01)


def evaluate(part):
    assert not model.training and not torch.is_grad_enabled()
    # Processes that are forked from this one.
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[SAMPLES:], y[SAMPLES:]),
                                         batch_sampler=list(part.minibatches()), num_workers=1)
    for inputs, outputs in loader:
        part.add(loss=nn.functional.mse_loss(model(inputs), outputs), samples=len(inputs))


with kumo.Worker(None, model, optimizer, train_samples=SAMPLES, validation_samples=VALIDATION) as worker:
    for block in worker.blocks(evaluate):
        if CASE == "stop" and block.round == 3 and not pathlib.Path("once").exists():
            pathlib.Path("once").touch()
            os.kill(os.getppid(), signal.SIGINT)
        for indices in block.minibatches():
            assert model.training
            loss = nn.functional.mse_loss(model(x[indices]), y[indices])
            if CASE != "late_zero_grad":
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if CASE == "late_zero_grad":
                optimizer.zero_grad()
            block.add(loss=loss, samples=len(indices))
assert torch.equal(before, model.frozen.weight)
