"""Worker: takes part in a job with the caller's model and loop."""
from __future__ import annotations

import atexit
import ctypes
import multiprocessing
import operator
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _library as c
from ._arrays import ArrayModel, Arrays
from ._library import KumoError
from ._step_checker import StepChecker
from ._tree import Tree, TreeModel


@dataclass(frozen=True)
class Metric:
    """A figure of the job, from means that `add` takes.

    name: lower-case letters, digits and underscores.
    share: each sample's value lies between 0 and 1, as for an accuracy.
    more_is_better: for `checkpoint.best`, `job.patience_metric` and displays. None: unknown; these settings then
      refuse the metric.
    exponential: the figure is exp(mean), as a perplexity is of a loss.

    In the place of a Metric a plain name may be given. If it begins with "accuracy", it is a share of which
    more is better; if with "loss", a mean of which less is better; otherwise a mean with more_is_better=None.
    """
    name: str
    share: bool = False
    more_is_better: bool | None = False
    exponential: bool = False


def _declared(metrics: Sequence[str | Metric]) -> list[Metric]:
    if isinstance(metrics, Metric):
        raise KumoError(f"metrics = {metrics!r}: give a list, metrics=[{metrics!r}]")
    c.check_list("metrics", metrics)
    return [metric if isinstance(metric, Metric) else _of_name(metric) for metric in metrics]


def _of_name(name: str) -> Metric:
    if name.startswith("accuracy"):
        return Metric(name, share=True, more_is_better=True)
    return Metric(name, more_is_better=False if name.startswith("loss") else None)


