"""What a Worker does to JAX arrays, without a job; examples_test.py runs it."""
import unittest

import jax
import jax.numpy as jnp
import numpy as np

import kumo
from kumo import _library as c
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
            tree.state["host"] += 1
            given = tree.state
            tree.state = {**given, "mu": {"w": given["mu"]["w"] + 1}}
            donate(given)
            model.end_block(lambda name, i, values: carried.update({(name, i): np.array(values)}), done + 1)
        donate(state)
        model.begin_block(None, 0)
        self.assertEqual(tree.state["mu"]["w"].tolist(), [0, 0, 0])

    def test_a_pytree_of_one_leaf_carries_its_state(self):
        model = TreeModel(kumo.Tree(jnp.zeros(3), {"mu": jnp.zeros(3), "count": jnp.zeros((), jnp.int32)}))
        self.assertEqual([name for name, _, _ in model.tensors()], ["weights"])
        self.assertEqual(model.optimizer_states, 1)


if __name__ == "__main__":
    unittest.main()
