#!/usr/bin/env python3
"""Models as torch.onnx.export writes them, by each exporter that this torch has: each in a folder below FOLDER
with its model.onnx, input.bin for a batch of 2, output.bin, what torch makes of it, and state.npz, its numbers by
torch's names. torchvision's resnets if it is there, with random weights.

  torch_export.py FOLDER [MODEL...]      MODEL: resnet18, resnet50, bottleneck, mixed,
                                         upsampled, gpt; all if none is named
"""
import inspect
import math
import pathlib
import sys
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
BATCH = 2


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                            nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """Of ResNet-50 and deeper ones: four times as many outputs, and the stride in the middle."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if inputs != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False),
                                            nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))
        y = self.bn3(self.conv3(y))
        return self.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    """torchvision's, where there is none. width: channels of the first stage, doubled by each later one."""

    def __init__(self, block, expansion, width, stages):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = width
        self.stages = [f"layer{i + 1}" for i in range(stages)]
        for i, name in enumerate(self.stages):
            inner = width << i
            setattr(self, name, nn.Sequential(block(channels, inner, 2 if i > 0 else 1),
                                              block(expansion * inner, inner, 1)))
            channels = expansion * inner
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(channels, 1000)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for name in self.stages:
            x = getattr(self, name)(x)
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 8, 3, padding=1, groups=2)
        self.gn = nn.GroupNorm(4, 8)
        self.fc1 = nn.Linear(8 * 6 * 6, 20)
        self.ln = nn.LayerNorm(20)
        self.drop = nn.Dropout(.3)
        self.gelu = nn.GELU()
        self.fc2 = nn.Linear(20, 10)

    def forward(self, x):
        x = F.leaky_relu(self.gn(self.conv(x)), .2)
        x = torch.cat([F.max_pool2d(x, 2)[:, :4], F.avg_pool2d(x, 2)[:, 4:]], 1)
        x = self.ln(self.fc1(self.drop(x.view(x.size(0), -1))))
        return self.fc2(self.gelu(x) + F.silu(x) * torch.tanh(x))


class Upsampled(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(2, 6, 4, stride=2, padding=1, groups=2)
        self.nearest = nn.Upsample(scale_factor=2)
        self.bilinear = nn.Upsample(scale_factor=3, mode="bilinear", align_corners=False)
        self.narrow = nn.Conv2d(6, 8, 3, stride=2)
        self.shuffle = nn.PixelShuffle(2)
        self.fc = nn.Linear(2, 5)

    def forward(self, x):
        x = self.shuffle(self.narrow(self.nearest(F.relu(self.up(x)))))
        return self.fc((self.bilinear(x) * torch.sigmoid(self.bilinear(x))).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.register_buffer("bias", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        batch, length, width = x.size()
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.c_attn(x).split(width, dim=2))
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.bias[:, :, :length, :length] == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class Gpt(nn.Module):
    """nanoGPT's, small."""

    def __init__(self, words=20, width=16, length=8):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(length, width)
        self.ln_1, self.ln_2, self.ln_f = (nn.LayerNorm(width) for _ in range(3))
        self.attn = Attention(width, 2, length)
        self.mlp = nn.Sequential(nn.Linear(width, 40), nn.GELU(), nn.Linear(40, width))
        self.lm_head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(0, tokens.size(1)).unsqueeze(0))
        x = x + self.attn(self.ln_1(x))
        return self.lm_head(self.ln_f(x + self.mlp(self.ln_2(x))))


def save(folder, name, model, given, **options):
    with torch.no_grad():
        found = model(given)
        to = pathlib.Path(folder) / name
        to.mkdir(parents=True)
        torch.onnx.export(model, (given,), str(to / "model.onnx"), **options)
    numpy.savez(to / "state.npz", **{key: tensor.numpy() for key, tensor in model.state_dict().items()
                                     if tensor.is_floating_point()})
    given.to(torch.float32).numpy().tofile(to / "input.bin")
    numpy.ascontiguousarray(numpy.moveaxis(found.numpy(), -1, 1)).tofile(to / "output.bin")


def main():
    folder, wanted = sys.argv[1], sys.argv[2:]
    torch.manual_seed(1)
    torch.set_num_threads(1)
    resnets = {"resnet18": ResNet(Block, 1, 64, 4)}
    try:
        from torchvision.models import resnet18, resnet50
        resnets = {"resnet18": resnet18(), "resnet50": resnet50()}
    except ImportError:
        pass
    models = {name: (model, torch.rand(BATCH, 3, 64, 64)) for name, model in resnets.items()}
    models["bottleneck"] = ResNet(Bottleneck, 4, 16, 2), torch.rand(BATCH, 3, 64, 64)
    models["mixed"] = Mixed(), torch.rand(BATCH, 2, 12, 12)
    models["upsampled"] = Upsampled(), torch.rand(BATCH, 2, 5, 5)
    models["gpt"] = Gpt(), torch.randint(0, 20, (BATCH, 8))
    kept = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        kept["dynamo"] = False
    for name, (model, given) in models.items():
        if wanted and name not in wanted:
            continue
        model.eval()
        for part in model.modules():
            if isinstance(part, nn.BatchNorm2d):
                for tensor, low, high in ((part.running_mean, -.1, .1), (part.running_var, .5, 1.5),
                                          (part.weight, .5, 1.5), (part.bias, -.2, .2)):
                    torch.nn.init.uniform_(tensor, low, high)
        free = {"input_names": ["x"], "dynamic_axes": {"x": {0: "batch"}}}
        save(folder, name, model, given, **kept, **free)
        folded = {"dynamo": False} if "dynamo" in kept else {}
        if name != "resnet50":
            save(folder, name + "_folded", model, given, **folded)
        try:
            import onnxscript  # noqa: F401
        except ImportError:
            continue
        if "dynamo" in kept:
            save(folder, name + "_dynamo", model, given, dynamo=True, external_data=False)


if __name__ == "__main__":
    main()