class Work:
    """A part of the job that this worker computes: a Block, or a slice of the validation set.

    partition: the logical learner that it belongs to.
    epoch: from 0.
    round: from 0. Of a slice: the rounds behind the weights.
    samples: their number.
    """

    _what = "validation slice"

    def __init__(self, worker: Worker, work: c.Work):
        self._worker, self._work = worker, work
        self.partition, self.round, self.epoch = work.partition, work.round, work.epoch
        self.samples: int = work.samples
        self._place = f"{self._what} of round {self.round}, partition {self.partition}"
        # Asked for before the caller's code runs: the job may end while that computes.
        self._indices = np.empty(self.samples, np.int64)
        worker._check(c.library.kumo_worker_samples(
            worker._handle, self._indices.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))))
        self._minibatch = 0  # of the last indices
        self._added = 0
        self._means: dict[str, list[tuple[Any, int]]] = {name: [] for name in worker._names}

    @property
    def minibatch_count(self) -> int:
        """The number of minibatches."""
        return -(-self.samples // self._work.minibatch)

    def minibatches(self) -> Iterator[np.ndarray]:
        """The indices of each minibatch's samples in the data set, in the order of the job.

        Yields int64 arrays of shape [samples of the minibatch]; the last one may be shorter. Every
        worker gets the same indices for the same round and partition.
        """
        for begin in range(0, self.samples, self._work.minibatch):
            self._minibatch = begin // self._work.minibatch
            yield self._indices[begin:begin + self._work.minibatch]

    def add(self, *, samples: int, **means: Any) -> None:
        """Reports the metrics of some samples.

        samples: their number. means: of each metric of the worker, the mean over these samples: a
        number, or a tensor of one element, which is copied, and read at the end of the block only.
        """
        self._worker._check_process()
        if set(means) != set(self._means):
            raise KumoError(f"add() takes the metrics {', '.join(self._means)}, not "
                            f"{', '.join(means) or 'none'}; Worker(metrics=...) declares them")
        if int(samples) < 1:
            raise KumoError(f"add(samples={samples}): samples is the number of samples of the means, at "
                            "least 1")
        for name, mean in means.items():
            if not hasattr(mean, "__float__"):
                raise KumoError(f"add({name}=...) got a {type(mean).__name__}; give its mean over the "
                                f"{samples} samples, one number")
            if (shape := tuple(getattr(mean, "shape", ()))) and np.prod(shape) != 1:
                raise KumoError(f"add({name}=...) got an array of shape {list(shape)}; give its mean over "
                                f"the {samples} samples, one number")
        self._added += int(samples)
        for name, mean in means.items():
            self._means[name].append((_copied(mean), int(samples)))

    def _sums(self) -> list[float]:
        """The sum of each metric over the samples."""
        if self._added != self.samples:
            raise KumoError(f"{self._place}: {self._added} of {self.samples} samples were reported; go "
                            "through all minibatches() and call add() once for each")
        sums = [self._worker._total(means) for means in self._means.values()]
        for name, total in zip(self._means, sums):
            if not np.isfinite(total):
                raise KumoError(f"{self._place}: {name} is {self._first_bad(name)}; a lower learning rate, "
                                "or clipped gradients, may help", exit_code=78)
            if name in self._worker._shares and not 0 <= total <= self.samples:
                raise KumoError(f"{self._place}: {name} is {total / self.samples:g} on average, but of a share "
                                "(names that begin with accuracy are shares) each sample's value lies between "
                                "0 and 1; divide it, or declare it as "
                                f"kumo.Metric({name!r}, more_is_better=True)")
        return sums

    def _finish(self, sums: list[float]) -> None:
        self._worker._check(c.library.kumo_worker_finish(
            self._worker._handle, (ctypes.c_double * len(sums))(*sums), len(sums)))

    def _first_bad(self, name: str) -> str:
        before = 0  # samples; a minibatch may be reported in several parts
        largest = 0.0
        for mean, samples in self._means[name]:
            number = _number(mean)
            if not np.isfinite(number):
                return f"{number} in minibatch {before // self._work.minibatch}"
            largest = max(largest, abs(number))
            before += samples
        return f"too large: {largest}"


class Block(Work):
    """A partition's block of a round, with its weights installed in the model.

    mode: "weights": train minibatch after minibatch with the optimizer; the way of the weights is the
      contribution. "gradients": the mean gradient over all samples is the contribution, and the servers
      step; the block is one minibatch, and optimizer.step() changes neither weights nor gradients. A loop
      of zero_grad, backward, step is right for both.
    ahead: whether these are the first minibatches of the partition's next block, which are trained while
      the last block is exchanged (sync.overlap). The model then has the weights at which that block has
      ended; the rest of this block comes later. The metrics of these minibatches are not counted.
    position: samples of the whole job before the block's first minibatch here.
    learning_rates: the rates of the experiment's [schedule], by minibatch.
    steps_before: minibatches behind the state with which the optimizer begins; 0 if it has none.
    seed: for random numbers of this block, below 2**32; random, numpy and torch are seeded already.
    """

    _what = "block"

    def __init__(self, worker: Worker, work: c.Work):
        super().__init__(worker, work)
        self.mode: str = "weights" if work.steps else "gradients"
        self.ahead: bool = bool(work.ahead)
        self.position: int = work.position
        self.steps_before: int = work.steps_before
        self.seed: int = work.seed % 2**32
        self.learning_rates: list[float] = []
        for minibatch in range(self.minibatch_count):
            rate = ctypes.c_float()
            worker._check(c.library.kumo_worker_learning_rate(worker._handle, minibatch, ctypes.byref(rate)))
            self.learning_rates.append(rate.value)

    @property
    def learning_rate(self) -> float:
        """The one of learning_rates for the minibatch that minibatches() has yielded last."""
        return self.learning_rates[self._minibatch]


class _Dropped(Exception):
    """The job has ended while a block was computed."""


_open: list[Worker] = []  # the worker of this process, if it has one


class Worker:
    """A worker of a Kumo job, whose model, data and loop are the caller's.

    experiment: the experiment file of a worker that is started by hand. Below `kumo launch` the file that
      it was given counts.
    model: a torch.nn.Module, an ArrayModel, a dict of numpy arrays, or a Tree of JAX arrays. Its values are
      the initial weights of a new job (those of the worker that holds partition 0 count).
    optimizer: the torch optimizer of the module. Parameters that it does not step are frozen. Each block
      begins with the state that it had when the Worker was made, as a rule none, or with
      block.reset_local_state = false with the state at the end of the partition's last block; with
      sync.overlap the state is carried from the minibatches ahead to the rest of their block in any case.
    train_samples, validation_samples: sizes of the data sets; the same in every worker.
    metrics: names, or Metric objects; the first one is the loss.
    settings: "section.key=value" each, over those of the file.
    name: of a worker that is started by hand; None: HOST-PID. Below `kumo launch` the name that it gives
      counts.
    seed: whether random, numpy and torch are seeded for each block by (job.seed, round, partition).

    Use it in a `with` statement, in the process that opened it, by one thread; others may call leave() and
    close(). A process has one worker at a time.
    """

    def __init__(self, experiment: str | os.PathLike | None, model: Any, optimizer: Any = None, *,
                 train_samples: int, validation_samples: int = 0,
                 metrics: Sequence[str | Metric] = ("loss",), settings: Sequence[str] = (),
                 name: str | None = None, seed: bool = True):
        self._handle = ctypes.c_void_p()  # valid when closed, too
        self._is_open = False
        self._pid = os.getpid()
        _check_importing()
        if os.environ.get("KUMO_WORKER_NAME"):
            _report_exceptions()
        declared = _declared(metrics)
        c.check_list("settings", settings)
        self._model = _adapted(model, optimizer)
        self._seeds = seed
        self._validates = validation_samples > 0
        self._current: Work | None = None
        self._ended = False  # the job is complete, or this worker has left it
        self._takes_part = True  # or will: blocks() has not ended
        self._places: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._names = [metric.name for metric in declared]
        self._shares = {metric.name for metric in declared if metric.share and not metric.exponential}
        self._terminated = False
        keep: list[Any] = []  # alive until the library has copied the values
        try:
            options = c.Options(
                size=ctypes.sizeof(c.Options),
                experiment=None if experiment is None else os.fsencode(experiment),
                settings=(ctypes.c_char_p * len(settings))(*[one.encode() for one in settings]),
                settings_count=len(settings), name=None if name is None else name.encode(),
                device=self._model.device.encode(), tensors=self._described(keep),
                tensors_count=len(self._places), metrics=_described_metrics(declared),
                metrics_count=len(declared), train_samples=_whole("train_samples", train_samples),
                validation_samples=_whole("validation_samples", validation_samples))
            c.check(c.library.kumo_worker_open(ctypes.byref(options), ctypes.byref(self._handle)))
            self._is_open = True
            atexit.register(self.close)
            _open[:] = [self]
            if os.environ.get("KUMO_WORKER_NAME"):
                self._leave_on_sigterm()
            self._states = self._count_states()
        except BaseException:
            # Also an interrupt behind the library's call: nobody else could close the open worker.
            self.close()
            raise

    def _described(self, keep: list[Any]):
        described = self._model.tensors()
        tensors = (c.Tensor * len(described))()
        for i, (name, shape, kind) in enumerate(described):
            extents = shape or (1,)
            values = self._model.export_weights(name)
            if not np.isfinite(np.asarray(values)).all():
                raise KumoError(f"tensor {name} begins with numbers that are not finite, which are not exchanged; if "
                                "it is a constant, such as a mask, leave it out of the model's tensors: of "
                                "torch by register_buffer(..., persistent=False)")
            keep.append(values)
            tensors[i] = c.Tensor(name.encode(), (ctypes.c_int64 * len(extents))(*extents), len(extents),
                                  kind, c.floats(_address(values)))
            self._places[name] = i
            self._shapes[name] = tuple(shape)
        self._trained = [name for name, _, kind in described if kind in (c.WEIGHTS, c.UNDECAYED)]
        self._frozen = [name for name, _, kind in described if kind == c.FROZEN]
        self._checker = StepChecker(self._model, self._trained, self._is_changed)
        return tensors

    def _count_states(self) -> int:
        count = ctypes.c_int32()
        self._check(c.library.kumo_worker_states(self._handle, ctypes.byref(count)))
        if count.value not in (0, self._model.optimizer_states):
            raise self._other_states(count.value)
        return count.value

    def _other_states(self, count: int) -> KumoError:
        """The error of a job that carries `count` arrays for each weight, but the program's optimizer has
        more or fewer."""
        if self._model.obstacle:
            return c.cannot_carry(self._model.obstacle)
        unmatched = self._model.unmatched if count > self._model.optimizer_states else []
        reason = "" if not unmatched else (f"; {', '.join(unmatched[:3])} of model.state has not the path and shape of "
                                           "a trained weight, and is not carried")
        return KumoError("the optimizer's state goes on from block to block (block.reset_local_state = false, or "
                         f"sync.overlap), and optimiser.type carries {count} arrays for each weight, but the "
                         f"optimizer of this program has {self._model.optimizer_states}; set optimiser.type to an "
                         f"optimiser like it{reason}")

    # --- The loop.

    def blocks(self, evaluate: Callable[[Work], None] | None = None) -> Iterator[Block]:
        """The blocks that this worker trains, until the job is complete or it has left on request.

        Before a block is yielded its weights are in the model; when the loop goes on, the model's
        weights (or gradients) are its contribution. After the loop the model has the weights of the last
        block, or of a slice that was evaluated later; kumo.load_state_dict reads the trained ones.

        evaluate: called with a slice of the validation set, whose weights are in the model; it goes
        through the slice's minibatches() and calls add(). torch modules are in evaluation mode and
        gradients off meanwhile; afterwards each module has the mode that it had before. Needed if
        validation_samples > 0.

        Raises KumoError if the worker is refused, the job fails or stops, or the servers are gone.
        """
        self._check_process()
        if not self._is_open:
            raise KumoError("the worker is closed: use it inside its with statement")
        if self._validates and evaluate is None:
            raise KumoError("validation_samples is not 0: call blocks(evaluate) with a function that "
                             "evaluates a slice of the validation set")
        self._takes_part = True
        try:
            while (work := self._next()) is not None:
                try:
                    if work.kind == c.WORK_EVALUATE:
                        self._evaluate(Work(self, work), evaluate)
                        continue
                    block = Block(self, work)
                    self._begin(block, work)
                    yield block
                    self._end(block, work)
                except _Dropped:
                    self._current = None
        finally:
            self._takes_part = False

    def leave(self) -> None:
        """Asks to leave the job without loss. Go on with the loop, which then ends soon, or raises a
        KumoError if the partitions are not handed over within checkpoint.grace_s seconds."""
        self._check_process()
        if not self._is_open:
            raise KumoError("the worker is closed")
        c.check(c.library.kumo_worker_leave(self._handle))

    def close(self) -> None:
        """Ends the worker; a block in progress is given back to the other workers."""
        if self in _open:
            _open.remove(self)
        self._is_open = False
        try:
            c.library.kumo_worker_close(self._handle)  # waits, if another thread is closing it
            atexit.unregister(self.close)
        finally:
            self._model.release()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind, value, trace) -> None:
        if value is not None and not (isinstance(value, SystemExit) and not value.code):
            self._close_after(value)
            return
        if not self._is_open or self._ended:
            self.close()
            return
        reason = (f"{self._place()}the loop over blocks() was left before the job is complete; to leave "
                  "without loss, call leave() and go on until the loop ends")
        # The launcher would take an exit without an error for a departure, and the job would wait.
        if os.environ.get("KUMO_WORKER_NAME"):
            error = KumoError(reason)
            self._close_after(error)
            raise error
        print(f"kumo: {reason}; the block is given back", file=sys.stderr)
        self._give_back(reason, c.UNAVAILABLE)

    def _close_after(self, error: BaseException) -> None:
        """Closes the worker, if it is open; the job learns the error."""
        reason = _text_of(error)
        if not reason.startswith(self._place()):
            reason = self._place() + reason
        # A misuse of this package would be the same on other workers.
        misuse = isinstance(error, KumoError) and error.exit_code == 78
        self._give_back(reason, c.FAILED_PRECONDITION if misuse else c.UNAVAILABLE)

    def _give_back(self, reason: str, status: int) -> None:
        if self._is_open and self._current is not None:
            c.library.kumo_worker_fail(self._handle, status, reason.encode(errors="replace"))
        self.close()

    def _place(self) -> str:
        return f"{self._current._place}: " if self._current is not None else ""

    def __reduce__(self):
        raise KumoError("a Worker cannot be sent to another process, such as one of a DataLoader; give that "
                        "process the indices of block.minibatches() only")

    # --- Parts.

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise KumoError("this process was forked from the process that opened the Worker, as the processes of "
                            "a DataLoader are; use the Worker in the process that opened it")

    def _check(self, status: int) -> None:
        if status == c.ABORTED:
            raise _Dropped
        self._check_open(status)

    def _check_open(self, status: int) -> None:
        if status != c.OK and not self._is_open:
            raise KumoError("the worker was closed while its loop over blocks() was in progress; call leave(), and "
                            "close the worker after the loop has ended: join its thread, if it has one of its own")
        c.check(status)

    def _next(self) -> c.Work | None:
        """The next work; None at the end. Waits in short steps, so that signals are handled."""
        work = c.Work()
        while work.kind == c.WORK_NONE:
            self._check_open(c.library.kumo_worker_next(self._handle, 100, ctypes.byref(work)))
        self._ended = work.kind in (c.WORK_DONE, c.WORK_LEFT)
        if work.kind == c.WORK_LEFT and self._terminated:
            print("kumo: has left the job after SIGTERM", file=sys.stderr)
            sys.exit(75)
        return work if work.kind in (c.WORK_TRAIN, c.WORK_EVALUATE) else None

    def _leave_on_sigterm(self) -> None:
        """SIGTERM ends this process as it ends kumo-worker: the block is finished, the partitions are handed
        over, and the exit code is 75. The first process of a container would ignore it otherwise."""
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _on_sigterm)

    def _check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """The library trusts that arrays are as long as it was told."""
        if tuple(shape) != self._shapes[name]:
            raise KumoError(f"tensor {name} is of shape {list(shape)}, but was of shape "
                            f"{list(self._shapes[name])} when the Worker was made")

    def _check_frozen(self, block: Block) -> None:
        """A change of a frozen tensor is not sent, and the next block would undo it."""
        for name in self._frozen:
            if self._is_changed(name):
                raise KumoError(f"{block._place}: tensor {name} has been changed, but "
                                f"{self._model.how_to_change(name)}")

    def _is_changed(self, name: str) -> bool:
        """Whether a tensor differs from its values at the start of the block."""
        self._check_shape(name, self._model.shape(name))
        installed = np.empty(self._shapes[name], np.float32)
        self._get(self._places[name], installed.ctypes.data)
        return not self._model.has_values(name, installed)

    def _load(self) -> None:
        self._model.check()
        for name, place in self._places.items():
            self._check_shape(name, self._model.shape(name))
            self._model.load(name, lambda address, place=place: self._get(place, address))
        self._model.loaded()

    def _get(self, place: int, address: int) -> None:
        self._check(c.library.kumo_worker_get(self._handle, place, c.floats(address)))

    def _note_rounding(self) -> None:
        """Tensors of 16 bits begin a block rounded. The way from there is what they contribute: else a
        block would move the weights on the servers to numbers of 16 bits, and small steps were lost."""
        self._rounding: dict[str, np.ndarray] = {}
        for name in self._trained:
            if not self._model.is_narrow(name):
                continue
            exact = np.empty(self._shapes[name], np.float32)
            self._get(self._places[name], exact.ctypes.data)
            rounded = np.asarray(self._model.export_weights(name))
            self._rounding[name] = np.asarray(exact - rounded, np.float32)  # of a scalar too an array

    def _begin(self, block: Block, work: c.Work) -> None:
        self._current = block
        self._load()

        def read_state(name, i, address):
            self._check(c.library.kumo_worker_get_state(self._handle, i, self._places[name],
                                                        c.floats(address)))
        if work.steps and not work.restarts and self._states == 0 and self._model.has_state:
            raise self._other_states(0)
        if work.steps:
            self._note_rounding()
        carries = work.steps and not work.restarts
        self._model.begin_block(read_state if carries else None, work.steps_before,
                                servers_step=not work.steps)
        if self._seeds:
            _seed(work.seed)

    def _end(self, block: Block, work: c.Work) -> None:
        self._model.end_training()
        self._model.check()
        self._check_frozen(block)
        sums = block._sums()
        self._checker.check(block)
        try:
            self._hand_in(block, work)
            block._finish(sums)
        except _Dropped:
            raise
        except BaseException as error:
            # The library has some tensors already, and would give them as those that the block begins with.
            self._close_after(error)
            raise
        self._current = None

    def _hand_in(self, block: Block, work: c.Work) -> None:
        def set_tensor(name, values):
            self._check_shape(name, values.shape)
            self._check(c.library.kumo_worker_set(self._handle, self._places[name],
                                                  c.floats(_address(values))))
        def set_state(name, i, values):
            self._check_shape(name, values.shape)
            self._check(c.library.kumo_worker_set_state(self._handle, i, self._places[name],
                                                        c.floats(_address(values))))
        frozen = set(self._frozen)
        exchanged = [name for name in self._places if name not in frozen]
        of_gradients = set() if work.steps else set(self._trained)
        self._model.begin_export(weights=[name for name in exchanged if name not in of_gradients],
                                 gradients=[name for name in exchanged if name in of_gradients])
        without = []
        moves = bool(work.steps)
        for name in exchanged:
            if name not in of_gradients:
                values = self._model.export_weights(name)
                if work.steps and name in self._rounding:
                    values = np.asarray(np.asarray(values) + self._rounding[name], np.float32)
                set_tensor(name, values)
            elif (gradient := self._model.export_gradient(name)) is not None:
                set_tensor(name, gradient)
                moves = moves or bool(gradient.any())
            else:
                without.append(name)
        self._checker.check_gradients(block, are_missing=len(without) == len(self._trained), are_zero=not moves)
        for name in without:  # a parameter that the loss does not depend on
            set_tensor(name, np.zeros(self._shapes[name], np.float32))
        steps = work.steps_before + block.minibatch_count
        if work.keeps_state:
            self._model.end_block(set_state, steps)
        elif self._states == 0 and work.steps and (work.ahead or not work.restarts):  # no arrays are carried
            self._model.check_state(steps)

    def _evaluate(self, part: Work, evaluate: Callable[[Work], None]) -> None:
        self._current = part
        self._load()
        if self._seeds:
            _seed(part._work.seed)
        with self._model.evaluating():
            evaluate(part)
        part._finish(part._sums())
        self._current = None

    def _total(self, means) -> float:
        if any(hasattr(mean, "detach") for mean, _ in means):
            from . import _torch
            return _torch.total(means)
        return float(sum(_number(mean) * samples for mean, samples in means))


