"""A model of JAX arrays."""
from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

import numpy as np

from . import _library as c
from ._arrays import HOW_TO_CHANGE


class Tree:
    """A pytree of JAX arrays: the weights of a model of flax, equinox or plain functions.

    weights: the pytree. Its leaves are named by their paths, as `dense.kernel`, and are exchanged in the
      order of jax.tree.leaves(). Leaves that are no floating-point arrays stay the process's own; complex
      ones must be frozen. The program assigns the trained pytree, of the same structure, to
      `model.weights`.
    state: the optimizer's state as its init gives it, such as optax's, or None. Each block begins with
      it, or with block.reset_local_state = false with the state at the end of the partition's last block:
      leaves of a weight's path and shape are then carried, and integer scalars count the minibatches.
      The first words of a weight's path may be missing, as in tx.init(variables["params"]).
      Other leaves must not change then, except those below `hyperparams` (optax.inject_hyperparams), which
      the program sets. The program assigns the new state to `model.state`. Blocks get copies, which may be
      donated. When the Worker is closed, `model.state` is the first one again.
    undecayed, statistics, frozen: names of leaves, or of subtrees, as in ArrayModel. Leaves of at most one
      dimension are undecayed anyway.

    For a block whose `mode` is "gradients" the program assigns the pytree of the mean gradient over the
    block's samples to `model.gradients`. jax.random.key(block.seed) belongs to a block.

    Weights are exchanged as float32.
    """

    def __init__(self, weights: Any, state: Any = None, *, undecayed: Collection[str] = (),
                 statistics: Collection[str] = (), frozen: Collection[str] = ()):
        for what, names in (("undecayed", undecayed), ("statistics", statistics), ("frozen", frozen)):
            c.check_list(what, names)
        self.weights, self.state = weights, state
        self.gradients: Any = None
        self._kinds_of = {c.STATISTICS: statistics, c.FROZEN: frozen, c.UNDECAYED: undecayed}


