"""What a Worker does to JAX arrays, without a job; examples_test.py runs it."""
import types
import unittest

import ctest
import jax
import jax.numpy as jnp
import numpy as np

import kumo
from kumo import _library as c
from kumo._step_checker import StepChecker
from kumo._tree import TreeModel


def loaded(model, value):
    """The tree's weights as the servers' values."""
    for name, shape, _ in model.tensors():
        model.load(name, lambda address, size=int(np.prod(shape)): np.ctypeslib.as_array(
            c.floats(address), shape=(size,)).fill(value))
    model.loaded()


def donate(state):
    """As a step with donated arguments does."""
    for leaf in jax.tree.leaves(state):
        if isinstance(leaf, jax.Array):
            leaf.delete()


def worker_of(tree):
    """A Worker without a job, whose library takes everything."""
    worker = object.__new__(kumo.Worker)
    worker._model, worker._states, worker._seeds = TreeModel(tree), 0, False
    worker._trained, worker._frozen = [name for name, _, _ in worker._model.tensors()], []
    worker._checker = StepChecker(worker._model, worker._trained, lambda name: True)
    worker._places = {name: place for place, name in enumerate(worker._trained)}
    worker._shapes = {name: shape for name, shape, _ in worker._model.tensors()}
    worker._handle = None
    worker._load = worker._note_rounding = lambda: None
    worker._rounding = {}
    worker._check = lambda status: None
    return worker


