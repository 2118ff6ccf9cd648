"""A torch.nn.Module as Worker needs it. Imported only if the user's model is one."""
from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import types

import numpy as np
import torch

from . import _library as c
from ._arrays import overlapping
from ._copiers import Copiers


class TorchModel:
    """Parameters and buffers of a module, and the state of its optimizer.

    Tensors are exchanged as float32, in the order of module.named_parameters() (shared ones once), then
    of the floating-point buffers that state_dict() has. Buffers are averaged over the partitions; other
    buffers, such as num_batches_tracked, stay the process's own. Parameters that the optimizer does not
    step are frozen. Names are those of the module inside DataParallel and torch.compile.
    """

    how_to_give_gradients = "call zero_grad() before backward(), not after step()"
    how_to_step = "call optimizer.step()"
    unmatched: list[str] = []

    def __init__(self, module: torch.nn.Module, optimizer: torch.optim.Optimizer | None):
        self.module, self.optimizer = module, optimizer
        self._tensors = _tensors_of(module)
        self._copiers = Copiers()
        self._kinds: dict[str, int] = {}
        self._without_gradient: list[str] = []  # frozen parameters; the optimizer leaves out the others
        stepped = self._stepped_ids()
        for name, tensor in self._tensors.items():
            if not isinstance(tensor, torch.nn.Parameter):
                self._kinds[name] = c.STATISTICS
            elif not tensor.requires_grad:
                self._kinds[name] = c.FROZEN
                self._without_gradient.append(name)
            elif optimizer is not None and id(tensor) not in stepped:
                self._kinds[name] = c.FROZEN
            else:
                self._kinds[name] = c.UNDECAYED if tensor.ndim <= 1 else c.WEIGHTS
        own = {id(parameter) for parameter in module.parameters()}
        if optimizer is not None:
            others = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in own]
            if others:
                raise c.KumoError(f"the optimizer steps {len(others)} parameters that the model does not "
                                  f"have, one of shape {list(others[0].shape)}; make the optimizer of "
                                  "model.parameters(), after the model has its last form")
        if not any(kind in (c.WEIGHTS, c.UNDECAYED) for kind in self._kinds.values()):
            raise c.KumoError("the model has no parameter that requires a gradient" + (
                "" if optimizer is None else " and that the optimizer steps"))
        self._check_shared()
        self._states = _states_of(optimizer)
        # Some optimizers fill their state when they are made, and cannot step without it.
        self._first_state = {} if optimizer is None else {
            parameter: copy.deepcopy(state) for parameter, state in optimizer.state.items()}
        self._trains = self._servers_step = False  # in the block that is trained now
        self._first_entries: list[dict] | None = None  # of the optimizer's groups
        self._stepped_entries: set[tuple[int, str]] = set()  # groups and keys that optimizer.step() changes
        if optimizer is not None:
            self._wrap_step()

    def _check_shared(self) -> None:
        """Each of different tensors with the same memory would have a gradient of its own, or an average."""
        names = [name for name, tensor in self._tensors.items() if _range_of(tensor) is not None]
        for first, second in overlapping([_range_of(self._tensors[name]) for name in names]):
            one, other = names[first], names[second]
            if not any(self._kinds[name] in (c.WEIGHTS, c.UNDECAYED) for name in (one, other)):
                continue
            a, b = self._tensors[one], self._tensors[other]
            is_parameter = isinstance(b, torch.nn.Parameter)
            is_shared = is_parameter and a.shape == b.shape and a.data_ptr() == b.data_ptr()
            remedy = (f"share the parameter itself: {other} = {one}" if is_shared else
                      "give one of them a copy (tensor.clone())")
            raise c.KumoError(f"{'parameter' if is_parameter else 'buffer'} {other} shares memory with {one}, but is "
                              f"another tensor, so that changes of one of them would be lost; {remedy}")

    def _wrap_step(self) -> None:
        """Makes optimizer.step() leave weights and gradients alone in blocks that the servers step, and in
        other blocks note which entries of its groups it changes.

        An optimizer may change gradients too: torch's SGD of all tensors at once (foreach) adds Nesterov
        momentum to them. The wrapper stays until release(), and then too if a learning-rate scheduler has
        wrapped it."""
        step = self.optimizer.step

        @functools.wraps(step)
        def wrapper(optimizer, *arguments, **named):
            if self._servers_step:
                return self._finish_gradients(*arguments, **named)
            if not self._trains:
                return step(*arguments, **named)
            before = self._entries(_mark)
            result = step(*arguments, **named)
            for place, (old, new) in enumerate(zip(before, self._entries(_mark))):
                self._stepped_entries.update((place, key) for key, mark in new.items()
                                             if key not in old or not _is_same(old[key], mark))
            return result
        self.optimizer.step = types.MethodType(wrapper, self.optimizer)

        def unwrap():
            if getattr(self.optimizer.step, "__func__", None) is wrapper:
                self.optimizer.step = step
        self._unwrap_step = unwrap

    def _finish_gradients(self, closure=None, **_):
        """The parts of optimizer.step() that belong to the gradients: the closure computes them, and a fused
        optimizer divides them by the scale of a GradScaler."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if (scale := getattr(self.optimizer, "grad_scale", None)) is not None:
            for _, parameter in self._stepped():
                if parameter.grad is not None:
                    parameter.grad.div_(scale.to(parameter.grad.device))
        # Learning-rate schedulers read these, and warn if they step before the optimizer.
        self.optimizer._opt_called = True
        self.optimizer._step_count = getattr(self.optimizer, "_step_count", 0) + 1
        return loss

    def _entries(self, of) -> list[dict]:
        """of(value) of each entry of the optimizer's groups but their parameters."""
        return [{key: of(value) for key, value in group.items() if key != "params"}
                for group in self.optimizer.param_groups]

    def check(self) -> None:
        """Errors name the first change of the model since its Worker was made. Buffers may be replaced."""
        now = _tensors_of(self.module)
        for name in {**self._tensors, **now}:
            before, after = self._tensors.get(name), now.get(name)
            change = None
            if before is None:
                change = "is new"
            elif after is None:
                change = "is gone"
            elif isinstance(before, torch.nn.Parameter) and before is not after:
                change = "has been replaced"
            elif tuple(before.shape) != tuple(after.shape):
                change = f"is of shape {list(after.shape)} instead of {list(before.shape)}"
            if change is not None:
                raise c.KumoError(f"tensor {name} of the model {change} since the Worker was made; change "
                                  "the model before that")
        self._tensors = now
        for name in self._without_gradient:
            if now[name].requires_grad:
                raise c.KumoError(f"parameter {name} requires a gradient now, but {self.how_to_change(name)}")

    def how_to_change(self, name: str) -> str:
        """Why a frozen parameter must not change, and what to do."""
        if name in self._without_gradient:
            return ("is frozen: it did not require a gradient when the Worker was made; to train it later, "
                    "freeze it after that; to keep a moving average, make it a buffer, which is averaged over "
                    "the partitions")
        return ("is frozen: the optimizer that the Worker was given does not step it; give the Worker one "
                "optimizer of all trained parameters, or make it a buffer, which is averaged over the "
                "partitions")

    @property
    def device(self) -> str:
        return str(next(iter(self._tensors.values())).device)

    @property
    def optimizer_states(self) -> int:
        return len(self._states.arrays)

    @property
    def obstacle(self) -> str:
        """The reason why the optimizer's state cannot be carried; "" if it can."""
        if self._stepped_entries:
            _, key = min(self._stepped_entries)
            return f"its steps change {key} in the param_groups of {type(self.optimizer).__name__}"
        return self._states.obstacle

    @property
    def has_state(self) -> bool:
        """Whether something would be lost if no state were carried, as far as it is known."""
        if self._states.obstacle:
            return any(not isinstance(state, dict) or state for state in self.optimizer.state.values())
        return bool(self._states.arrays or self._stepped_entries)

    @property
    def has_zero_rates(self) -> bool:
        """Whether the optimizer's learning rates are all 0, as at the start of a warm-up."""
        return self.optimizer is not None and all(group.get("lr") == 0 for group in self.optimizer.param_groups)

    @property
    def renormalised(self) -> frozenset[str]:
        """Weights that each forward pass changes, and would change in the same way again."""
        of = {id(module.weight) for module in self.module.modules() if getattr(module, "max_norm", None) is not None}
        return frozenset(name for name, tensor in self._tensors.items() if id(tensor) in of)

    def tensors(self) -> list[tuple[str, tuple[int, ...], int]]:
        return [(name, tuple(tensor.shape), self._kinds[name]) for name, tensor in self._tensors.items()]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._tensors[name].shape)

    def is_narrow(self, name: str) -> bool:
        return self._tensors[name].element_size() < 4

    def begin_export(self, weights: list[str], gradients: list[str]) -> None:
        for name in weights:
            self._fetch(name, self._tensors[name])
        for name in gradients:
            if (gradient := self._tensors[name].grad) is not None:
                self._fetch(name, gradient)

    def export_weights(self, name: str) -> torch.Tensor:
        return self._on_host(name, self._tensors[name])

    def export_gradient(self, name: str) -> torch.Tensor | None:
        """None if the backward pass gave the parameter no gradient."""
        gradient = self._tensors[name].grad
        return None if gradient is None else self._on_host(name, gradient)

    def load(self, name: str, read) -> None:
        self._fill(name, self._tensors[name], read)

    def _fetch(self, key, tensor: torch.Tensor) -> None:
        self._copiers[tensor.device].fetch(key, tensor)

    def _on_host(self, key, tensor: torch.Tensor) -> torch.Tensor:
        return self._copiers[tensor.device].to_host(key, tensor)

    def _fill(self, key, tensor: torch.Tensor, read) -> None:
        self._copiers[tensor.device].load(key, tensor, read)

    def loaded(self) -> None:
        self._finish_copies()

    def _finish_copies(self) -> None:
        for copier in self._copiers.values():
            copier.finish()

    def has_values(self, name: str, values: np.ndarray) -> bool:
        own = self._tensors[name].detach().cpu()
        expected = torch.from_numpy(values).to(own.dtype)
        if own.element_size() == 1:  # torch does not compare these types
            own, expected = own.float(), expected.float()
        return torch.equal(own, expected) or bool(
            ((own == expected) | ((own != own) & (expected != expected))).all())  # NaN too

    def begin_block(self, read_state, steps_before: int, servers_step: bool = False) -> None:
        """read_state: None if the optimizer starts with its first state; else reads array i of a tensor.
        servers_step: whether the block's gradients are wanted, until end_training()."""
        self._trains, self._servers_step = True, servers_step
        self.module.zero_grad(set_to_none=True)
        if self.optimizer is None:
            return
        if self._first_entries is None:
            self._first_entries = self._entries(_copied)
        self._put_first_state_back()
        if read_state is None or steps_before == 0:
            return
        for name, parameter in self._stepped():
            first = self.optimizer.state.get(parameter, {})
            state = {**first, **self._states.counts_after(first, steps_before)}
            for i, (key, dtype) in enumerate(self._states.arrays.items()):
                state[key] = torch.zeros_like(parameter, dtype=dtype, memory_format=torch.preserve_format)
                self._fill((name, i), state[key], lambda address, i=i: read_state(name, i, address))
            if state:
                self.optimizer.state[parameter] = state
        self._finish_copies()

    def _put_first_state_back(self) -> None:
        self.optimizer.state.clear()
        for parameter, state in self._first_state.items():
            self.optimizer.state[parameter] = copy.deepcopy(state)
        for place, (group, first) in enumerate(zip(self.optimizer.param_groups, self._first_entries)):
            for key in [key for of, key in self._stepped_entries if of == place]:
                group.pop(key, None)
                if key in first:
                    group[key] = _copied(first[key])

    def end_training(self) -> None:
        """The program has the optimizer for itself, until the next block begins."""
        self._trains = self._servers_step = False

    def release(self) -> None:
        """The program has the optimizer for itself from now on, with the state that it had at first: what
        the last block has left is of one partition only."""
        self.end_training()
        self._copiers.clear()
        if self.optimizer is None:
            return
        if self._first_entries is not None:
            self._put_first_state_back()
            self._first_entries = None
        self._unwrap_step()

    def end_block(self, write_state, steps: int) -> None:
        """write_state(name, i, tensor): hands in array i of the optimizer's state. steps: minibatches behind
        it."""
        if self.optimizer is None:
            return
        kind = type(self.optimizer).__name__
        if self.obstacle:
            raise c.cannot_carry(self.obstacle)
        parameters = self._stepped_ids()
        for key in self.optimizer.state:
            if id(key) not in parameters:
                raise c.cannot_carry(f"{key!r} in the state of {kind} belongs to no parameter")
        arrays = {}
        for name, parameter in self._stepped():
            state = self.optimizer.state.get(parameter, {})
            for key, value in state.items():
                if obstacle := self._states.obstacle_of(key, value, parameter):
                    raise c.cannot_carry(f"parameter {name}: {key} in the state of {kind} {obstacle}")
            for i, key in enumerate(self._states.arrays):
                if (array := state.get(key)) is not None:
                    arrays[name, i] = array
        for place, array in arrays.items():
            self._fetch(place, array)
        for place, array in arrays.items():
            write_state(*place, self._on_host(place, array))

    def check_state(self, steps: int) -> None:
        """Nothing: before the next block has_state tells."""

    def _stepped(self):
        """Names and parameters that the optimizer steps."""
        of = self._stepped_ids()
        return [(name, p) for name, p in self._tensors.items()
                if id(p) in of and self._kinds[name] in (c.WEIGHTS, c.UNDECAYED)]

    def _stepped_ids(self) -> set[int]:
        groups = [] if self.optimizer is None else self.optimizer.param_groups
        return {id(parameter) for group in groups for parameter in group["params"]}

    @contextlib.contextmanager
    def evaluating(self):
        before = [(module, module.training) for module in self.module.modules()]
        self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            for module, training in before:
                module.training = training


