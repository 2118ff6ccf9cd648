"""A Kumo network in PyTorch, from what bench/first_steps.cc writes of it: the same layers by the same
names, with the same tensors. Layers that draw at random (dropout) are refused: the draws differ.
"""


def pair(settings, name, default):
    return settings.get(name, default) or default


class TorchNetwork:
    """loss(inputs, labels) is the mean loss of a minibatch, as in training."""

    def __init__(self, torch, network, tensors):
        self.torch, self.functional = torch, torch.nn.functional
        self.layers, self.tensors = network["layers"], tensors

    def tensor(self, layer, name):
        return self.tensors.get(f"{layer.get('tensorsOf') or layer['name']}.{name}")

    def loss(self, inputs, labels):
        values, last = {"input": inputs}, "input"
        for layer in self.layers:
            sources = [values[name] for name in layer.get("inputs") or [last]]
            (kind,) = set(layer) - {"name", "inputs", "tensorsOf"}
            values[layer["name"]] = getattr(self, kind)(layer, layer[kind], labels, *sources)
            last = layer["name"]
        return values[last]

    def convolution(self, layer, settings, _, x):
        return self.functional.conv2d(
            x, self.tensor(layer, "weight"), self.tensor(layer, "bias"),
            stride=pair(settings, "stride", 1), padding=pair(settings, "pad", 0),
            dilation=pair(settings, "dilation", 1))

    def fullyConnected(self, layer, _settings, _, x):
        return self.functional.linear(x.flatten(1), self.tensor(layer, "weight"),
                                      self.tensor(layer, "bias"))

    def maxPooling(self, _layer, settings, _, x):
        return self.functional.max_pool2d(x, settings["kernel"],
                                          pair(settings, "stride", settings["kernel"]),
                                          pair(settings, "pad", 0))

    def averagePooling(self, _layer, settings, _, x):
        return self.functional.avg_pool2d(x, settings["kernel"],
                                          pair(settings, "stride", settings["kernel"]),
                                          pair(settings, "pad", 0), count_include_pad=False)

    def batchNormalisation(self, layer, settings, _, x):
        return self.functional.batch_norm(x, None, None, self.tensor(layer, "scale"),
                                          self.tensor(layer, "shift"), training=True,
                                          eps=pair(settings, "epsilon", 1e-5))

    def globalAveragePooling(self, _layer, _settings, _, x):
        return x.mean((2, 3), keepdim=True)

    def relu(self, _layer, _settings, _, x):
        return self.functional.relu(x)

    def tanh(self, _layer, _settings, _, x):
        return self.torch.tanh(x)

    def sigmoid(self, _layer, _settings, _, x):
        return self.torch.sigmoid(x)

    def flatten(self, _layer, _settings, _, x):
        return x.flatten(1)

    def add(self, _layer, _settings, _, *terms):
        return sum(terms[1:], terms[0])

    def multiply(self, _layer, _settings, _, x, y):
        return x * y

    def concat(self, _layer, _settings, _, *parts):
        return self.torch.cat(parts, 1)

    def softmaxCrossEntropy(self, _layer, _settings, labels, x):
        return self.functional.cross_entropy(x.flatten(1), labels)
