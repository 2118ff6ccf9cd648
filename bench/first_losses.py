#!/usr/bin/env python3
"""Losses of an experiment's first minibatches on one worker compared with PyTorch, from the same weights
and with the same rates. Two ways:

  at Kumo's weights   each step's loss and gradient are computed again from the weights that Kumo had
                      then: the error of Kumo's arithmetic in one step
  by itself           PyTorch trains on from the first step's weights: the divergence of the two losses

Each way compares Kumo, and PyTorch in 32 bits, with PyTorch in 64 bits; gradients by their L2 norm.
Trainings that round differently diverge, faster at higher rates, and at once if the maximum of a pooling
window or the sign of a ReLU's input differs: the difference between PyTorch's own two results is the
yardstick. Exit code 1 if a loss at Kumo's weights differs by more than --below.

  bench/first_losses.py experiments/cifar_resnet20.conf [--steps 50] [--set KEY=VALUE]

Needs a Python that has PyTorch and numpy.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from jobs import draw_data
from torch_network import TorchNetwork

ROOT = pathlib.Path(__file__).resolve().parents[1]


def optimiser_of(torch, settings, trained, tensors):
    """Tensors with the same factors are a group; "factor" is that of the rate."""
    groups = {}
    for tensor in trained:
        decay = tensor["decay_factor"] * settings["weight_decay"] if tensor["decayed"] else 0.0
        groups.setdefault((tensor["rate_factor"], decay), []).append(tensors[tensor["name"]])
    groups = [{"params": params, "factor": rate, "weight_decay": decay}
              for (rate, decay), params in groups.items()]
    kind = settings["type"]
    if kind in ("adam", "adamw"):
        make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
        return make(groups, lr=1.0, betas=(settings["beta1"], settings["beta2"]),
                    eps=settings["epsilon"])
    return torch.optim.SGD(groups, lr=1.0, momentum=0 if kind == "sgd" else .5,
                           nesterov=kind == "nesterov")


def set_step(optimiser, settings, step):
    for group in optimiser.param_groups:
        group["lr"] = step["rate"] * group["factor"]
        if settings["type"] in ("momentum", "nesterov"):
            group["momentum"] = step["momentum"]
            # PyTorch's dampening is Kumo's unit gain, but not in the first step.
            group["dampening"] = step["momentum"] if settings["unit_gain"] else 0.0


class Training:
    """The run in PyTorch, in numbers of one type."""

    def __init__(self, torch, numpy, folder, run, dtype):
        self.torch, self.numpy, self.run, self.dtype = torch, numpy, run, dtype
        read = lambda name, kind: numpy.fromfile(folder / name, dtype=kind)
        (first,) = run["network"]["input"]
        shape = first.get("extents") or [first[key] for key in ("channels", "height", "width")]
        self.whole = first.get("vocabulary", 0) > 0
        self.inputs = read("inputs", "int32" if self.whole else "float32").reshape(-1, *shape)
        samples = len(self.inputs)
        if "objects" in run["steps"][0]:
            self.labels = [objects for step in run["steps"] for objects in step["objects"]]
        else:
            labels = torch.from_numpy(read("labels.i32", "int32")).long()
            if len(labels) == 0:
                labels = torch.from_numpy(read("labels.f32", "float32")).to(dtype)
            self.labels = labels if len(labels) == samples else labels.reshape(samples, -1)
        self.weights = read("weights.f32", "float32").reshape(-1, run["numbers"])
        self.tensors = {tensor["name"]: torch.empty(tensor["shape"], dtype=dtype)
                        for tensor in run["tensors"]}
        self.set_weights(0)
        trained = [tensor for tensor in run["tensors"] if ".running_" not in tensor["name"]]
        for tensor in trained:
            self.tensors[tensor["name"]].requires_grad_()
        self.trained = trained
        self.net = TorchNetwork(torch, run["network"], self.tensors)
        self.optimiser = optimiser_of(torch, run["optimiser"], trained, self.tensors)

    def part(self, numbers, tensor):
        size = int(self.numpy.prod(tensor["shape"]))
        return numbers[tensor["begin"]:tensor["begin"] + size]

    def set_weights(self, step):
        with self.torch.no_grad():
            for tensor in self.run["tensors"]:
                values = self.part(self.weights[step], tensor).reshape(tensor["shape"])
                self.tensors[tensor["name"]].copy_(self.torch.from_numpy(values))

    def gradient(self, step):
        """The loss of a step's minibatch; the gradients are then in the tensors."""
        first = sum(s["samples"] for s in self.run["steps"][:step])
        last = first + self.run["steps"][step]["samples"]
        self.optimiser.zero_grad()
        kind = self.torch.long if self.whole else self.dtype
        loss = self.net.loss(self.torch.tensor(self.inputs[first:last], dtype=kind),
                             self.labels[first:last])
        loss.backward()
        return loss.item()

    def gradient_vector(self):
        return self.numpy.concatenate([self.tensors[tensor["name"]].grad.double().numpy().ravel()
                                       for tensor in self.trained])

    def steps(self):
        return range(len(self.run["steps"]))

    def by_itself(self):
        losses = []
        for step in self.steps():
            losses.append(self.gradient(step))
            if self.run["optimiser"]["clip_norm"] > 0:
                self.torch.nn.utils.clip_grad_norm_(
                    [self.tensors[tensor["name"]] for tensor in self.trained],
                    self.run["optimiser"]["clip_norm"])
            set_step(self.optimiser, self.run["optimiser"], self.run["steps"][step])
            self.optimiser.step()
        return losses

    def at_kumos_weights(self):
        losses, gradients = [], []
        for step in self.steps():
            self.set_weights(step)
            losses.append(self.gradient(step))
            gradients.append(self.gradient_vector())
        return losses, gradients