def filled_in(module: torch.nn.Module, stored: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The state dict of a module with a checkpoint's tensors, and with the module's own values of tensors
    that are not exchanged."""
    exchanged = {id(tensor): name for name, tensor in _tensors_of(module).items()}
    filled: dict[str, torch.Tensor] = {}
    for key, tensor in module.state_dict(keep_vars=True).items():
        name = exchanged.get(id(tensor))
        if name is None:
            filled[key] = tensor.detach() if torch.is_tensor(tensor) else tensor
        elif name in stored:  # a scalar is stored as an array of one number
            filled[key] = stored[name] if tensor.ndim else stored[name].reshape(())
    unknown = stored.keys() - exchanged.values()
    return {**filled, **{name: stored[name] for name in sorted(unknown)}}


def _tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The tensors that are exchanged: parameters, then floating-point buffers."""
    module = _unwrapped(module)
    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in module.named_parameters():
        if not parameter.is_floating_point():
            remedy = ("keep its real and imaginary parts in a parameter (torch.view_as_real)"
                      if parameter.is_complex() else "make it a buffer (register_buffer)")
            raise c.KumoError(f"parameter {name} is of {parameter.dtype}, but float32 is exchanged; {remedy}")
        tensors[_plain(name)] = parameter
    stored = module.state_dict().keys()
    for name, buffer in module.named_buffers():
        if name in stored and buffer.is_floating_point():
            tensors[_plain(name)] = buffer
    return {name: tensor for name, tensor in tensors.items() if tensor.numel() > 0}


def _range_of(tensor: torch.Tensor) -> tuple[tuple[str, int], tuple[str, int]] | None:
    """The addresses between which a tensor lies, with its device. Of a tensor whose elements have gaps between them,
    its first element's; None if the addresses are unknown."""
    if tensor.layout != torch.strided:
        return None
    try:
        begin = tensor.data_ptr()
    except RuntimeError:
        return None
    if begin == 0:  # such as a tensor of the device meta
        return None
    reached = 1 + sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
    elements = reached if reached == tensor.numel() else 1
    device = str(tensor.device)
    return (device, begin), (device, begin + elements * tensor.element_size())


_COMPILED = "_orig_mod"  # the module inside one that torch.compile has made


def _unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    while True:
        if isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
            module = module.module
        elif _COMPILED in module._modules:
            module = module._modules[_COMPILED]
        else:
            return module


def _plain(name: str) -> str:
    """The name without the parts of compiled modules within the model."""
    return ".".join(part for part in name.split(".") if part != _COMPILED)


class _States:
    """State of an optimizer per parameter: arrays of the parameter's shape, and a step count.

    arrays: their names, and their types if these are not the parameter's.
    obstacle: why none of it can be carried, or "".
    """

    def __init__(self, arrays=None, counts=None, obstacle: str = ""):
        self.arrays: dict = arrays or {}
        self._counts = counts or {}
        self.obstacle = obstacle

    def counts_after(self, first: dict, steps: int) -> dict:
        """The counts `steps` steps after those of a parameter's first state."""
        def after(key, like):
            count = float(first.get(key, 0)) + steps
            return torch.full_like(like, count) if torch.is_tensor(like) else type(like)(count)
        return {key: after(key, like) for key, like in self._counts.items()}

    def obstacle_of(self, key: str, value, parameter: torch.Tensor) -> str:
        """Why an entry of a parameter's state is not carried; "" if it is, or is nothing."""
        if value is None or key in self._counts:
            return ""
        if key not in self.arrays:
            return "was not there after a trial step with a parameter of shape [2, 3]"
        dtype = self.arrays[key] or parameter.dtype
        if not torch.is_tensor(value) or value.shape != parameter.shape or value.dtype != dtype:
            return f"is not an array of the parameter's shape and of {dtype}"
        return ""


def _states_of(optimizer) -> _States:
    """The state that an optimizer has after a step, found by a step of one like it, with a small parameter
    for each of its groups."""
    if optimizer is None:
        return _States()
    kind = type(optimizer)
    groups = []
    for group in optimizer.param_groups:
        for parameter in group["params"][:1]:
            probe = torch.nn.Parameter(torch.zeros(2, 3, device=parameter.device, dtype=parameter.dtype))
            probe.grad = torch.zeros_like(probe)
            groups.append({**group, "params": [probe]})
    takes = inspect.signature(kind).parameters
    try:
        twin = kind(groups, **{key: value for key, value in optimizer.defaults.items() if key in takes})
        twin.step()
    except Exception as error:  # an optimizer of the user's, with other arguments
        return _States(obstacle=f"a {kind.__name__} like it cannot be made and stepped: {error}")
    arrays: dict[str, torch.dtype | None] = {}
    counts = {}
    for group in groups:
        probe = group["params"][0]
        for key, value in twin.state.get(probe, {}).items():
            if torch.is_tensor(value) and value.shape == probe.shape and value.is_floating_point():
                dtype = None if value.dtype == probe.dtype else value.dtype
                if arrays.setdefault(key, dtype) != dtype:
                    return _States(obstacle=f"{key} in the state of {kind.__name__} has other types than the "
                                            "parameters")
            elif key == "step" and (isinstance(value, (int, float)) or torch.is_tensor(value)):
                counts[key] = value
            elif value is not None:
                return _States(obstacle=f"{key} in the state of {kind.__name__} is neither an array of the "
                                        "parameter's shape nor a count of steps")
    return _States(arrays, counts)


def _mark(value):
    """Another one for an entry of the optimizer's groups that has changed."""
    if torch.is_tensor(value):
        return id(value), value._version
    return value if isinstance(value, (bool, int, float, str, tuple, type(None))) else repr(value)


def _is_same(mark, other) -> bool:
    return mark is other or mark == other  # NaN is not equal to itself


def _copied(value):
    if torch.is_tensor(value):
        return value.detach().clone()
    return copy.deepcopy(value) if isinstance(value, (list, dict)) else value


def total(means) -> float:
    """The sum of (mean, samples) pairs, whose means may be tensors on a device."""
    return float(sum((mean.detach().double() if torch.is_tensor(mean) else float(mean)) * samples
                     for mean, samples in means))
