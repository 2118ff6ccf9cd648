"""The weights of checkpoints, for programs and files."""
from __future__ import annotations

import ctypes
import json
import os
import pathlib
import struct
import sys
import zipfile
from typing import Any

import numpy as np

from . import _library as c


def load_state_dict(folder: str | os.PathLike, model: Any = None) -> dict[str, Any]:
    """The weights of a checkpoint by their names, as `module.load_state_dict` takes them.

    folder: a checkpoint's folder, or the output folder of a job, whose newest checkpoint is read.
    model: a torch.nn.Module; the result then has the names of its state_dict(), also of shared parameters
      and below DataParallel and torch.compile, and the module's own values of buffers that are not
      exchanged, so that `model.load_state_dict(result)` names each tensor that does not fit.
    Returns torch tensors if torch is imported, otherwise numpy arrays, of float32 and the tensors'
    shapes. Without a model, shared parameters have one name, and buffers that are not exchanged are
    missing.
    """
    arrays = _read(folder)
    torch = sys.modules.get("torch")
    tensors = arrays if torch is None else {name: torch.from_numpy(array) for name, array in arrays.items()}
    if model is None:
        return tensors
    if torch is None or not isinstance(model, torch.nn.Module):
        raise c.KumoError(f"load_state_dict(folder, model): the model is a {type(model).__name__}; give a "
                          "torch.nn.Module, or no model")
    from ._torch import filled_in
    return filled_in(model, tensors)


def export(folder: str | os.PathLike, file: str | os.PathLike) -> list[str]:
    """Writes the weights of a checkpoint into a file for other programs.

    folder: as in load_state_dict.
    file: its ending says the format: `.safetensors`; `.npz` of numpy; `.pt` or `.pth`, the state dict that
      torch.load reads, which needs torch. An existing file is replaced, at once.
    Returns the names of the tensors.
    """
    path = pathlib.Path(file)
    writers = {".safetensors": _write_safetensors, ".npz": _write_npz, ".pt": _write_torch,
               ".pth": _write_torch}
    if path.suffix not in writers:
        raise ValueError(f"{path}: the ending says the format: {', '.join(writers)}")
    arrays = _read(folder)
    unfinished = path.with_name(path.name + f".{os.getpid()}.tmp")
    try:
        with open(unfinished, "wb") as out:
            writers[path.suffix](arrays, out)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return list(arrays)


def _read(folder: str | os.PathLike) -> dict[str, np.ndarray]:
    weights = ctypes.c_void_p()
    c.check(c.library.kumo_weights_open(os.fsencode(folder), ctypes.byref(weights)))
    arrays: dict[str, np.ndarray] = {}
    try:
        for i in range(c.library.kumo_weights_count(weights)):
            extents = ctypes.POINTER(ctypes.c_int64)()
            dimensions = c.library.kumo_weights_shape(weights, i, ctypes.byref(extents))
            values = np.empty(tuple(extents[:dimensions]), np.float32)
            c.library.kumo_weights_get(weights, i, c.floats(values.ctypes.data))
            arrays[c.library.kumo_weights_name(weights, i).decode()] = values
    finally:
        c.library.kumo_weights_close(weights)
    return arrays


def _write_safetensors(arrays: dict[str, np.ndarray], out) -> None:
    """The format of huggingface/safetensors: the header's length, the header in JSON, the numbers."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    out.write(struct.pack("<Q", len(text)) + text)
    for array in arrays.values():
        out.write(array.astype("<f4", copy=False).tobytes())


def _write_npz(arrays: dict[str, np.ndarray], out) -> None:
    """As numpy.savez, which has parameters of its own: no array can have their names, `file` for example."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _write_torch(arrays: dict[str, np.ndarray], out) -> None:
    try:
        import torch
    except ImportError:
        raise ValueError("a file for torch.load needs torch; choose .safetensors or .npz") from None
    torch.save({name: torch.from_numpy(array) for name, array in arrays.items()}, out)