def _on_sigterm(number: int, frame: Any) -> None:
    """Of the worker that is open then: a program may have had others before."""
    for worker in _open:
        if os.getpid() == worker._pid:
            if not worker._takes_part:  # nothing would look at the request
                sys.exit(128 + number)
            worker._terminated = True
            c.library.kumo_worker_leave(worker._handle)
            return
    signal.signal(number, signal.SIG_DFL)  # a forked process, or the worker is closed
    os.kill(os.getpid(), number)


def _check_importing() -> None:
    """A process that multiprocessing starts by spawn or forkserver, as a DataLoader's on some systems, runs the
    script before its own work. Its Worker would have the name of the script's, and take the place of that one."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise KumoError("this process, which multiprocessing has started (for a DataLoader, for example), runs "
                        "the whole script again, and would make another Worker; put the part of the script that "
                        'makes the Worker and trains below `if __name__ == "__main__":`')


def _adapted(model: Any, optimizer: Any):
    if isinstance(model, dict):
        arrays = _adapted(ArrayModel(model), optimizer)
        arrays.how_to_give_gradients = ("a dict has no place for it: give a kumo.ArrayModel, and write it into "
                                        "the arrays of its gradients")
        arrays.how_to_step = "change the arrays in place, or put the new ones into the dict"
        return arrays
    if isinstance(model, (ArrayModel, Tree)):
        if optimizer is not None:
            raise KumoError(f"a {type(model).__name__} has the optimizer's arrays itself; give no optimizer")
        return Arrays(model) if isinstance(model, ArrayModel) else TreeModel(model)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        from ._torch import TorchModel
        return TorchModel(model, optimizer)
    raise KumoError(f"the model is a {type(model).__name__}; give a torch.nn.Module, a dict of numpy arrays, "
                    "a kumo.ArrayModel, or a kumo.Tree of JAX arrays")


def _whole(name: str, number: Any) -> int:
    try:
        return operator.index(number)
    except TypeError:
        raise KumoError(f"{name} = {number!r}: must be a whole number, the size of the data set") from None


def _seed(seed: int) -> None:
    """Programs with models of numpy or JAX may draw by torch too. One that has not imported it does not."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed % 2**63)


