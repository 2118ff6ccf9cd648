"""libkumo_worker through ctypes: its functions, structures and errors (worker/library/kumo_worker.h)."""
from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any

OK, UNAVAILABLE, ABORTED, FAILED_PRECONDITION = 0, 4, 5, 2
WORK_NONE, WORK_TRAIN, WORK_EVALUATE, WORK_DONE, WORK_LEFT = range(5)
WEIGHTS, UNDECAYED, STATISTICS, FROZEN = range(4)
MEAN, SHARE, PERPLEXITY = range(3)
DIRECTION_UNKNOWN = -1

_c_floats = ctypes.POINTER(ctypes.c_float)


class KumoError(RuntimeError):
    """An error of a worker or of a checkpoint; its text says what to do.

    `exit_code` is the exit code by which `kumo launch` decides about a restart: 75 (start again later)
    or 78 (a restart cannot help), otherwise 1.
    """

    def __init__(self, text: str, exit_code: int = 78):
        super().__init__(text)
        self.exit_code = exit_code


def check_list(name: str, value: Any) -> None:
    """An argument that is one word would be read letter by letter."""
    if isinstance(value, (str, bytes)):
        raise KumoError(f"{name} = {value!r}: give a list, {name}=[{value!r}]")


def cannot_carry(obstacle: str) -> KumoError:
    """The error of an optimizer whose state would not go on as it is."""
    return KumoError("the optimizer's state goes on from block to block (block.reset_local_state = false, or "
                     f"sync.overlap), but the state of this program's optimizer cannot be carried: {obstacle}; "
                     "take another optimizer, or block.reset_local_state = true and sync.overlap = 0")


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("dimensions", ctypes.c_int32), ("kind", ctypes.c_int32), ("initial", _c_floats)]


class MetricField(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("formula", ctypes.c_int32),
                ("more_is_better", ctypes.c_int32)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("experiment", ctypes.c_char_p),
                ("settings", ctypes.POINTER(ctypes.c_char_p)), ("settings_count", ctypes.c_int32),
                ("name", ctypes.c_char_p), ("device", ctypes.c_char_p),
                ("tensors", ctypes.POINTER(Tensor)), ("tensors_count", ctypes.c_int32),
                ("metrics", ctypes.POINTER(MetricField)), ("metrics_count", ctypes.c_int32),
                ("train_samples", ctypes.c_int64), ("validation_samples", ctypes.c_int64)]


class Work(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("partition", ctypes.c_int32),
                ("round", ctypes.c_int64), ("epoch", ctypes.c_int64), ("steps", ctypes.c_int32),
                ("ahead", ctypes.c_int32), ("restarts", ctypes.c_int32), ("keeps_state", ctypes.c_int32),
                ("steps_before", ctypes.c_int64),
                ("samples", ctypes.c_int64), ("minibatch", ctypes.c_int64), ("position", ctypes.c_int64),
                ("seed", ctypes.c_uint64)]


_handle = ctypes.c_void_p
_FUNCTIONS = {
    "kumo_worker_open": [ctypes.POINTER(Options), ctypes.POINTER(_handle)],
    "kumo_worker_next": [_handle, ctypes.c_int32, ctypes.POINTER(Work)],
    "kumo_worker_samples": [_handle, ctypes.POINTER(ctypes.c_int64)],
    "kumo_worker_learning_rate": [_handle, ctypes.c_int64, _c_floats],
    "kumo_worker_get": [_handle, ctypes.c_int32, _c_floats],
    "kumo_worker_set": [_handle, ctypes.c_int32, _c_floats],
    "kumo_worker_states": [_handle, ctypes.POINTER(ctypes.c_int32)],
    "kumo_worker_get_state": [_handle, ctypes.c_int32, ctypes.c_int32, _c_floats],
    "kumo_worker_set_state": [_handle, ctypes.c_int32, ctypes.c_int32, _c_floats],
    "kumo_worker_finish": [_handle, ctypes.POINTER(ctypes.c_double), ctypes.c_int32],
    "kumo_worker_fail": [_handle, ctypes.c_int, ctypes.c_char_p],
    "kumo_worker_leave": [_handle],
    "kumo_weights_open": [ctypes.c_char_p, ctypes.POINTER(_handle)],
}


def _path() -> str:
    """The library's file: KUMO_LIBRARY, or the one of the installation that this package belongs to."""
    if named := os.environ.get("KUMO_LIBRARY"):
        return named
    folder = pathlib.Path(os.path.abspath(__file__)).parent
    prefix = folder / "installation"  # of a wheel
    if not prefix.is_dir():
        prefix = folder.parents[3]  # PREFIX/share/kumo/python/kumo
    return str(prefix / "lib" / "kumo" / "libkumo_worker.so")


def _load() -> ctypes.CDLL:
    path = _path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"libkumo_worker cannot be loaded: {error}; set KUMO_LIBRARY to its file, "
                          "lib/kumo/libkumo_worker.so of an installation or of a build folder") from None
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, ctypes.c_int
    library.kumo_error.restype = library.kumo_library_version.restype = ctypes.c_char_p
    library.kumo_exit_code.argtypes = [ctypes.c_int]
    library.kumo_worker_close.argtypes, library.kumo_worker_close.restype = [_handle], None
    library.kumo_weights_close.argtypes, library.kumo_weights_close.restype = [_handle], None
    library.kumo_weights_count.argtypes = [_handle]
    library.kumo_weights_name.argtypes = [_handle, ctypes.c_int32]
    library.kumo_weights_name.restype = ctypes.c_char_p
    library.kumo_weights_shape.argtypes = [_handle, ctypes.c_int32,
                                           ctypes.POINTER(ctypes.POINTER(ctypes.c_int64))]
    library.kumo_weights_get.argtypes = [_handle, ctypes.c_int32, _c_floats]
    library.kumo_weights_get.restype = None
    return library


library = _load()


def check(status: int) -> None:
    """Raises a KumoError for a status other than OK."""
    if status != OK:
        raise KumoError(library.kumo_error().decode(errors="replace"), library.kumo_exit_code(status))


def floats(address: int):
    """A pointer to float32 numbers at an address."""
    return ctypes.cast(address, _c_floats)