class TreeModel:
    """A Tree as Worker needs it."""

    how_to_give_gradients = "assign its pytree to model.gradients"
    how_to_step = "assign the new pytree to model.weights"
    has_zero_rates = False  # the program's own are unknown
    renormalised: frozenset[str] = frozenset()
    obstacle = ""

    def __init__(self, tree: Tree):
        import jax
        self._jax = jax
        self._tree = tree
        self._structure = jax.tree.structure(tree.weights)
        self._leaves: dict[str, Any] = {}  # of self._leaves_of
        self._leaves_of: Any = None
        self._gradients: list[Any] = []  # of self._gradients_of
        self._gradients_of: Any = None
        self._loaded: dict[str, np.ndarray] = {}
        # The place of each name among all leaves.
        self._places = {_name(path): place for place, (path, _) in enumerate(
            jax.tree_util.tree_flatten_with_path(tree.weights)[0])}
        named = self._named()
        self._kinds: dict[str, int] = {}
        kinds = tree._kinds_of
        for name, leaf in named.items():
            self._kinds[name] = next(
                (kind for kind, names in kinds.items() if any(_is_below(name, one) for one in names)),
                c.UNDECAYED if np.ndim(leaf) <= 1 else c.WEIGHTS)
        waves = self._complex_leaves(tree)
        for one in [one for names in kinds.values() for one in names]:
            if not any(_is_below(name, one) for name in [*named, *waves]):
                raise c.KumoError(f"the pytree has no leaf or subtree {one!r}; its leaves are "
                                  f"{', '.join(named)}")
        self._first_state = self._copy(tree.state)
        self._begun = False  # whether a block has begun, until release()
        self._carried, self._counts, self.unmatched = self._find_state(tree.state, named)

    def _complex_leaves(self, tree: Tree) -> list[str]:
        """The names of complex leaves, which stay the process's own, and so must be frozen."""
        names = []
        for path, leaf in self._jax.tree_util.tree_flatten_with_path(tree.weights)[0]:
            if not self._is_of(leaf, np.complexfloating):
                continue
            names.append(_name(path))
            if not any(_is_below(names[-1], one) for one in tree._kinds_of[c.FROZEN]):
                raise c.KumoError(f"leaf {names[-1]} is of {leaf.dtype}, but float32 is exchanged; keep its real and "
                                  "imaginary parts in leaves of their own, or name it in `frozen` if it is not "
                                  "trained")
        return names

    def _find_state(self, state: Any, named: dict[str, Any]):
        """By array of the optimizer: the place of each weight's leaf in the flattened state; the places of
        step counts; and the names of other arrays of floats, without single numbers."""
        arrays: dict[tuple[str, ...], dict[str, int]] = {}
        counts: list[int] = []
        unmatched: list[str] = []
        for place, (path, leaf) in enumerate(self._jax.tree_util.tree_flatten_with_path(state)[0]):
            words = _words(path)
            if np.ndim(leaf) == 0 and self._is_of(leaf, np.integer) and _HYPERPARAMETERS not in words:
                counts.append(place)
            if not self._is_of(leaf, np.floating):
                continue
            begin, name = self._weight_of(words, leaf, named)
            if name:
                arrays.setdefault(tuple(words[:begin]), {})[name] = place
            elif np.ndim(leaf) > 0 and _HYPERPARAMETERS not in words:
                unmatched.append(_name(path))
        return list(arrays.values()), counts, unmatched

    def _weight_of(self, words: list[str], leaf: Any, named: dict[str, Any]) -> tuple[int, str]:
        """The trained weight to which a leaf of the optimizer's state belongs, "" if there is none, and the
        place in the leaf's path at which the weight's path begins.

        The weight's path may have more words before: the optimizer may have been given a subtree of the
        weights. The longest path counts then, and has to be the end of one trained weight's path only."""
        def fits(name):
            return self._kinds[name] in (c.WEIGHTS, c.UNDECAYED) and np.shape(leaf) == np.shape(named[name])
        # The longest name first; that of a pytree which is one leaf has no words.
        is_leaf = self._jax.tree_util.treedef_is_leaf(self._structure)
        for begin in range(len(words) + is_leaf):
            name = ".".join(words[begin:]) or _ROOT
            if name in named and fits(name):
                return begin, name
        for begin in range(len(words)):
            end = ".".join(words[begin:])
            if names := [name for name in named if _is_end(end, name)]:
                trained = [name for name in names if self._kinds[name] in (c.WEIGHTS, c.UNDECAYED)]
                return (begin, trained[0]) if len(trained) == 1 and fits(trained[0]) else (0, "")
        return 0, ""

    def _is_of(self, leaf: Any, kind: type) -> bool:
        return hasattr(leaf, "dtype") and self._jax.numpy.issubdtype(leaf.dtype, kind)

    def _copy(self, state: Any) -> Any:
        """The arrays of a pytree may be donated to a step, or changed in place."""
        return self._jax.tree.map(lambda leaf: leaf.copy() if hasattr(leaf, "dtype") else leaf, state)

    def _named(self) -> dict[str, Any]:
        """The floating-point leaves of the pytree, by name."""
        if self._leaves_of is self._tree.weights:
            return self._leaves
        flat, structure = self._jax.tree_util.tree_flatten_with_path(self._tree.weights)
        if structure != self._structure:
            raise c.KumoError(f"model.weights is of the structure {structure}, but was of "
                              f"{self._structure} when the Tree was made")
        leaves: dict[str, Any] = {}
        for path, leaf in flat:
            if not self._is_of(leaf, np.floating) or np.size(leaf) == 0:
                continue
            name = _name(path)
            if name in leaves:
                raise c.KumoError(f"two leaves of the pytree have the name {name}")
            leaves[name] = leaf
        self._leaves, self._leaves_of = leaves, self._tree.weights
        return leaves

    @property
    def device(self) -> str:
        leaf = next(iter(self._named().values()))
        return str(next(iter(leaf.devices()))) if hasattr(leaf, "devices") else "cpu"

    @property
    def optimizer_states(self) -> int:
        return len(self._carried)

    @property
    def has_state(self) -> bool:
        return self.optimizer_states > 0

    def tensors(self) -> list[tuple[str, tuple[int, ...], int]]:
        return [(name, np.shape(leaf), self._kinds[name]) for name, leaf in self._named().items()]

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self._named()[name])

    def is_narrow(self, name: str) -> bool:
        return self._named()[name].dtype.itemsize < 4

    def check(self) -> None:
        # The program may have changed the pytrees in place.
        self._leaves_of = self._gradients_of = None
        self._named()

    def begin_export(self, weights: list[str], gradients: list[str]) -> None:
        pass

    def export_weights(self, name: str) -> np.ndarray:
        return np.asarray(self._named()[name], np.float32, "C")

    def export_gradient(self, name: str) -> np.ndarray | None:
        if self._tree.gradients is None:
            return None
        if self._gradients_of is not self._tree.gradients:
            flat, structure = self._jax.tree.flatten(self._tree.gradients)
            if structure != self._structure:
                raise c.KumoError(f"model.gradients is of the structure {structure}, but the weights are "
                                  f"of {self._structure}")
            self._gradients, self._gradients_of = flat, self._tree.gradients
        return np.asarray(self._gradients[self._places[name]], np.float32, "C")

    def load(self, name: str, read) -> None:
        numbers = np.empty(self.shape(name), np.float32)
        read(numbers.ctypes.data)
        self._loaded[name] = numbers

    def loaded(self) -> None:
        flat = self._jax.tree.leaves(self._tree.weights)
        for name, numbers in self._loaded.items():
            place = self._places[name]
            flat[place] = self._like(flat[place], numbers)
        self._loaded.clear()
        self._tree.weights = self._jax.tree.unflatten(self._structure, flat)

    def has_values(self, name: str, values: np.ndarray) -> bool:
        own = np.asarray(self._named()[name])
        return np.array_equal(own, values.astype(own.dtype), equal_nan=True)

    def how_to_change(self, name: str) -> str:
        return HOW_TO_CHANGE

    def _like(self, leaf: Any, numbers: np.ndarray) -> Any:
        """An array of these numbers, of the leaf's type and place."""
        array = self._jax.numpy.array(numbers, dtype=leaf.dtype)  # a copy, which may be donated
        return self._jax.device_put(array, leaf.sharding) if hasattr(leaf, "sharding") else array

    def begin_block(self, read_state, steps_before: int, servers_step: bool = False) -> None:
        self._tree.gradients = None
        self._begun = True
        self._tree.state = self._copy(self._first_state)
        if read_state is None or steps_before == 0 or self._tree.state is None:
            return
        flat, structure = self._jax.tree.flatten(self._tree.state)
        for i, places in enumerate(self._carried):
            for name, place in places.items():
                numbers = np.empty(np.shape(flat[place]), np.float32)
                read_state(name, i, numbers.ctypes.data)
                flat[place] = self._like(flat[place], numbers)
        for place in self._counts:
            flat[place] = flat[place] + np.asarray(steps_before, flat[place].dtype)
        self._tree.state = self._jax.tree.unflatten(structure, flat)

    def end_training(self) -> None:
        pass

    def release(self) -> None:
        """Another Worker of this Tree begins its blocks as the blocks of this one have begun."""
        if self._begun:
            self._begun = False
            self._tree.state = self._copy(self._first_state)

    def end_block(self, write_state, steps: int) -> None:
        """write_state(name, i, array): hands in array i of the optimizer's state. steps: minibatches behind
        it."""
        self.check_state(steps)
        flat = self._jax.tree.leaves(self._tree.state)
        for i, places in enumerate(self._carried):
            for name, place in places.items():
                write_state(name, i, np.asarray(flat[place], np.float32, "C"))

    def check_state(self, steps: int) -> None:
        """Errors name a leaf that has changed and is not carried. steps: minibatches behind the state."""
        tree = self._jax.tree
        flat, structure = self._jax.tree_util.tree_flatten_with_path(self._tree.state)
        expected = tree.structure(self._first_state)
        if structure != expected:
            raise c.KumoError(f"model.state is of the structure {structure}, but was of {expected} when "
                              "the Tree was made")
        carried = {place for places in self._carried for place in places.values()}
        for place, ((path, leaf), first) in enumerate(zip(flat, tree.leaves(self._first_state))):
            if place in carried or _HYPERPARAMETERS in _words(path):
                continue
            if place in self._counts:
                if int(leaf) != int(first) + steps:
                    raise c.cannot_carry(f"the integer {_name(path)} of model.state has become {int(leaf)} from "
                                         f"{int(first)} in {steps} minibatches, and does not count them")
            elif not self._is_equal(leaf, first):
                raise c.cannot_carry(f"{_name(path)} of model.state changes, but has not the path and shape of a "
                                     "weight")

    def _is_equal(self, leaf: Any, first: Any) -> bool:
        if not hasattr(first, "dtype"):
            return bool(leaf == first)
        if self._jax.numpy.issubdtype(first.dtype, self._jax.dtypes.prng_key):
            leaf, first = self._jax.random.key_data(leaf), self._jax.random.key_data(first)
        leaf, first = np.asarray(leaf, first.dtype), np.asarray(first)
        return leaf.shape == first.shape and leaf.tobytes() == first.tobytes()

    def evaluating(self):
        return contextlib.nullcontext()


_HYPERPARAMETERS = "hyperparams"  # of optax: values of schedules, and values that the program sets
_ROOT = "weights"  # of a pytree that is one leaf


def _words(path) -> list[str]:
    """DictKey, SequenceKey, FlattenedIndexKey and GetAttrKey as words."""
    return [str(next(getattr(key, field) for field in ("key", "idx", "name") if hasattr(key, field)))
            for key in path]


def _name(path) -> str:
    return ".".join(_words(path)) or _ROOT


def _is_end(end: str, name: str) -> bool:
    return name == end or name.endswith("." + end)


def _is_below(name: str, subtree: str) -> bool:
    return name == subtree or name.startswith(subtree + ".")