def _copied(mean: Any) -> Any:
    """The program may write its next mean into the same tensor. A device's tensor is copied there, so that
    nothing waits for it. On the CPU the number is taken: small tensors that live until the end of the block would
    lie between what each minibatch frees, so that the heap grows by a network's activations for each."""
    if hasattr(mean, "detach"):
        return mean.detach().clone() if mean.device.type != "cpu" else float(mean.item())
    return float(mean.item()) if isinstance(mean, np.ndarray) else mean


def _number(mean: Any) -> float:
    """The number of an array of one element, which float() of numpy 2.4 refuses if it has dimensions."""
    return float(mean.item() if hasattr(mean, "item") else mean)


def _address(values: Any) -> int:
    return values.data_ptr() if hasattr(values, "data_ptr") else values.ctypes.data


def _described_metrics(metrics: Sequence[Metric]):
    fields = (c.MetricField * len(metrics))()
    for i, metric in enumerate(metrics):
        formula = c.PERPLEXITY if metric.exponential else c.SHARE if metric.share else c.MEAN
        direction = c.DIRECTION_UNKNOWN if metric.more_is_better is None else metric.more_is_better
        fields[i] = c.MetricField(metric.name.encode(), formula, direction)
    return fields


def _text_of(error: BaseException) -> str:
    text = str(error)
    if not isinstance(error, KumoError):
        text = "".join(traceback.format_exception_only(type(error), error))
    # torch puts the traceback of a DataLoader's process into the text of its error, which ends with the
    # error itself; texts are cut at some length on their way.
    return text.strip().splitlines()[-1] if "\nOriginal Traceback" in text else text.strip()


def _report_exceptions() -> None:
    """Below `kumo launch`, an exception ends the process with its exit code, and with its text in the
    termination log, which the launcher quotes. The program's own hook comes before.

    An open worker is closed at once: the interpreter waits for the program's threads before it calls what
    atexit has, and one of them may wait for ever for its queue."""
    before = sys.excepthook
    if getattr(before, "reports_to_kumo", False):
        return

    def report(kind, value, trace):
        try:
            before(kind, value, trace)
        finally:
            for worker in list(_open):
                worker._close_after(value)
            if log := os.environ.get("KUMO_TERMINATION_LOG"):
                try:
                    with open(log, "w", encoding="utf-8") as file:
                        file.write(_text_of(value).replace("\n", "; ") + "\n")
                except OSError:
                    pass
            if isinstance(value, KumoError):
                raise SystemExit(value.exit_code)  # as the interpreter's end, with what atexit has
    report.reports_to_kumo = True
    sys.excepthook = report
