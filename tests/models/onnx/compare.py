#!/usr/bin/env python3
"""Whether onnxruntime computes what is expected: for each folder below FOLDER its model.onnx, which ONNX's
checker is asked about first, with BATCH.input (float32) or BATCH.pixels (bytes), against BATCH.NAME of each
of its outputs; probabilities, where it gives some, are the softmax of the first. Prints what differs, and exits with 1 where anything does.

  compare.py FOLDER
"""
import pathlib
import sys

import numpy
import onnx
import onnxruntime

RELATIVE = 1e-5


def softmax(scores):
    powers = numpy.exp(scores.astype(numpy.float64) - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def compare(folder):
    """What is wrong, line by line."""
    model = onnx.load(folder / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    given, = session.get_inputs()
    names = [output.name for output in session.get_outputs()]
    for content in sorted(folder.glob(f"*.{given.name}")):
        batch = int(content.stem)
        kind = {"tensor(uint8)": numpy.uint8, "tensor(int64)": numpy.int64,
                "tensor(float)": numpy.float32}[given.type]
        numbers = numpy.frombuffer(content.read_bytes(), kind).reshape([batch] + given.shape[1:])
        found = dict(zip(names, session.run(names, {given.name: numbers})))
        probabilities = found.pop("probabilities", None)
        for name, values in found.items():
            wanted = numpy.frombuffer(content.with_suffix("." + name).read_bytes(), numpy.float32)
            if values.size != wanted.size:
                yield f"{folder.name}: {name} is {values.shape}, not {wanted.shape}"
                continue
            if values.ndim == 1:
                values = values[:, None]
            wanted = wanted.reshape(values.shape)
            # Of sums that nearly cancel, what they are sums of counts.
            bound = RELATIVE * numpy.maximum(numpy.abs(wanted),
                                             numpy.abs(wanted).max(axis=1, keepdims=True))
            worst = (numpy.abs(values - wanted) - bound).max()
            if not worst <= 0:
                yield (f"{folder.name}, batch {batch}: {name} differs by "
                       f"{numpy.abs(values - wanted).max()}")
            first = name == names[0] and probabilities is not None
            if first and not numpy.allclose(probabilities, softmax(wanted), rtol=1e-4, atol=1e-6):
                yield f"{folder.name}, batch {batch}: other probabilities"


def main():
    folders = sorted(path for path in pathlib.Path(sys.argv[1]).iterdir() if path.is_dir())
    wrong = []
    for folder in folders:
        try:
            wrong += compare(folder)
        except Exception as error:  # of any of the three libraries
            wrong.append(f"{folder.name}: {error}")
    print(*wrong, sep="\n")
    return 1 if wrong or not folders else 0


if __name__ == "__main__":
    sys.exit(main())
