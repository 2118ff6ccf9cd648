"""Multilayer perceptron on MNIST, trained by JAX on Kumo's servers:

    KUMO_DATA=DIR kumo launch mnist_jax.conf --workers 2      DIR/mnist: the four files of MNIST
"""
import gzip
import os
import pathlib

import jax
import kumo
import numpy as np
from jax import numpy as jnp

MOMENTUM, KEPT = 0.9, 0.9  # KEPT: share of activations that dropout keeps


def read_idx(name):
    """The numbers of an IDX file as an array of its shape."""
    data = gzip.open(pathlib.Path(os.environ["KUMO_DATA"], "mnist", name)).read()
    dimensions = data[3]
    shape = np.frombuffer(data, ">i4", dimensions, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def read(part):
    """Images of shape [samples, 784], 0 to 1, and digits of shape [samples]."""
    images = read_idx(f"{part}-images-idx3-ubyte.gz")
    return (images.reshape(len(images), -1) / np.float32(255),
            read_idx(f"{part}-labels-idx1-ubyte.gz").astype(np.int32))


def first_weights(key, sizes=(784, 128, 10)):
    layers = {}
    for i, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        key, one = jax.random.split(key)
        layers[f"layer{i}"] = {"kernel": jax.random.normal(one, (inputs, outputs)) * (2 / inputs) ** 0.5,
                               "bias": jnp.zeros(outputs)}
    return layers


def figures(weights, images, digits, key=None):
    """Mean loss and accuracy; key: of the dropout, None without."""
    x = jax.nn.relu(images @ weights["layer0"]["kernel"] + weights["layer0"]["bias"])
    if key is not None:
        x = jnp.where(jax.random.bernoulli(key, KEPT, x.shape), x / KEPT, 0)
    scores = x @ weights["layer1"]["kernel"] + weights["layer1"]["bias"]
    likely = jnp.take_along_axis(jax.nn.log_softmax(scores), digits[:, None], axis=1)
    return -likely.mean(), (scores.argmax(1) == digits).mean()


@jax.jit
def step(weights, momentum, images, digits, key, rate):
    means, gradients = jax.value_and_grad(figures, has_aux=True)(weights, images, digits, key)
    momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, momentum, gradients)
    return jax.tree.map(lambda w, m: w - rate * m, weights, momentum), momentum, means


def main():
    train, validation = read("train"), read("t10k")
    weights = first_weights(jax.random.key(1))
    model = kumo.Tree(weights, state=jax.tree.map(jnp.zeros_like, weights))
    evaluated = jax.jit(figures)

    def evaluate(part):
        for indices in part.minibatches():
            loss, accuracy = evaluated(model.weights, validation[0][indices], validation[1][indices])
            part.add(loss=loss, accuracy=accuracy, samples=len(indices))

    with kumo.Worker(None, model, train_samples=len(train[0]), validation_samples=len(validation[0]),
                     metrics=["loss", "accuracy"]) as worker:
        for block in worker.blocks(evaluate):
            key = jax.random.key(block.seed)
            for indices in block.minibatches():
                key, one = jax.random.split(key)
                model.weights, model.state, (loss, accuracy) = step(
                    model.weights, model.state, train[0][indices], train[1][indices], one,
                    block.learning_rate)
                block.add(loss=loss, accuracy=accuracy, samples=len(indices))


if __name__ == "__main__":
    main()
