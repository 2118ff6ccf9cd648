"""A model of numpy arrays."""
from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from . import _library as c


class ArrayModel:
    """The tensors of a model as numpy arrays, which the program changes in place, or replaces in the mapping
    that it has given by arrays of the same shape and type.

    weights: float arrays of any shape, by name, in the same order in every worker. They, and all other
      arrays, must be writeable, and have memory of their own.
    gradients: of the trained ones, likewise, for rounds whose block has `mode == "gradients"`; the
      program writes the mean gradient over the block's samples into them. They are made if they are not
      given, and are zero at the start of such a block.
    states: arrays of the program's optimizer, such as momentum: for each of them a mapping of the trained
      weights' names to arrays of their shapes. They are zero at the start of each block, or with
      block.reset_local_state = false as at the end of the partition's last block. block.steps_before
      counts the minibatches behind them.
    undecayed: names of trained tensors without weight decay, for updates on the servers.
    statistics: names of tensors that are averaged over the partitions instead of trained.
    frozen: names of tensors that never change; a change is an error.

    Weights are exchanged as float32.
    """

    def __init__(self, weights: Mapping[str, np.ndarray],
                 gradients: Mapping[str, np.ndarray] | None = None, *,
                 states: Sequence[Mapping[str, np.ndarray]] = (), undecayed: Collection[str] = (),
                 statistics: Collection[str] = (), frozen: Collection[str] = ()):
        for what, names in (("undecayed", undecayed), ("statistics", statistics), ("frozen", frozen)):
            c.check_list(what, names)
        if isinstance(states, Mapping):
            raise c.KumoError(f"states is a {type(states).__name__}: give a list of them, states=[...]")
        self.weights = _changeable(weights)
        self.states = [_changeable(state) for state in states]
        for name, array in self.weights.items():
            if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
                raise c.KumoError(f"tensor {name} is a {_described(array)}; give a numpy array of floats, "
                                  "and for a pytree of JAX arrays a kumo.Tree")
            _check_writeable(f"tensor {name}", array)
        kinds = {c.UNDECAYED: undecayed, c.STATISTICS: statistics, c.FROZEN: frozen}
        for names in kinds.values():
            if unknown := set(names) - set(self.weights):
                raise c.KumoError(f"the model has no tensor {sorted(unknown)[0]!r}; it has "
                                  f"{', '.join(self.weights)}")
        self._kinds = {name: next((kind for kind, names in kinds.items() if name in names), c.WEIGHTS)
                       for name in self.weights}
        self._trained = [name for name in self.weights if self._kinds[name] in (c.WEIGHTS, c.UNDECAYED)]
        self.gradients = _changeable(gradients) if gradients is not None else {
            name: np.zeros_like(self.weights[name]) for name in self._trained}
        for what, arrays in [("gradient", self.gradients), *(("state", state) for state in self.states)]:
            for name in self._trained:
                if np.shape(arrays.get(name)) != np.shape(self.weights[name]):
                    raise c.KumoError(f"the {what} of {name} is missing, or has another shape than the "
                                      f"tensor, {np.shape(self.weights[name])}")
                _check_writeable(f"the {what} of {name}", arrays[name])
        self._check_shared()

    def _check_shared(self) -> None:
        """An array that has two names would be cleared, loaded and stepped by both. Frozen ones may: they do not
        change. The averages of statistics are equal."""
        arrays = [(f"tensor {name}", array, name in self._trained) for name, array in self.weights.items()]
        for what, named in [("gradient", self.gradients), *(("state", state) for state in self.states)]:
            arrays += [(f"the {what} of {name}", named[name], True) for name in self._trained]
        arrays = [one for one in arrays if one[1].size > 0]
        for first, second in overlapping([_range_of(array) for _, array, _ in arrays]):
            (one, a, changes), (other, b, changes_too) = arrays[first], arrays[second]
            if (changes or changes_too) and _share_memory(a, b):
                raise c.KumoError(f"{other} shares memory with {one}; give one of them a copy (array.copy()), or to "
                                  "share a weight, name it once")


