"""A single-shot detector in PyTorch and numpy, written from the formulas of docs/networks.md ("multibox"):
default boxes, matching, loss, detections and their average precision. Boxes are in 32 bits: all default
boxes inside of an object overlap with it alike, so that rounding decides which one it gets.
"""
import math

import numpy


def default_boxes(maps, grids):
    """(left, top, right, bottom) of each default box: map by map, box by box of a cell, row by row."""
    boxes = []
    for one, (rows, columns) in zip(maps, grids):
        rows, columns = max(rows, 1), max(columns, 1)
        size, next_size = numpy.float32(one["size"]), numpy.float32(one["nextSize"])
        sides = [(size, size), (numpy.sqrt(size * next_size),) * 2]
        for ratio in numpy.array(one.get("ratios", []), numpy.float32):
            wide, narrow = size * numpy.sqrt(ratio), size / numpy.sqrt(ratio)
            sides += [(wide, narrow), (narrow, wide)]
        for width, height in sides:
            y, x = (numpy.mgrid[:rows, :columns].reshape(2, -1).astype(numpy.float32) +
                    numpy.float32(.5)) * numpy.float32(one["step"])
            boxes.append(numpy.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], 1))
    return numpy.concatenate(boxes)


def overlaps(a, b):
    """Intersection over union of each of `a` with each of `b`."""
    sides = numpy.minimum(a[:, None, 2:], b[None, :, 2:]) - numpy.maximum(a[:, None, :2], b[None, :, :2])
    both = sides.clip(0).prod(2)

    def area(boxes):
        return (boxes[:, 2:] - boxes[:, :2]).prod(1)
    union = area(a)[:, None] + area(b)[None] - both
    return numpy.divide(both, union, out=numpy.zeros_like(both), where=union > 0)


def match(defaults, objects, threshold):
    """The object of each default box, or -1: greedy pairs first, then each box's best object."""
    matches = numpy.full(len(defaults), -1)
    if len(objects) == 0:
        return matches
    table = overlaps(objects, defaults)
    left = table.copy()
    for _ in range(len(objects)):
        o, d = numpy.unravel_index(left.argmax(), left.shape)
        if left[o, d] <= 1e-6:
            break
        matches[d] = o
        left[o, :] = left[:, d] = 0
    best = table.argmax(0)
    free = (matches < 0) & (table.max(0) >= threshold)
    matches[free] = best[free]
    return matches


def by_box(maps, numbers):
    """Samples x default boxes x numbers, of maps with channels (boxes of a cell) x numbers."""
    import torch
    return torch.cat([x.reshape(len(x), x.shape[1] // numbers, numbers, -1).transpose(2, 3)
                      .reshape(len(x), -1, numbers) for x in maps], 1)


def scores_of(maps, defaults):
    cells = sum(x.shape[1] * max(1, x[0, 0].numel()) for x in maps)
    return cells // len(defaults)


def multibox_loss(torch, defaults, offset_maps, score_maps, objects, negatives, threshold):
    offsets = by_box(offset_maps, 4)
    logs = by_box(score_maps, scores_of(score_maps, defaults)).log_softmax(2)
    centres, sizes = (defaults[:, :2] + defaults[:, 2:]) / 2, defaults[:, 2:] - defaults[:, :2]
    loss, positives = 0, 0
    for n, of in enumerate(objects):
        of = numpy.array(of, numpy.float32).reshape(-1, 5)
        boxes = of[:, 1:]
        matches = match(defaults, boxes, threshold)
        (matched,) = numpy.nonzero(matches >= 0)
        wanted = boxes[matches[matched]]
        goals = numpy.concatenate(
            [((wanted[:, :2] + wanted[:, 2:]) / 2 - centres[matched]) / sizes[matched] / .1,
             numpy.log((wanted[:, 2:] - wanted[:, :2]) / sizes[matched]) / .2], 1)
        loss = loss + torch.nn.functional.smooth_l1_loss(
            offsets[n][matched], torch.tensor(goals, dtype=offsets.dtype), reduction="sum")
        classes = torch.zeros(len(defaults), dtype=torch.long)
        classes[matched] = torch.tensor(of[matches[matched], 0] + 1).long()
        entropy = -logs[n].gather(1, classes[:, None])[:, 0]
        hardness = entropy.detach().clone()
        hardness[matched] = -math.inf
        count = min(int(negatives * len(matched)), len(defaults) - len(matched))
        hardest = hardness.argsort(descending=True, stable=True)[:count]
        loss = loss + entropy[matched].sum() + entropy[hardest].sum()
        positives += len(matched)
    return loss / positives if positives > 0 else loss * 0


def detections(defaults, offsets, scores, least=.01, overlap=.45, candidates=400, most=200):
    """[(score, class, box)] of one image: offsets are default boxes x 4, scores x (classes + 1)."""
    centres, sizes = (defaults[:, :2] + defaults[:, 2:]) / 2, defaults[:, 2:] - defaults[:, :2]
    middle, half = centres + offsets[:, :2] * .1 * sizes, sizes * numpy.exp(offsets[:, 2:] * .2) / 2
    boxes = numpy.concatenate([middle - half, middle + half], 1)
    shares = numpy.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    found = []
    for number in range(1, scores.shape[1]):
        order = numpy.argsort(-shares[:, number], kind="stable")[:candidates]
        order = order[shares[order, number] >= least]
        table = overlaps(boxes[order], boxes[order])
        kept = []
        for i in range(len(order)):
            if all(table[i, k] <= overlap for k in kept):
                kept.append(i)
        found += [(float(shares[order[i], number]), number - 1, boxes[order[i]]) for i in kept]
    return sorted(found, key=lambda one: -one[0])[:most]


def mean_average_precision(found, objects, classes, overlap=.5):
    """Area below precision and recall (VOC 2010), mean over the classes that occur. found, objects: by
    image; objects [class, left, top, right, bottom], none of them difficult.
    """
    means = []
    for number in range(classes):
        truth = [numpy.array([one[1:] for one in of if one[0] == number]).reshape(-1, 4) for of in objects]
        total = sum(map(len, truth))
        if total == 0:
            continue
        taken = [set() for _ in truth]
        ranked = sorted(((score, n, box) for n, of in enumerate(found) for score, c, box in of if c == number),
                        key=lambda one: -one[0])
        hits = []
        for _, n, box in ranked:
            table = overlaps(truth[n], box[None])[:, 0] if len(truth[n]) else numpy.zeros(1)
            best = int(table.argmax())
            hit = table[best] >= overlap and best not in taken[n]
            if hit:
                taken[n].add(best)
            hits.append(hit)
        right = numpy.cumsum(hits)
        precision = right / numpy.arange(1, len(hits) + 1)
        envelope = numpy.maximum.accumulate(precision[::-1])[::-1]
        recall = right / total
        means.append(float((numpy.diff(recall, prepend=0) * envelope).sum()))
    return sum(means) / len(means) if means else 0.0
