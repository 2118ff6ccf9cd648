#!/usr/bin/env python3
"""Models in the node forms that PyTorch's exporters write, without PyTorch: each in a folder below FOLDER with
its model.onnx, input.bin for a batch of 3, and output.bin, what onnxruntime makes of it.

  pytorch_forms.py FOLDER
"""
import pathlib
import sys

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

BATCH = 3
numbers = numpy.random.default_rng(1)


class Model:
    """A graph that grows node by node; scopes are PyTorch's."""

    def __init__(self, name, shape, opset=14, batch="b", integers=0):
        self.name, self.shape, self.opset, self.integers = name, shape, opset, integers
        self.nodes, self.tensors, self.count = [], [], {}
        kind = TensorProto.INT64 if integers else TensorProto.FLOAT
        self.input = helper.make_tensor_value_info("input.1", kind, [batch, *shape])

    def op(self, kind, *inputs, scope="", outputs=1, **attributes):
        path = f"{scope}/{kind}"
        n = self.count.get(path, 0)
        self.count[path] = n + 1
        path += f"_{n}" if n else ""
        names = [f"{path}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=path, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value, kind=numpy.float32, scope=""):
        tensor = numpy_helper.from_array(numpy.array(value, kind))
        return self.op("Constant", scope=scope, value=tensor)

    def tensor(self, name, *shape, low=-1.0, high=1.0):
        size = numpy.prod(shape[1:]) if len(shape) > 1 else 1
        values = numbers.uniform(low, high, shape).astype(numpy.float32) / numpy.sqrt(size)
        self.tensors.append(numpy_helper.from_array(values.astype(numpy.float32), name))
        return name

    def conv(self, x, path, inputs, outputs, kernel, stride=1, pad=0, bias=False, **more):
        operands = [x, self.tensor(path + ".weight", outputs, inputs, kernel, kernel)]
        if bias:
            operands.append(self.tensor(path + ".bias", outputs))
        return self.op("Conv", *operands, scope="/" + path, dilations=[1, 1], kernel_shape=[kernel] * 2,
                       pads=[pad] * 4, strides=[stride] * 2, **{"group": 1, **more})

    def norm(self, x, path, channels):
        return self.op("BatchNormalization", x, self.tensor(path + ".weight", channels),
                       self.tensor(path + ".bias", channels),
                       self.tensor(path + ".running_mean", channels),
                       self.tensor(path + ".running_var", channels, low=.5), scope="/" + path,
                       epsilon=9.999999747378752e-06, momentum=.8999999761581421)

    def linear(self, x, path, inputs, outputs):
        return self.op("Gemm", x, self.tensor(path + ".weight", outputs, inputs),
                       self.tensor(path + ".bias", outputs), scope="/" + path, alpha=1., beta=1., transB=1)

    def product(self, x, path, inputs, outputs, bias=True):
        """A linear layer of sequences, as it is with constant folding."""
        y = self.op("MatMul", x, self.tensor(f"onnx::MatMul_{len(self.tensors)}", inputs, outputs),
                    scope="/" + path)
        return self.op("Add", self.tensor(path + ".bias", outputs), y, scope="/" + path) if bias else y

    def view(self, x, *parts):
        """x.view(x.size(0), ...), as it is with a free batch."""
        size = self.op("Gather", self.op("Shape", x), self.constant(0, numpy.int64), axis=0)
        axes = self.constant([0], numpy.int64)
        pieces = [self.op("Unsqueeze", size, axes)]
        pieces += [self.op("Unsqueeze", self.constant(part, numpy.int64), axes) for part in parts]
        return self.op("Reshape", x, self.op("Concat", *pieces, axis=0))

    def layer_norm(self, x, path, channels):
        """As opsets before 17 have it."""
        scope = "/" + path
        difference = self.op("Sub", x, self.op("ReduceMean", x, scope=scope, axes=[-1]), scope=scope)
        power = self.op("Pow", difference, self.constant(2.), scope=scope)
        mean = self.op("ReduceMean", power, scope=scope, axes=[-1])
        root = self.op("Sqrt", self.op("Add", mean, self.constant(1e-5), scope=scope), scope=scope)
        y = self.op("Mul", self.op("Div", difference, root, scope=scope),
                    self.tensor(path + ".weight", channels), scope=scope)
        return self.op("Add", y, self.tensor(path + ".bias", channels), scope=scope)

    def gelu(self, x, scope="/gelu"):
        erf = self.op("Erf", self.op("Div", x, self.constant(1.4142135381698608), scope=scope), scope=scope)
        y = self.op("Mul", x, self.op("Add", erf, self.constant(1.), scope=scope), scope=scope)
        return self.op("Mul", y, self.constant(.5), scope=scope)

    def gelu_tanh(self, x):
        cube = self.op("Mul", self.op("Pow", x, self.constant(3.)), self.constant(.044715))
        tanh = self.op("Tanh", self.op("Mul", self.op("Add", x, cube), self.constant(.7978845608028654)))
        half = self.op("Mul", x, self.constant(.5))
        return self.op("Mul", half, self.op("Add", tanh, self.constant(1.)))

    def model(self, output, rank):
        value = helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * rank)
        graph = helper.make_graph(self.nodes, "main_graph", [self.input], [value], self.tensors)
        model = helper.make_model(graph, producer_name="pytorch",
                                  opset_imports=[helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model

    def save(self, folder, output, scores=None, rank=2, data=lambda x: x):
        """scores: what goes into the softmax, if there is one at the end. data: what the data have to do."""
        to = pathlib.Path(folder) / self.name
        to.mkdir(parents=True)
        onnx.save(self.model(output, rank), to / "model.onnx")
        shape = [BATCH, *self.shape]
        given = (numbers.integers(0, self.integers, shape) if self.integers
                 else numbers.uniform(-1, 1, shape).astype(numpy.float32))
        session = onnxruntime.InferenceSession(self.model(scores or output, rank).SerializeToString(),
                                               providers=["CPUExecutionProvider"])
        found, = session.run(None, {"input.1": given})
        data(given).astype(numpy.float32).tofile(to / "input.bin")
        # Classes come first in Kumo.
        numpy.ascontiguousarray(numpy.moveaxis(found, -1, 1)).astype(numpy.float32).tofile(to / "output.bin")


def resnet(folder):
    m = Model("resnet", [3, 20, 20])
    x = m.op("Relu", m.norm(m.conv("input.1", "conv1", 3, 8, 7, 2, 3), "bn1", 8), scope="/relu")
    x = m.op("MaxPool", x, scope="/maxpool", ceil_mode=0, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    for i, (inputs, outputs, stride) in enumerate([(8, 8, 1), (8, 12, 2)], 1):
        path, scope = f"layer{i}.0", f"/layer{i}/layer{i}.0"
        y = m.op("Relu", m.norm(m.conv(x, path + ".conv1", inputs, outputs, 3, stride, 1), path + ".bn1",
                                outputs), scope=scope + "/relu")
        y = m.norm(m.conv(y, path + ".conv2", outputs, outputs, 3, 1, 1), path + ".bn2", outputs)
        short = x if stride == 1 else m.norm(
            m.conv(x, path + ".downsample.0", inputs, outputs, 1, stride), path + ".downsample.1", outputs)
        x = m.op("Relu", m.op("Add", y, short, scope=scope), scope=scope + "/relu_1")
    x = m.op("Flatten", m.op("GlobalAveragePool", x, scope="/avgpool"), axis=1)
    m.save(folder, m.linear(x, "fc", 12, 10))


def convnet(folder):
    m = Model("convnet", [2, 13, 13], batch=BATCH)
    x = m.op("LeakyRelu", m.conv("input.1", "features.0", 2, 6, 3, bias=True), scope="/features/features.1",
             alpha=.1)
    x = m.op("MaxPool", x, scope="/features/features.2", ceil_mode=1, kernel_shape=[2, 2], pads=[0] * 4,
             strides=[2, 2])
    y = m.op("Sigmoid", m.conv(x, "gate", 2, 6, 3, pad=1, group=3), scope="/gate")
    x = m.op("Concat", m.op("Mul", x, y), m.op("Tanh", x), axis=1)
    x = m.op("AveragePool", x, ceil_mode=0, kernel_shape=[2, 2], pads=[0] * 4, strides=[2, 2])
    scale, shift = m.tensor("gn.weight", 12), m.tensor("gn.bias", 12)
    shape = m.constant([0, 4, -1], numpy.int64)
    ones, zeros = m.constant([1.] * 4), m.constant([0.] * 4)
    n = m.op("InstanceNormalization", m.op("Reshape", x, shape), ones, zeros, scope="/gn", epsilon=1e-5)
    n = m.op("Reshape", n, m.op("Shape", x), scope="/gn")
    axes = m.constant([1, 2], numpy.int64)
    n = m.op("Mul", n, m.op("Unsqueeze", scale, axes), scope="/gn")
    x = m.op("Add", n, m.op("Unsqueeze", shift, axes), scope="/gn")
    x = m.op("Reshape", x, m.constant([BATCH, -1], numpy.int64))
    x = m.linear(x, "fc", 12 * 9, 9)
    m.save(folder, m.op("LogSoftmax", x, axis=1), scores=x)


def means(folder):
    m = Model("means", [4, 6, 5], opset=13)
    x = m.conv("input.1", "conv", 4, 6, 3, pad=1, bias=True)
    x = m.op("Mul", x, m.op("Sigmoid", x, scope="/act"), scope="/act")
    x = m.op("Identity", m.op("Dropout", x, m.constant(.25), scope="/drop"))
    x = m.op("ReduceMean", x, axes=[2, 3], keepdims=0)
    x = m.gelu_tanh(m.layer_norm(m.linear(x, "fc1", 6, 8), "norm", 8))
    x = m.linear(x, "fc2", 8, 5)
    m.save(folder, m.op("Softmax", x, axis=-1), scores=x)


def upsampled(folder):
    """All ways to more pixels."""
    m = Model("upsampled", [4, 3, 5])
    x = m.op("ConvTranspose", "input.1", m.tensor("up.weight", 4, 6, 3, 3), m.tensor("up.bias", 6),
             scope="/up", dilations=[1, 1], group=1, kernel_shape=[3, 3], output_padding=[1, 1],
             pads=[1] * 4, strides=[2, 2])
    scales = m.op("Concat", m.constant([1, 1]), m.constant([2, 2]), scope="/nearest", axis=0)
    x = m.op("Resize", x, "", scales, scope="/nearest", mode="nearest",
             coordinate_transformation_mode="asymmetric", cubic_coeff_a=-.75, nearest_mode="floor")
    x = m.op("DepthToSpace", m.conv(x, "conv", 6, 8, 3, 2, 1), scope="/shuffle", blocksize=2, mode="CRD")
    x = m.op("SpaceToDepth", x, scope="/back", blocksize=2)
    x = m.op("DepthToSpace", x, scope="/columns", blocksize=2)
    x = m.op("Resize", x, m.constant([]), m.constant([1, 1, 3, 3]), scope="/bilinear", mode="linear",
             coordinate_transformation_mode="half_pixel")
    x = m.op("Resize", x, m.constant([]), m.constant([1, 1, 2, 2]), scope="/centres", mode="nearest",
             coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_floor")
    x = m.conv(x, "last", 2, 3, 5, 3)
    m.save(folder, m.linear(m.op("Flatten", m.op("GlobalAveragePool", x), axis=1), "fc", 3, 5))


def normalised_input(folder):
    """The model normalises its pixels itself, which Kumo leaves to the data."""
    m = Model("normalised_input", [3, 6, 6])
    mean = numpy.array([.485, .456, .406], numpy.float32).reshape(1, 3, 1, 1)
    deviation = numpy.array([.229, .224, .225], numpy.float32).reshape(1, 3, 1, 1)
    x = m.op("Div", m.op("Sub", "input.1", m.constant(mean)), m.constant(deviation))
    x = m.op("Relu", m.conv(x, "conv", 3, 4, 3, bias=True))
    m.save(folder, m.linear(m.op("Flatten", x, axis=1), "fc", 64, 4),
           data=lambda x: (x - mean) / deviation)


def language_model(folder, free):
    width, heads, length, words = 12, 2, 5, 11
    m = Model("language_free" if free else "language", [length], 17 if free else 14,
              "b" if free else BATCH, integers=words)
    table, places = m.tensor("wte.weight", words, width), m.tensor("wpe.weight", length, width)
    x = m.op("Add", m.op("Gather", table, "input.1", scope="/wte"),
             m.op("Gather", places, m.constant([range(length)], numpy.int64), scope="/wpe"))
    for i in range(2):
        path = f"h.{i}"
        y = m.product(m.layer_norm(x, path + ".ln_1", width), path + ".attn.c_attn", width, 3 * width)
        q, k, v = m.op("Split", y, m.constant([width] * 3, numpy.int64), outputs=3, axis=2)
        each = [length, heads, width // heads]

        def apart(t):
            return m.view(t, *each) if free else m.op("Reshape", t, m.constant([BATCH, *each], numpy.int64))
        q = m.op("Transpose", apart(q), perm=[0, 2, 1, 3])
        v = m.op("Transpose", apart(v), perm=[0, 2, 1, 3])
        k = m.op("Transpose", apart(k), perm=[0, 2, 3, 1])
        scores = m.op("Mul", m.op("MatMul", q, k, scope=f"/h.{i}/attn"), m.constant((width / heads) ** -.5))
        mask = numpy.tril(numpy.ones((1, 1, length, length)))
        if free:
            hidden = m.op("Cast", m.op("Equal", m.constant(mask), m.constant(0.)), to=TensorProto.BOOL)
        else:
            hidden = m.constant(mask == 0, bool)
        scores = m.op("Where", hidden, m.constant(-numpy.inf), scores)
        y = m.op("MatMul", m.op("Softmax", scores, axis=-1), v, scope=f"/h.{i}/attn")
        y = m.op("Transpose", y, perm=[0, 2, 1, 3])
        y = m.view(y, length, width) if free else m.op(
            "Reshape", y, m.constant([BATCH, length, width], numpy.int64))
        x = m.op("Add", x, m.product(y, path + ".attn.c_proj", width, width), scope=f"/h.{i}")
        y = m.gelu(m.product(m.layer_norm(x, path + ".ln_2", width), path + ".mlp.0", width, 20),
                   f"/h.{i}/mlp/mlp.1")
        x = m.op("Add", x, m.product(y, path + ".mlp.2", 20, width), scope=f"/h.{i}")
    m.save(folder, m.product(m.layer_norm(x, "ln_f", width), "lm_head", width, words, bias=False), rank=3)


def main():
    folder = sys.argv[1]
    resnet(folder)
    convnet(folder)
    means(folder)
    upsampled(folder)
    normalised_input(folder)
    language_model(folder, free=False)
    language_model(folder, free=True)


if __name__ == "__main__":
    main()
