"""A small GPT of characters on a text, trained by PyTorch on Kumo's servers with DiLoCo's settings:

    KUMO_DATA=DIR kumo launch char_gpt.conf --workers 2      DIR/text/tinyshakespeare.txt: the text

The last tenth of the text is the validation set. An epoch is WINDOWS windows (2880).
"""
import math
import os
import pathlib

import kumo
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DEVICE = os.environ.get("KUMO_DEVICE", "cpu")  # kumo launch --devices
CONTEXT, WIDTH, HEADS, LAYERS = 64, 128, 4, 4
WINDOWS = int(os.environ.get("WINDOWS", 2880))


class Text:
    """Windows of CONTEXT characters, evenly over the text; those of each epoch begin elsewhere."""

    def __init__(self, characters, windows):
        self.characters, self.windows = characters, windows

    def __len__(self):
        return self.windows

    def fetch(self, indices, epoch=0):
        """Characters and their successors, each of shape [windows, CONTEXT]."""
        room = len(self.characters) - CONTEXT
        first = np.random.default_rng(epoch).integers(room)
        begins = (first + indices * room // self.windows) % room
        windows = torch.stack([self.characters[begin:begin + CONTEXT + 1] for begin in begins]).to(DEVICE)
        return windows[:, :-1], windows[:, 1:]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        samples, length, _ = x.shape
        query, key, value = (part.view(samples, length, HEADS, -1).transpose(1, 2)
                             for part in self.attend(self.norm1(x)).split(WIDTH, dim=2))
        scores = query @ key.transpose(2, 3) / math.sqrt(WIDTH // HEADS)
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        mixed = scores.masked_fill(later, -math.inf).softmax(3) @ value
        x = x + self.project(mixed.transpose(1, 2).reshape(samples, length, WIDTH))
        return x + self.narrow(F.gelu(self.widen(self.norm2(x))))


class CharGpt(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embed, self.place = nn.Embedding(vocabulary, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False)
        self.head.weight = self.embed.weight  # shared: exchanged once
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, x):
        x = self.embed(x) + self.place.weight[:x.shape[1]]
        return self.head(self.norm(self.layers(x)))


def main():
    torch.set_num_threads(1)  # a worker is a process; several workers use several cores
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    text = pathlib.Path(os.environ["KUMO_DATA"], "text/tinyshakespeare.txt").read_text(encoding="utf-8")
    vocabulary = sorted(set(text))
    numbers = torch.tensor([vocabulary.index(one) for one in text])
    end = len(text) * 9 // 10
    train = Text(numbers[:end], WINDOWS)
    validation = Text(numbers[end:], WINDOWS // 10)
    model = CharGpt(len(vocabulary)).to(DEVICE)
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1},
                                   {"params": vectors, "weight_decay": 0.0}], lr=1e-3, betas=(0.9, 0.99))

    def loss_of(windows, successors):
        return F.cross_entropy(model(windows).flatten(0, 1), successors.flatten())

    def evaluate(part):
        for indices in part.minibatches():
            part.add(loss=loss_of(*validation.fetch(indices)), samples=len(indices))

    with kumo.Worker(None, model, optimizer, train_samples=len(train),
                     validation_samples=len(validation)) as worker:
        for block in worker.blocks(evaluate):
            for indices in block.minibatches():
                loss = loss_of(*train.fetch(indices, block.epoch))
                for group in optimizer.param_groups:
                    group["lr"] = block.learning_rate
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                block.add(loss=loss, samples=len(indices))


if __name__ == "__main__":
    main()
