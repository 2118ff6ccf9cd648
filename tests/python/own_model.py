"""The program of worker.command in worker_test.py: linear regression with numpy.

CASE: what goes wrong, "" for nothing:
  workers         worker-0 kills itself once, worker-1 raises an exception once, worker-2 leaves
  bare            no with statement; worker-0 raises an exception once, while a thread of its waits for
                  progress of the job
  lost            worker-0 kills itself once, and the state of its partitions is lost
  stop            worker-0 asks the launcher, its parent, to stop the job once, in round 3
  wait            in round 2 it waits for the file `go`; its process had another worker before
  samples         worker-1 has another number of training samples
  early           the loop over a block's minibatches ends early
  shape           a tensor gets another shape
  nan             a weight becomes infinite
  loss            a loss is NaN
  vector          a loss is given for each sample
  frozen          a frozen tensor is changed
  unmoved         blocks change no trained tensor
  clipped         the program clips a weight, also in gradient mode
  gone            a tensor is taken out of the model
  fork            a forked process reports a loss
  second          another worker is made
  left            the loop over blocks() is left
  again           the loop over a block's minibatches ends early once, and the loop over blocks begins anew
  infinite        a tensor begins with a number that is not finite
  no_evaluation   blocks() gets no function to evaluate with
  share           an accuracy is no share
  memory          the process may take no more memory; a part of the weights is large
  best            checkpoint.best is a metric of which nobody said whether more is better
  idle            the program ends without a worker
  closed          it closes its worker before the job is complete
  swallowed       as samples, and the program catches the error, and ends with exit code 0
  elsewhere       the program changes its working folder
  leaves          it does so when it has a worker
"""
import contextlib
import os
import pathlib
import resource
import signal
import sys
import threading
import time

import kumo
import numpy as np

CASE = os.environ.get("CASE", "")
NAME = os.environ["KUMO_WORKER_NAME"]
SAMPLES, VALIDATION = 200, 30
if CASE == "elsewhere":
    os.chdir("/")
random = np.random.default_rng(1)
x = random.normal(size=(SAMPLES + VALIDATION, 8)).astype(np.float32)
y = x @ random.normal(size=8).astype(np.float32) + 0.5

weights = {"layer.weight": np.zeros(8, np.float32),
           "layer.bias": np.zeros((), np.float64), "mean": np.zeros(8, np.float32),
           "frozen": np.arange(5, dtype=np.float32),
           "half": np.full(3, 0.5, np.float16), "whole": np.full(3, 0.5, np.float32),
           "scalar": np.full((), 0.5, np.float16)}
trained = ["layer.weight", "layer.bias", "half", "whole", "scalar"]
if CASE == "memory":
    weights["large"] = np.zeros(1 << 22, np.float32)
    trained.append("large")
momentum = {name: np.zeros_like(weights[name]) for name in trained}
model = kumo.ArrayModel(weights, states=[momentum], undecayed=trained[1:], statistics=["mean"],
                        frozen=["frozen"])


def once():
    """Whether no worker of this name has come here before."""
    try:
        pathlib.Path("once-" + NAME).touch(exist_ok=False)
        return True
    except FileExistsError:
        return False


if pathlib.Path("once-" + NAME).exists():
    pathlib.Path("back-" + NAME).touch()


def wait_for(*names):
    while not all(pathlib.Path(name).exists() for name in names):
        time.sleep(0.01)


def disturb(block):
    if CASE == "bare" and NAME == "worker-0" and block.round >= 3 and once():
        threading.Thread(target=wait_for, args=["go"]).start()
        raise OSError("the queue is closed")
    if CASE == "bare" and NAME == "worker-1" and block.round >= 6:
        pathlib.Path("go").touch()
        wait_for("back-worker-0")
    if CASE == "lost" and NAME == "worker-0" and block.round >= 4 and not block.ahead and once():
        os.kill(os.getpid(), signal.SIGKILL)
    if CASE == "stop" and NAME == "worker-0" and block.round >= 3 and once():
        os.kill(os.getppid(), signal.SIGINT)
    if CASE == "wait" and block.round == 2:
        pathlib.Path("waits-" + NAME).touch()
        wait_for("go")
    if CASE == "workers" and block.round >= 3 * (1 + int(NAME[-1])) and once():
        if NAME == "worker-0":
            os.kill(os.getpid(), signal.SIGKILL)
        if NAME == "worker-1":
            raise OSError("the data server is away")
        worker.leave()
    if CASE == "workers" and block.round >= 9:
        # The end of the job must not come before the end of the first processes.
        wait_for("back-worker-0", "back-worker-1")


