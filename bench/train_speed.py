#!/usr/bin/env python3
"""PyTorch side of bench/train_speed: trains its networks on random data and prints JSON.

One call times one setting for some seconds: {"samples_per_s": ...}. With --list it prints the
settings that are worth trying, so that the caller can pick PyTorch's best before comparing. With
--serve it answers each line of its input, "version", "WORK list" or "WORK SETTING SECONDS", with one
line of JSON: otherwise the start of a process, the import of PyTorch and the wake-up of the GPU would take
longer than the measurement. {"error": ...} if a setting does not work.
"""
import argparse
import itertools
import json
import sys
import time


def lenet(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.Tanh(), nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5), nn.Tanh(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 500), nn.Tanh(), nn.Linear(500, 10))


def mlp(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(),
        nn.Linear(1000, 10))


def convnet(torch):
    nn = torch.nn
    layers, channels = [], 3
    for _ in range(2):
        for _ in range(2):
            layers += [nn.Conv2d(channels, 64, 3, padding=1), nn.ReLU()]
            channels = 64
        layers.append(nn.MaxPool2d(3, 2, 1))
    return nn.Sequential(
        *layers, nn.Flatten(), nn.Linear(4096, 256), nn.ReLU(), nn.Dropout(.5),
        nn.Linear(256, 128), nn.ReLU(), nn.Dropout(.5), nn.Linear(128, 10))


def resnet(torch):
    """A stack of ResNet-50's convolutions, each with batch normalisation and ReLU, no shortcuts."""
    nn = torch.nn
    layers, channels = [], 3

    def convolve(outputs, kernel, stride):
        nonlocal channels
        layers.extend([nn.Conv2d(channels, outputs, kernel, stride, kernel // 2, bias=False),
                       nn.BatchNorm2d(outputs), nn.ReLU()])
        channels = outputs

    convolve(64, 7, 2)
    layers.append(nn.MaxPool2d(3, 2, 1))
    for stage, blocks in enumerate([3, 4, 6, 3]):
        for block in range(blocks):
            convolve(64 << stage, 1, 1)
            convolve(64 << stage, 3, 2 if stage > 0 and block == 0 else 1)
            convolve(256 << stage, 1, 1)
    return nn.Sequential(*layers, nn.AvgPool2d(7), nn.Flatten(), nn.Linear(2048, 1000))


def vgg16(torch):
    """Simonyan and Zisserman 2014, configuration D."""
    nn = torch.nn
    layers, inputs = [], 3
    for outputs, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(7 * 7 * 512, 4096), nn.ReLU(), nn.Dropout(),
                         nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(), nn.Linear(4096, 1000))


def residual(torch, stem, stages, bottleneck, classes):
    """He et al. 2015's networks with shortcuts. stem: layers and their channels; stages: a width, a
    number of blocks and the first one's stride each."""
    nn, functional = torch.nn, torch.nn.functional

    def convolve(inputs, outputs, kernel, stride=1):
        return [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
                nn.BatchNorm2d(outputs)]

    class Block(nn.Module):
        def __init__(self, inputs, width, stride):
            super().__init__()
            outputs = 4 * width if bottleneck else width
            kernels = [1, 3, 1] if bottleneck else [3, 3]
            strides = [1, stride, 1] if bottleneck else [stride, 1]
            widths = [inputs, *[width] * (len(kernels) - 1), outputs]
            layers = []
            for place, kernel in enumerate(kernels):
                layers += [*convolve(widths[place], widths[place + 1], kernel, strides[place]),
                           nn.ReLU()]
            self.way = nn.Sequential(*layers[:-1])
            self.shortcut = (nn.Sequential(*convolve(inputs, outputs, 1, stride))
                             if (inputs, stride) != (outputs, 1) else nn.Identity())

        def forward(self, x):
            return functional.relu(self.way(x) + self.shortcut(x))

    layers, channels = stem
    for width, blocks, stride in stages:
        for block in range(blocks):
            layers.append(Block(channels, width, 1 if block else stride))
            channels = 4 * width if bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, classes))


def resnet20(torch):
    nn = torch.nn
    stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    return residual(torch, (stem, 16), [(16, 3, 1), (32, 3, 2), (64, 3, 2)], False, 10)


def resnet50(torch):
    nn = torch.nn
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.MaxPool2d(3, 2, 1)]
    stages = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]
    return residual(torch, (stem, 64), stages, True, 1000)