class Arrays:
    """An ArrayModel as Worker needs it."""

    how_to_give_gradients = "write it into the arrays of model.gradients"
    how_to_step = "change the arrays in place, or assign the new ones to model.weights"
    has_zero_rates = False  # the program's own are unknown
    renormalised: frozenset[str] = frozenset()
    device = "cpu"
    obstacle = ""
    unmatched: list[str] = []

    def __init__(self, model: ArrayModel):
        self.model = model
        self._first = [{name: _empty_like(arrays[name]) for name in names}
                       for _, arrays, names in self._mappings()]
        self._first_gradients = {name: _empty_like(model.gradients[name]) for name in model._trained}

    def _mappings(self):
        """Descriptions, mappings of arrays, and the names in them that count."""
        model = self.model
        yield "tensor", model.weights, model._kinds
        for state in model.states:
            yield "the state of", state, model._trained

    @property
    def optimizer_states(self) -> int:
        return len(self.model.states)

    @property
    def has_state(self) -> bool:
        return self.optimizer_states > 0

    def tensors(self) -> list[tuple[str, tuple[int, ...], int]]:
        return [(name, np.shape(array), self.model._kinds[name]) for name, array in self.model.weights.items()]

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self.model.weights[name])

    def is_narrow(self, name: str) -> bool:
        return self.model.weights[name].dtype.itemsize < 4

    def check(self) -> None:
        if self.model.weights.keys() != self.model._kinds.keys():
            raise c.KumoError(f"the model has the tensors {', '.join(self.model.weights)}, but had "
                              f"{', '.join(self.model._kinds)} when its Worker was made")
        for (what, arrays, names), first in zip(self._mappings(), self._first):
            for name in names:
                if isinstance(arrays.get(name), np.generic):  # as arithmetic makes it of an array of shape ()
                    arrays[name] = np.array(arrays[name])
                if change := _change(first[name], arrays.get(name)):
                    raise c.KumoError(f"{what} {name} {change} when the Worker was made")
                _check_writeable(f"{what} {name}", arrays[name])

    def begin_export(self, weights: list[str], gradients: list[str]) -> None:
        pass

    def export_weights(self, name: str) -> np.ndarray:
        return np.asarray(self.model.weights[name], np.float32, "C")

    def export_gradient(self, name: str) -> np.ndarray:
        return np.asarray(self.model.gradients[name], np.float32, "C")

    def load(self, name: str, read) -> None:
        _load(self.model.weights[name], read)

    def loaded(self) -> None:
        pass

    def has_values(self, name: str, values: np.ndarray) -> bool:
        own = self.model.weights[name]
        return np.array_equal(own, values.astype(own.dtype), equal_nan=True)

    def how_to_change(self, name: str) -> str:
        return HOW_TO_CHANGE

    def begin_block(self, read_state, steps_before: int, servers_step: bool = False) -> None:
        for name, first in self._first_gradients.items():
            gradient = self.model.gradients.get(name)
            if _change(first, gradient) or not gradient.flags.writeable:  # the program has replaced it
                self.model.gradients[name] = np.zeros(first.shape, first.dtype)
            else:
                gradient[...] = 0
        for i, state in enumerate(self.model.states):
            for name in self.model._trained:
                if read_state is None:
                    state[name][...] = 0
                else:
                    _load(state[name], lambda address, i=i, name=name: read_state(name, i, address))

    def end_training(self) -> None:
        pass

    def release(self) -> None:
        pass

    def end_block(self, write_state, steps: int) -> None:
        for i, state in enumerate(self.model.states):
            for name in self.model._trained:
                write_state(name, i, np.asarray(state[name], np.float32, "C"))

    def check_state(self, steps: int) -> None:
        pass

    def evaluating(self):
        return contextlib.nullcontext()


# Why a frozen tensor must not change, and what to do.
HOW_TO_CHANGE = ("is frozen; leave it out of `frozen` to train it, or name it in `statistics` to have it averaged "
                 "over the partitions")


def overlapping(ranges: Sequence[tuple[Any, Any]]) -> Iterator[tuple[int, int]]:
    """Pairs of places, the smaller one first, of ranges [begin, end) that overlap. None is empty."""
    reached: list[int] = []
    for place in sorted(range(len(ranges)), key=lambda place: ranges[place]):
        reached = [one for one in reached if ranges[one][1] > ranges[place][0]]
        for one in reached:
            yield min(one, place), max(one, place)
        reached.append(place)


def _range_of(array: np.ndarray) -> tuple[int, int]:
    """The addresses between which an array's elements lie."""
    ways = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides)]
    begin = array.ctypes.data + sum(way for way in ways if way < 0)
    return begin, begin + sum(map(abs, ways)) + array.itemsize


def _share_memory(a: np.ndarray, b: np.ndarray) -> bool:
    """Slices of one array may lie between each other's elements, which in rare cases takes too long to find out."""
    try:
        return np.shares_memory(a, b, max_work=100_000)
    except RuntimeError:
        return False


def _load(array: np.ndarray, read) -> None:
    """Fills an array by read(address), which writes float32 numbers in row-major order."""
    if array.dtype == np.float32 and array.flags.c_contiguous and array.flags.writeable:
        read(array.ctypes.data)
        return
    numbers = np.empty(array.shape, np.float32)
    read(numbers.ctypes.data)
    array[...] = numbers


def _changeable(arrays: Mapping[str, np.ndarray]) -> MutableMapping[str, np.ndarray]:
    """The program's own mapping, in which it may replace arrays; a copy of one that cannot be changed."""
    return arrays if isinstance(arrays, MutableMapping) else dict(arrays)


def _empty_like(array: np.ndarray) -> np.ndarray:
    """An array of this shape and type, which needs no memory."""
    return np.broadcast_to(np.zeros((), array.dtype), array.shape)


def _change(before: np.ndarray, after: Any) -> str:
    """How another array differs in shape or type; "" if it does not."""
    if not isinstance(after, np.ndarray):
        return f"is a {_described(after)}, but was a numpy array"
    if after.shape != before.shape:
        return f"is of shape {list(after.shape)}, but was of shape {list(before.shape)}"
    return f"is of {after.dtype}, but was of {before.dtype}" if after.dtype != before.dtype else ""


def _check_writeable(what: str, array: Any) -> None:
    """Arrays of np.load(mmap_mode="r") and np.asarray(jax_array) are others' memory."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        raise c.KumoError(f"{what} is read-only; give a copy (array.copy())")


def _described(value) -> str:
    kind = type(value).__module__.split(".")[0] + "." + type(value).__name__
    return f"{kind} of {value.dtype}" if hasattr(value, "dtype") else kind