def gradients(indices):
    error = x[indices] @ weights["layer.weight"] + weights["layer.bias"] - y[indices]
    return (error**2).mean(), 2 * x[indices].T @ error / len(indices), 2 * error.mean()


def evaluate(part):
    for indices in part.minibatches():
        assert indices.min() >= 0 and indices.max() < VALIDATION
        part.add(loss=gradients(indices + SAMPLES)[0], samples=len(indices), **more)


def misuse(block):
    if CASE == "vector":
        block.add(loss=np.zeros(8), samples=8)
    if CASE == "frozen":
        weights["frozen"][1] += 1e-3
    if CASE == "second":
        kumo.Worker(None, model, train_samples=SAMPLES)
    if CASE == "memory":
        taken = 4096 * int(pathlib.Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, [taken + (4 << 20)] * 2)
    if CASE == "fork":
        child = os.fork()
        if child == 0:
            try:
                block.add(loss=0, samples=8)
            except kumo.KumoError as error:
                print(error, file=sys.stderr, flush=True)
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        raise kumo.KumoError("the child has ended")


if CASE == "idle":
    sys.exit()
metrics, more, settings = ["loss"], {}, []
if CASE == "share":
    metrics, more = ["loss", "accuracy"], {"accuracy": 7}
if CASE == "best":
    metrics, settings = ["loss", "top1"], ["checkpoint.best=top1"]
if CASE == "closed":
    kumo.Worker(None, model, train_samples=SAMPLES, validation_samples=VALIDATION).close()
    sys.exit()
if CASE == "wait":
    kumo.Worker(None, model, train_samples=SAMPLES, validation_samples=VALIDATION).close()
train_samples = SAMPLES + (1 if CASE in ("samples", "swallowed") and NAME == "worker-1" else 0)
if CASE == "infinite":
    weights["mean"][1] = -np.inf
worker = kumo.Worker(None, model, train_samples=train_samples, validation_samples=VALIDATION, metrics=metrics,
                     settings=settings)
if CASE == "leaves":
    os.chdir("/")


def blocks():
    while True:
        try:
            yield from worker.blocks(None if CASE == "no_evaluation" else evaluate)
            return
        except kumo.KumoError as error:
            if CASE != "again" or "8 of 16 samples were reported" not in str(error):
                raise


with contextlib.suppress(kumo.KumoError if CASE == "swallowed" else ()), \
        contextlib.nullcontext() if CASE == "bare" else worker:
    for block in blocks():
        disturb(block)
        misuse(block)
        if CASE == "left":
            break
        # A state without steps, also a lost one, is told as such.
        assert block.mode == "gradients" or (momentum["whole"][0] == 0) == (block.steps_before == 0), block.steps_before
        for indices in block.minibatches():
            loss, weight, bias = gradients(indices)
            # Noise, to show that random numbers belong to a block, not to a worker.
            weight += np.random.normal(size=8) * 0.1
            if block.mode == "gradients":
                model.gradients["layer.weight"][...] = weight
                model.gradients["layer.bias"][...] = bias
                if CASE == "clipped":
                    weights["layer.bias"] = np.clip(weights["layer.bias"], 0.25, 1)
            elif CASE != "unmoved":
                for name, gradient in (("layer.weight", weight), ("layer.bias", bias)):
                    momentum[name] *= 0.5
                    momentum[name] += gradient
                    weights[name] -= block.learning_rate * momentum[name]
                # Steps that float16 represents between 0.5 and 1; their mean over partitions it does not.
                for name in ("half", "scalar"):
                    weights[name] += np.float16(2.0**(block.partition - 11))
                momentum["whole"] += 1  # counts the minibatches
                weights["whole"] += np.float32(2.0**(block.partition - 11))
            weights["mean"][...] = x[indices].mean(axis=0)
            block.add(loss=float("nan") if CASE == "loss" else loss, samples=len(indices), **more)
            if CASE == "early" or (CASE == "again" and block.round >= 3 and block.samples > 8 and once()):
                break
        if CASE == "shape":
            weights["layer.weight"] = np.zeros(9, np.float32)
        if CASE == "gone":
            del weights["mean"]
        if CASE == "nan":
            weights["layer.weight"][2] = np.inf
print("the program ends", file=sys.stderr)