class Trees(unittest.TestCase):
    def test_a_tree_that_is_changed_in_place_contributes(self):
        tree = kumo.Tree({"w": jnp.zeros(3)})
        model = TreeModel(tree)
        gradients = {}
        for done in range(1, 3):
            model.check()
            loaded(model, 1)
            self.assertEqual(model.export_weights("w").tolist(), [1, 1, 1])
            model.begin_block(None, 0)
            tree.weights["w"] = tree.weights["w"] + done
            gradients["w"] = jnp.full(3, done)
            tree.gradients = gradients
            model.check()
            self.assertEqual(model.export_weights("w").tolist(), [1 + done] * 3)
            self.assertEqual(model.export_gradient("w").tolist(), [done] * 3)

    def test_states_may_be_donated(self):
        state = {"count": jnp.zeros((), jnp.int32), "mu": {"w": jnp.zeros(3)}, "scale": jnp.ones(2),
                 "host": np.zeros(2), "none": None, "word": "a", "key": jax.random.key(1)}
        tree = kumo.Tree({"w": jnp.zeros(3)}, state)
        model = TreeModel(tree)
        carried = {}

        def read(name, i, address):
            np.ctypeslib.as_array(c.floats(address), shape=(3,))[...] = carried[name, i]

        for done in range(3):
            model.begin_block(None if done == 0 else read, done)
            self.assertEqual(int(tree.state["count"]), done)
            self.assertEqual(tree.state["mu"]["w"].tolist(), [done] * 3)
            self.assertEqual((tree.state["scale"].tolist(), tree.state["host"].tolist()), ([1, 1], [0, 0]))
            jax.random.normal(tree.state["key"])
            given = tree.state
            tree.state = {**jax.tree.map(lambda leaf: leaf.copy() if hasattr(leaf, "copy") else leaf, given),
                          "count": given["count"] + 1, "mu": {"w": given["mu"]["w"] + 1}}
            donate(given)
            model.end_block(lambda name, i, values: carried.update({(name, i): np.array(values)}), done + 1)
        donate(state)
        model.begin_block(None, 0)
        self.assertEqual(tree.state["mu"]["w"].tolist(), [0, 0, 0])

    def test_a_state_that_is_not_carried_begins_each_block_anew(self):
        tree = kumo.Tree({"w": jnp.zeros(3)}, {"host": np.zeros(2), "rate": jnp.ones(())})
        model = TreeModel(tree)
        for _ in range(2):
            model.begin_block(None, 0)
            self.assertEqual((tree.state["host"].tolist(), float(tree.state["rate"])), ([0, 0], 1))
            tree.state["host"] += 1
            tree.state["rate"] *= 2

    def test_a_closed_worker_leaves_the_first_state(self):
        tree = kumo.Tree({"w": jnp.zeros(3)}, {"mu": {"w": jnp.ones(3)}})
        model = TreeModel(tree)
        model.begin_block(None, 0)
        tree.state = {"mu": {"w": jnp.full(3, 7.0)}}
        model.release()
        self.assertEqual(tree.state["mu"]["w"].tolist(), [1] * 3)
        tree.state = {"mu": {"w": jnp.full(3, 8.0)}}
        model.release()
        self.assertEqual(tree.state["mu"]["w"].tolist(), [8] * 3)

    def test_a_leaf_that_cannot_be_carried_is_refused(self):
        weights = {"w": jnp.zeros(3)}
        states = {"count": jnp.zeros((), jnp.int32), "first": jnp.full((), 5), "mu": {"w": jnp.zeros(3)},
                  "scale": jnp.ones(()), "host": np.zeros(2), "key": jax.random.key(1), "done": jnp.array(False),
                  "bad": jnp.full((), jnp.nan), "hyperparams": {"rate": jnp.ones(()), "warm": jnp.zeros((), int)}}

        def after(change):
            tree = kumo.Tree(weights, states)
            model = TreeModel(tree)
            model.begin_block(lambda name, i, address: np.ctypeslib.as_array(
                c.floats(address), shape=(3,)).fill(0), 4)
            begun = tree.state
            tree.state = {**begun, "count": begun["count"] + 2, "first": begun["first"] + 2,
                          "mu": {"w": begun["mu"]["w"] + 1}, "hyperparams": {"rate": 0.5, "warm": 3}, **change}
            model.end_block(lambda name, i, values: None, 6)
            return begun

        begun = after({})
        self.assertEqual([int(begun[name]) for name in ("count", "first")], [4, 9])
        self.assertEqual(int(begun["hyperparams"]["warm"]), 0)
        for change, words in (
                ({"count": jnp.ones((), jnp.int32)}, "the integer count of model.state has become 1 from 0 in 6 mi"),
                ({"first": jnp.full((), 5)}, "the integer first of model.state has become 5 from 5 in 6 mi"),
                ({"scale": jnp.full((), 0.5)}, "scale of model.state changes"),
                ({"host": np.ones(2)}, "host of model.state changes"),
                ({"done": jnp.array(True)}, "done of model.state changes"),
                ({"key": jax.random.key(2)}, "key of model.state changes")):
            with self.assertRaisesRegex(kumo.KumoError, words + ".* take another optimizer, or block.reset"):
                after(change)

    def test_optimizers_of_optax(self):
        try:
            import optax
            import optax.contrib
        except ImportError:
            self.skipTest("optax is not installed")
        for optimizer, words in (
                (optax.adamw(optax.cosine_decay_schedule(0.1, 100)), ""),
                (optax.chain(optax.clip_by_global_norm(1), optax.sgd(0.1, momentum=0.9)), ""),
                (optax.inject_hyperparams(optax.adam)(learning_rate=0.1), ""),
                (optax.inject_hyperparams(optax.adam)(learning_rate=optax.linear_schedule(0.1, 0, 9)), ""),
                (optax.MultiSteps(optax.sgd(0.1), 2), "mini_step of model.state|gradient_step of model.state"),
                (optax.adafactor(0.1, min_dim_size_to_factor=2), "v_row.w of model.state changes"),
                (optax.contrib.prodigy(0.1), "of model.state changes"),
                (optax.contrib.schedule_free_sgd(0.1), "of model.state changes")):
            weights = {"w": jnp.ones((3, 4))}
            tree = kumo.Tree(weights, optimizer.init(weights))
            model = TreeModel(tree)
            model.begin_block(None, 0)
            for _ in range(3):
                update, tree.state = optimizer.update({"w": jnp.full((3, 4), 0.1)}, tree.state, tree.weights)
                tree.weights = optax.apply_updates(tree.weights, update)

            def end():
                model.end_block(lambda name, i, values: None, 3)
            if words:
                self.assertRaisesRegex(kumo.KumoError, words, end)
            else:
                end()

    def test_counts_without_arrays_are_carried(self):
        """As of optax.sgd with a schedule, whose job carries no arrays."""
        tree = kumo.Tree({"w": jnp.zeros(3)}, {"count": jnp.zeros((), jnp.int32), "scale": jnp.ones(())})
        worker = worker_of(tree)
        for work, begins in ((c.Work(steps=1, restarts=0, steps_before=0), 0),
                             (c.Work(steps=1, restarts=0, steps_before=4), 4),
                             (c.Work(steps=1, restarts=1, ahead=1, steps_before=0), 0),
                             (c.Work(steps=1, restarts=1, steps_before=0), 0)):
            def ends(**changes):
                block = types.SimpleNamespace(minibatch_count=2, mode="weights", _place="block")
                worker._begin(block, work)
                self.assertEqual(int(tree.state["count"]), begins)
                tree.state = {**tree.state, "count": tree.state["count"] + 2, **changes}
                worker._hand_in(block, work)
            ends()
            if not work.restarts or work.ahead:
                with self.assertRaisesRegex(kumo.KumoError, "scale of model.state changes"):
                    ends(scale=jnp.zeros(()))
            else:
                ends(scale=jnp.zeros(()))

    def test_a_state_of_a_subtree_of_the_weights_is_carried(self):
        """As flax has it: the optimizer gets variables["params"]."""
        params = {"Dense_0": {"kernel": jnp.zeros((2, 3)), "bias": jnp.zeros(3)}, "Dense_1": {"bias": jnp.zeros(2)}}
        variables = {"params": params, "batch_stats": {"Dense_0": {"bias": jnp.zeros(3)}}}
        state = ({"count": jnp.zeros((), jnp.int32), "mu": params, "nu": params}, {"bias": jnp.zeros(7)})
        model = TreeModel(kumo.Tree(variables, state, statistics=["batch_stats"]))
        self.assertEqual(model.optimizer_states, 2)
        names = ["params.Dense_0.bias", "params.Dense_0.kernel", "params.Dense_1.bias"]
        self.assertEqual([sorted(places) for places in model._carried], [names] * 2)
        self.assertEqual(model.unmatched, ["1.bias"])

        # An array of a frozen weight is none of a trained weight whose name is alike.
        variables = {"params": {"body": {"kernel": jnp.zeros(3)}, "head": {"kernel": jnp.zeros(3)}}}
        model = TreeModel(kumo.Tree(variables, {"mu": variables["params"]}, frozen=["params.body"]))
        self.assertEqual([list(places) for places in model._carried], [["params.head.kernel"]])
        # Nor is one that two weights fit.
        variables = {"a": {"params": {"w": jnp.zeros(3)}}, "b": {"params": {"w": jnp.zeros(3)}}}
        model = TreeModel(kumo.Tree(variables, {"mu": {"w": jnp.zeros(3)}}))
        self.assertEqual((model.optimizer_states, model.unmatched), (0, ["mu.w"]))

    def test_leaves_of_no_weight_are_named_if_the_job_carries_more_arrays(self):
        worker = worker_of(kumo.Tree({"w": jnp.zeros(3)}, {"mu": {"v": jnp.zeros(3)}, "nu": {"w": jnp.zeros(3)}}))
        self.assertRegex(str(worker._other_states(2)), "carries 2 arrays .* has 1; .*; mu.v of model.state has not "
                                                       "the path and shape of a trained weight")
        self.assertNotIn("model.state", str(worker._other_states(0)))

    def test_complex_leaves_are_refused_unless_they_are_frozen(self):
        for wave in (jnp.zeros(3, jnp.complex64), np.zeros(3, np.complex128)):
            weights = {"w": jnp.zeros(3), "part": {"wave": wave}}
            with self.assertRaisesRegex(kumo.KumoError, "leaf part.wave is of complex.* real and imaginary.*frozen"):
                TreeModel(kumo.Tree(weights))
            for frozen in ("part.wave", "part"):
                model = TreeModel(kumo.Tree(weights, frozen=[frozen]))
                self.assertEqual([name for name, _, _ in model.tensors()], ["w"])
            with self.assertRaisesRegex(kumo.KumoError, "no leaf or subtree 'wave'"):
                TreeModel(kumo.Tree(weights, frozen=["part", "wave"]))

    def test_a_pytree_of_one_leaf_carries_its_state(self):
        model = TreeModel(kumo.Tree(jnp.zeros(3), {"mu": jnp.zeros(3), "count": jnp.zeros((), jnp.int32)}))
        self.assertEqual([name for name, _, _ in model.tensors()], ["weights"])
        self.assertEqual(model.optimizer_states, 1)


if __name__ == "__main__":
    ctest.run()