def unet(torch):
    """Three levels and a class for each pixel."""
    nn = torch.nn

    def convolve(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())

    class Unet(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = nn.MaxPool2d(2)
            self.top, self.middle, self.bottom = convolve(3, 16), convolve(16, 32), convolve(32, 64)
            self.up = nn.ConvTranspose2d(64, 32, 2, stride=2)
            self.back2, self.back1 = convolve(64, 32), convolve(48, 16)
            self.smooth = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
            self.scores = nn.Conv2d(16, 2, 1)

        def forward(self, x):
            top = self.top(x)
            middle = self.middle(self.pool(top))
            x = self.back2(torch.cat([self.up(self.bottom(self.pool(middle))), middle], 1))
            return self.scores(self.back1(torch.cat([self.smooth(x), top], 1)))

    return Unet()


def gpt(torch):
    """nanoGPT's CPU configuration: 4 layers of 4 heads, 128 wide, over 64 of 65 characters."""
    nn, functional = torch.nn, torch.nn.functional
    width, heads, length, words = 128, 4, 64, 65

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = (nn.LayerNorm(width, bias=False) for _ in range(2))
            self.into = nn.Linear(width, 3 * width, bias=False)
            self.out = nn.Linear(width, width, bias=False)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width, bias=False), nn.GELU(),
                                     nn.Linear(4 * width, width, bias=False))

        def forward(self, x):
            parts = [part.view(*part.shape[:2], heads, -1).transpose(1, 2)
                     for part in self.into(self.norm1(x)).split(width, 2)]
            mixed = functional.scaled_dot_product_attention(*parts, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(x.shape))
            return x + self.mlp(self.norm2(x))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(4)))
            self.norm = nn.LayerNorm(width, bias=False)
            self.head = nn.Linear(width, words, bias=False)
            self.head.weight = self.token.weight

        def forward(self, x):
            x = self.token(x) + self.position.weight
            return self.head(self.norm(self.blocks(x))).transpose(1, 2)

    return Gpt()


MASKS = {"unet": 2}  # networks of a class for each position, and how many classes there are
WORDS = {"gpt": 65}  # networks of whole numbers, and how many there are

WORK = {
    # name: (network, input shape, batch, optimiser, precision)
    "lenet": (lenet, (1, 28, 28), 64, "momentum", "fp32"),
    "mlp": (mlp, (1, 28, 28), 100, "adam", "fp32"),
    "convnet": (convnet, (3, 32, 32), 64, "momentum", "fp32"),
    "resnet20": (resnet20, (3, 32, 32), 64, "momentum", "fp32"),
    "resnet50": (resnet50, (3, 224, 224), 16, "momentum", "fp32"),
    "vgg16": (vgg16, (3, 224, 224), 4, "momentum", "fp32"),
    "unet": (unet, (3, 128, 128), 8, "momentum", "fp32"),
    "gpt": (gpt, (64,), 12, "adamw", "fp32"),
    "resnet": (resnet, (3, 224, 224), 256, "momentum", "bf16"),
}


def settings(work, device):
    if work == "resnet":  # a step is long enough that how it is launched does not matter
        return ["eager,channels_last,fused", "compiled,channels_last,fused"]
    if work in ("resnet50", "vgg16"):
        return ["eager,channels_last,foreach", "eager,contiguous,foreach"]
    formats = ["channels_last", "contiguous"] if work not in ("mlp", "gpt") else ["contiguous"]
    if device == "cpu":
        # What the optimiser's variants gain does not depend on the mode, and compiling takes long.
        return [",".join(s) for s in itertools.chain(
            itertools.product(["eager"], formats, ["fused", "foreach", "forloop"]),
            itertools.product(["compiled"], formats, ["fused"]))]
    return [",".join(s) for s in itertools.product(["eager", "graph"], formats, ["fused", "foreach"])]


def make_optimiser(torch, kind, parameters, variant, graph):
    flags = {"fused": {"fused": True}, "foreach": {"foreach": True},
             "forloop": {"foreach": False}}[variant]
    if kind in ("adam", "adamw"):
        if graph:
            flags["capturable"] = True
        make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
        return make(parameters, lr=1e-3, betas=(.9, .999), eps=1e-8, **flags)
    return torch.optim.SGD(parameters, lr=.05, momentum=.9, weight_decay=1e-4, **flags)