def relative(values, exact):
    return [abs(a - b) / abs(b) for a, b in zip(values, exact)]


def compare(torch, numpy, folder, run):
    """The relative differences of Kumo and of PyTorch in 32 bits, by what is compared."""
    exact, single = (Training(torch, numpy, folder, run, dtype)
                     for dtype in (torch.float64, torch.float32))
    ours = [step["loss"] for step in run["steps"]]
    exact_run, single_run = exact.by_itself(), single.by_itself()
    exact_losses, exact_gradients = exact.at_kumos_weights()
    single_losses, single_gradients = single.at_kumos_weights()
    flat = numpy.fromfile(folder / "gradients.f32", dtype="float32").reshape(-1, run["numbers"])
    our_gradients = [numpy.concatenate([exact.part(one, tensor) for tensor in exact.trained])
                     for one in flat]
    norms = lambda vectors: [numpy.linalg.norm(a - b) / numpy.linalg.norm(b)
                             for a, b in zip(vectors, exact_gradients)]
    return {"loss at Kumo's weights": (relative(ours, exact_losses),
                                       relative(single_losses, exact_losses)),
            "gradient at Kumo's weights": (norms(our_gradients), norms(single_gradients)),
            "loss, each by itself": (relative(ours, exact_run), relative(single_run, exact_run))}


def main():
    options = argparse.ArgumentParser(description=__doc__,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("experiment")
    options.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    options.add_argument("--data", default=os.environ.get("KUMO_DATA"),
                         help="data.directory (default: KUMO_DATA, or drawn digits)")
    options.add_argument("--steps", type=int, default=50, help="minibatches (default 50)")
    options.add_argument("--below", type=float, default=1e-5,
                         help="most that a loss at Kumo's weights may differ, relatively (default "
                              "1e-5)")
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                         help="another setting of the experiment; may be repeated")
    options.add_argument("--kumo-only", action="store_true", help="without PyTorch")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        draw_data(arguments, folder / "digits")
        ended = subprocess.run([arguments.bin / "first_steps", arguments.experiment, folder,
                                str(arguments.steps), f"data.directory={arguments.data}",
                                *arguments.set])
        if ended.returncode != 0:
            return ended.returncode  # it has said why
        run = json.loads((folder / "run.json").read_text())
        if arguments.kumo_only:
            print(*(step["loss"] for step in run["steps"]), sep="\n")
            return 0
        try:
            import numpy
            import torch
        except ImportError as error:
            sys.exit(f"{error}: run this with a Python that has PyTorch and numpy")
        torch.set_num_threads(1)
        differences = compare(torch, numpy, folder, run)
    print(f"{run['network']['name']}, {len(run['steps'])} minibatches of "
          f"{run['steps'][0]['samples']}, PyTorch {torch.__version__}; median and largest")
    print(f"{'':28} {'Kumo':>16} {'PyTorch 32 bits':>18}")
    for what, sides in differences.items():
        cells = [f"{statistics.median(side):.1e} {max(side):.1e}" for side in sides]
        print(f"{what:28} {cells[0]:>16} {cells[1]:>18}")
    return 0 if max(differences["loss at Kumo's weights"][0]) < arguments.below else 1


if __name__ == "__main__":
    sys.exit(main())
