"""A model of numpy arrays."""
from __future__ import annotations

import contextlib
import random
from collections.abc import Collection, Mapping

import numpy as np

from . import _library as c


class ArrayModel:
    """The tensors of a model as numpy arrays, which the program changes in place.

    weights: float32 or float64 arrays of any shape, by name, in the same order in every worker.
    gradients: of the trained ones, likewise, for rounds whose block has `mode == "gradients"`; the
      program writes the mean gradient over the block's samples into them. They are made if they are not
      given, and are zero at the start of such a block.
    undecayed: names of trained tensors without weight decay, for updates on the servers.
    statistics: names of tensors that are averaged over the partitions instead of trained.
    frozen: names of tensors that never change.

    Weights are exchanged as float32.
    """

    def __init__(self, weights: Mapping[str, np.ndarray],
                 gradients: Mapping[str, np.ndarray] | None = None, *,
                 undecayed: Collection[str] = (), statistics: Collection[str] = (),
                 frozen: Collection[str] = ()):
        self.weights = dict(weights)
        kinds = {c.UNDECAYED: undecayed, c.STATISTICS: statistics, c.FROZEN: frozen}
        for names in kinds.values():
            if unknown := set(names) - set(self.weights):
                raise ValueError(f"the model has no tensor {sorted(unknown)[0]!r}; it has "
                                 f"{', '.join(self.weights)}")
        self._kinds = {name: next((kind for kind, names in kinds.items() if name in names), c.WEIGHTS)
                       for name in self.weights}
        trained = [name for name in self.weights if self._kinds[name] in (c.WEIGHTS, c.UNDECAYED)]
        self.gradients = dict(gradients) if gradients is not None else {
            name: np.zeros_like(self.weights[name]) for name in trained}
        for name in trained:
            if np.shape(self.gradients.get(name)) != np.shape(self.weights[name]):
                raise ValueError(f"the gradient of {name} has another shape than the tensor, "
                                 f"{np.shape(self.weights[name])}")

    # What Worker needs of a model.

    how_to_give_gradients = "write it into the arrays of model.gradients"
    device = "cpu"
    optimizer_states = 0

    def tensors(self) -> list[tuple[str, tuple[int, ...], int]]:
        return [(name, np.shape(array), self._kinds[name]) for name, array in self.weights.items()]

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self.weights[name])

    def export_weights(self, name: str) -> np.ndarray:
        return np.asarray(self.weights[name], np.float32, "C")

    def export_gradient(self, name: str) -> np.ndarray:
        return np.asarray(self.gradients[name], np.float32, "C")

    def load(self, name: str, read) -> None:
        array = self.weights[name]
        numbers = np.empty(array.shape, np.float32)
        read(numbers.ctypes.data)
        array[...] = numbers

    def seed(self, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed % 2**32)

    def begin_block(self, read_state, steps_before: int) -> None:
        for gradient in self.gradients.values():
            gradient[...] = 0

    def end_block(self, write_state) -> None:
        pass

    def evaluating(self):
        return contextlib.nullcontext()
