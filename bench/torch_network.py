"""A Kumo network in PyTorch, from what bench/first_steps.cc writes of it: the same layers by the same
names, with the same tensors. Layers that draw at random (dropout) are refused: the draws differ.
"""


LOSSES = ("softmaxCrossEntropy", "binaryCrossEntropy", "dice", "multibox")


def pair(settings, name, default):
    return settings.get(name, default) or default


class TorchNetwork:
    """loss(inputs, labels) is the mean loss of a minibatch, as in training: the sum of all losses by their
    weights. They share the labels. The labels of a detector are lists of objects, [class, left, top, right,
    bottom].
    """

    def __init__(self, torch, network, tensors):
        self.torch, self.functional = torch, torch.nn.functional
        self.layers, self.tensors = network["layers"], tensors
        (first,) = network["input"]
        self.input = first.get("name") or "input"

    def tensor(self, layer, name):
        return self.tensors.get(f"{layer.get('tensorsOf') or layer['name']}.{name}")

    @staticmethod
    def kind(layer):
        (kind,) = set(layer) - {"name", "inputs", "tensorsOf", "targets", "lossWeight"}
        return kind

    def values(self, inputs, labels):
        """The result of each layer, by its name."""
        last = self.input
        values = {last: inputs}
        for layer in self.layers:
            sources = [values[name] for name in layer.get("inputs") or [last]]
            kind = self.kind(layer)
            values[layer["name"]] = getattr(self, kind)(layer, layer[kind], labels, *sources)
            last = layer["name"]
        return values

    def loss(self, inputs, labels):
        values = self.values(inputs, labels)
        return sum(layer.get("lossWeight", 1) * values[layer["name"]]
                   for layer in self.layers if self.kind(layer) in LOSSES)

    def convolution(self, layer, settings, _, x):
        return self.functional.conv2d(
            x, self.tensor(layer, "weight"), self.tensor(layer, "bias"),
            stride=pair(settings, "stride", 1), padding=pair(settings, "pad", 0),
            dilation=pair(settings, "dilation", 1))

    def fullyConnected(self, layer, settings, _, x):
        if settings.get("perPosition"):
            return self.functional.linear(x.transpose(1, -1), self.tensor(layer, "weight"),
                                          self.tensor(layer, "bias")).transpose(1, -1)
        return self.functional.linear(x.flatten(1), self.tensor(layer, "weight"),
                                      self.tensor(layer, "bias"))

    def maxPooling(self, _layer, settings, _, x):
        return self.functional.max_pool2d(x, settings["kernel"],
                                          pair(settings, "stride", settings["kernel"]),
                                          pair(settings, "pad", 0),
                                          ceil_mode=bool(settings.get("ceilMode")))

    def l2Normalisation(self, layer, settings, _, x):
        added = bool(settings.get("addToLength"))
        epsilon = pair(settings, "epsilon", 1e-5 if added else 1e-10)
        squares = (x * x).sum(1, keepdim=True)
        length = squares.sqrt() + epsilon if added else (squares + epsilon).sqrt()
        return x / length * self.tensor(layer, "scale").view(1, -1, 1, 1)

    def averagePooling(self, _layer, settings, _, x):
        return self.functional.avg_pool2d(x, settings["kernel"],
                                          pair(settings, "stride", settings["kernel"]),
                                          pair(settings, "pad", 0), count_include_pad=False)

    def transposedConvolution(self, layer, settings, _, x):
        return self.functional.conv_transpose2d(
            x, self.tensor(layer, "weight"), self.tensor(layer, "bias"),
            stride=pair(settings, "stride", 1), padding=pair(settings, "pad", 0),
            output_padding=pair(settings, "outputPad", 0), groups=pair(settings, "groups", 1),
            dilation=pair(settings, "dilation", 1))

    def pixelShuffle(self, _layer, settings, _, x):
        return self.functional.pixel_shuffle(x, settings["factor"])

    def upsampling(self, _layer, settings, _, x):
        mode = settings.get("interpolation", "NEAREST").lower()
        corners = {"align_corners": False} if mode == "bilinear" else {}
        return self.functional.interpolate(x, scale_factor=settings["factor"], mode=mode, **corners)

    def batchNormalisation(self, layer, settings, _, x):
        return self.functional.batch_norm(x, None, None, self.tensor(layer, "scale"),
                                          self.tensor(layer, "shift"), training=True,
                                          eps=pair(settings, "epsilon", 1e-5))

    def layerNormalisation(self, layer, settings, _, x):
        if not settings.get("perPosition"):
            return self.functional.layer_norm(x, x.shape[1:], self.tensor(layer, "scale"),
                                              self.tensor(layer, "shift"),
                                              pair(settings, "epsilon", 1e-5))
        return self.functional.layer_norm(
            x.transpose(1, -1), x.shape[1:2], self.tensor(layer, "scale"),
            self.tensor(layer, "shift"), pair(settings, "epsilon", 1e-5)).transpose(1, -1)

    def embedding(self, layer, _settings, _, x):
        return self.functional.embedding(x, self.tensor(layer, "weight")).transpose(1, -1)

    def positionalEmbedding(self, layer, _settings, _, x):
        return x + self.tensor(layer, "weight").t()

    def attention(self, _layer, settings, _, x):
        samples, channels, length = x.shape
        queries, keys, values = x.view(samples, 3, settings["heads"], -1, length).transpose(3, 4).unbind(1)
        mixed = self.functional.scaled_dot_product_attention(
            queries, keys, values, is_causal=bool(settings.get("causal")))
        return mixed.transpose(2, 3).reshape(samples, channels // 3, length)

    def gelu(self, _layer, settings, _, x):
        return self.functional.gelu(x, approximate=settings.get("approximate", "NONE").lower())

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

    def binaryCrossEntropy(self, _layer, settings, labels, x):
        def by_channel(name):
            weights = settings.get(name)
            return weights and self.torch.tensor(weights).view(-1, *[1] * (x.dim() - 2))
        return self.functional.binary_cross_entropy_with_logits(
            x, labels.view(x.shape).to(x.dtype), by_channel("classWeights"),
            pos_weight=by_channel("positiveWeights"))

    def dice(self, _layer, settings, labels, x):
        x = x.flatten(2) if x.dim() > 2 else x.unsqueeze(2)
        sigmoid = settings.get("activation") == "SIGMOID"
        p = x.sigmoid() if sigmoid else x.softmax(1)
        if sigmoid:
            y = labels.view(x.shape)
        else:
            labels = labels.view(x.shape[0], -1)
            counted = labels != settings.get("ignoredLabel", -1)
            y = self.functional.one_hot(labels * counted, x.shape[1]).transpose(1, 2) * counted.unsqueeze(1)
            p = p * counted.unsqueeze(1)
        smooth = pair(settings, "smooth", 1)
        overlap = (2 * (p * y).sum(2) + smooth) / (p.sum(2) + y.sum(2) + smooth)
        return (1 - overlap).mean()

    def multibox(self, _layer, settings, objects, *maps):
        from torch_detector import default_boxes, multibox_loss  # needs numpy
        count = len(settings["maps"])
        return multibox_loss(self.torch, default_boxes(settings["maps"], [x.shape[2:] for x in maps[:count]]),
                             maps[:count], maps[count:], objects, pair(settings, "negatives", 3),
                             pair(settings, "threshold", .5))

    def softmaxCrossEntropy(self, _layer, settings, labels, x):
        if labels.dim() == 1:
            return self.functional.cross_entropy(x.flatten(1), labels)
        ignored = settings.get("ignoredLabel", -100)
        each = self.functional.cross_entropy(x.flatten(2), labels, ignore_index=ignored, reduction="none")
        # The mean of each sample goes over its own labels.
        return (each.sum(1) / (labels != ignored).sum(1)).mean()