def record(torch, step, x, y):
    """step(x, y) as a CUDA graph. It trains some steps before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(11):  # cuDNN chooses its algorithms, the optimiser makes its state
            step(x, y)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(x, y)
    return graph


def make_step(torch, net, optimiser, loss_of, inputs, labels, graph, precision):
    """A function that trains on minibatch i, from memory of the device."""
    number = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    scaler = torch.amp.GradScaler(enabled=precision == "fp16")

    def step(x, y):
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast(x.device.type, dtype=number, enabled=number is not None):
            loss = loss_of(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()

    if not graph:
        return lambda i: step(inputs[i], labels[i])
    x, y = inputs[0].clone(), labels[0].clone()
    recorded = record(torch, step, x, y)

    def replay(i):
        x.copy_(inputs[i])
        y.copy_(labels[i])
        recorded.replay()
    return replay


class Contender:
    """A network, its optimiser and its data, ready to be timed."""

    def __init__(self, work, setting, arguments):
        import torch
        device = arguments.device
        self.torch, self.cpu_time, self.device = torch, arguments.cpu_time, device
        network, shape, self.batch, kind, precision = WORK[work]
        self.batch = arguments.batch or self.batch
        precision = arguments.precision or precision
        mode, layout, variant = setting.split(",")
        memory = torch.channels_last if layout == "channels_last" else torch.contiguous_format
        torch.manual_seed(1)
        net = network(torch).to(device=device, memory_format=memory).train()
        if mode == "compiled":
            net = torch.compile(net)
        optimiser = make_optimiser(torch, kind, net.parameters(), variant, mode == "graph")
        # Several minibatches, so that the input is not always in the cache.
        def draw(words, *extents):
            return [torch.randint(0, words, (self.batch, *extents), device=device)
                    for _ in range(8)]
        if work in WORDS:
            inputs, labels = draw(WORDS[work], *shape), draw(WORDS[work], *shape)
        else:
            inputs = [torch.rand(self.batch, *shape, device=device).to(memory_format=memory)
                      for _ in range(8)]
            labels = draw(MASKS[work], *shape[1:]) if work in MASKS else draw(10)
        self.step = make_step(torch, net, optimiser, torch.nn.CrossEntropyLoss(), inputs, labels,
                              mode == "graph", precision)
        self.run(0.3, 10)

    def run(self, limit_s, least=5):
        """Samples per second over about that time."""
        now = time.process_time if self.cpu_time else time.perf_counter
        steps, start = 0, now()
        while True:
            self.step(steps % 8)
            steps += 1
            if now() - start >= limit_s and steps >= least:
                if self.device != "cpu":
                    self.torch.cuda.synchronize()
                return steps * self.batch / (now() - start)


def prepare(threads):
    import torch
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch.__version__


def answer(line, contenders, arguments, version):
    """What one line of a caller asks for."""
    work, *rest = line.split()
    if work == "version":
        return {"torch": version}
    if rest == ["list"]:
        return settings(work, arguments.device)
    setting, seconds = rest
    if (work, setting) not in contenders:
        contenders[work, setting] = Contender(work, setting, arguments)
    contender = contenders[work, setting]
    contender.run(0.1)  # the others' turns have driven it out of the caches
    return {"samples_per_s": contender.run(float(seconds)), "setting": setting, "torch": version}


def serve(arguments):
    version = prepare(arguments.threads)
    contenders = {}
    for line in sys.stdin:
        try:
            result = answer(line, contenders, arguments, version)
        except Exception as error:  # whatever a version of PyTorch does not like about a setting
            result = {"error": str(error).splitlines()[0] if str(error) else type(error).__name__}
        print(json.dumps(result), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", choices=sorted(WORK), default="lenet")
    parser.add_argument("--setting", default="eager,contiguous,fused")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--batch", type=int, default=0, help="0: the work's own")
    parser.add_argument("--precision", choices=["fp32", "bf16", "fp16"],
                        help="of activations; default: the work's own")
    parser.add_argument("--cpu-time", action="store_true", help="by the process's CPU time")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--serve", action="store_true", help="answer requests on standard input, one per line")
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(arguments)
    if arguments.list:
        result = settings(arguments.work, arguments.device)
    else:
        version = prepare(arguments.threads)
        result = answer(f"{arguments.work} {arguments.setting} {arguments.seconds}", {}, arguments,
                        version)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
