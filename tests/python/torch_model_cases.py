"""What a Worker does to a torch module and its optimizer, without a job; worker_test.py runs it."""
import os
import pathlib
import random
import types
import unittest
import unittest.mock
import warnings

import ctest
import kumo
import numpy as np
import torch
from torch import nn

from kumo import KumoError, _library as c
from kumo._copiers import Copier, CudaCopier
from kumo._torch import TorchModel, filled_in
from kumo._worker import _adapted


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(3, 2)

    def forward(self, x):
        return self.head(self.norm(self.body(x)))


def kinds(model):
    return {name: kind for name, _, kind in model.tensors()}


def trained(module, optimizer, minibatches, between=lambda done: None):
    torch.manual_seed(1)
    for done in range(minibatches):
        between(done)
        optimizer.zero_grad()
        nn.functional.mse_loss(module(torch.randn(4, 3)), torch.zeros(4, 2)).backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in module.parameters()]


class Servers:
    """Keeps the state arrays of an optimizer, as servers do, in float32."""

    def __init__(self, model):
        self.model, self.arrays = model, {}

    def write(self, name, i, values):
        self.arrays[name, i] = values.numpy().copy()

    def read(self, name, i, address):
        stored = self.arrays.get((name, i), np.zeros(self.model.shape(name), np.float32))
        np.ctypeslib.as_array(c.floats(address), shape=(stored.size,))[...] = stored.ravel()


class Slowing(torch.optim.SGD):
    """Has state of its own in its groups, as optimizers without schedules have."""

    def __init__(self, parameters, lr, sum_of=lambda: 0.0):
        super().__init__(parameters, lr=lr)
        for group in self.param_groups:
            group["sum"] = sum_of()

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            group["count"] = group.get("count", 0) + 1
            group["sum"] += 1.0
            for parameter in group["params"]:
                parameter -= group["lr"] / (group["count"] + float(group["sum"])) * parameter.grad


class OfState(torch.optim.Optimizer):
    """Keeps `state_of(parameter)`, and moves a parameter by the sum of its array `sum`, if it has one."""

    def __init__(self, parameters, state_of, shared=None):
        super().__init__(parameters, {"state_of": state_of, "shared": shared})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            if group["shared"]:
                self.state[group["shared"]] = torch.zeros(())
            for parameter in group["params"]:
                state = self.state[parameter]
                if not state:
                    state.update(group["state_of"](parameter))
                if "sum" in state:
                    state["sum"] += parameter.grad
                    parameter -= 0.01 * state["sum"]


class Optimizers(unittest.TestCase):
    def carried(self, make, before):
        """The weights after six minibatches of one optimizer, and with its state carried after the third.
        before: minibatches that it has stepped when the Worker is made."""
        def start():
            torch.manual_seed(7)
            module = nn.Linear(3, 2)
            optimizer = make(module)
            trained(module, optimizer, before)
            return module, optimizer
        expected = trained(*start(), 6)
        parts, optimizer = start()
        model = TorchModel(parts, optimizer)
        servers = Servers(model)
        model.begin_block(servers.read, 0)

        def hand_over(done):
            if done == 3:
                model.end_block(servers.write, 3)
                model.begin_block(servers.read, 3)
        return expected, trained(parts, optimizer, 6, hand_over)

    def test_a_carried_state_is_that_of_uninterrupted_training(self):
        group = lambda module: [{"params": module.weight, "momentum": 0.9}, {"params": module.bias, "lr": 0.01}]
        for make in (lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
                     lambda m: torch.optim.SGD(group(m), lr=0.1),
                     lambda m: torch.optim.SGD(group(m)[::-1], lr=0.1),
                     lambda m: torch.optim.AdamW(m.parameters(), lr=0.01),
                     lambda m: torch.optim.Adam(m.parameters(), lr=0.01, amsgrad=True),
                     lambda m: torch.optim.RAdam(m.parameters(), lr=0.01),
                     lambda m: torch.optim.Adagrad(m.parameters(), lr=0.1, initial_accumulator_value=0.5),
                     lambda m: torch.optim.RMSprop(m.parameters(), lr=0.01)):
            for before in (0, 20):
                with self.subTest(optimizer=make(nn.Linear(3, 2)), before=before):
                    for expected, got in zip(*self.carried(make, before)):
                        torch.testing.assert_close(got, expected)

    def test_after_the_job_the_optimizer_is_as_before(self):
        module = nn.Linear(3, 2)
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
        trained(module, optimizer, 2)
        before = [(state["step"].clone(), state["exp_avg"].clone()) for state in optimizer.state.values()]
        step = optimizer.step
        for _ in range(2):
            model = TorchModel(module, optimizer)
            model.begin_block(None, 0)
            trained(module, optimizer, 3)
            model.release()
            after = [(state["step"], state["exp_avg"]) for state in optimizer.state.values()]
            for one, other in zip(before, after):
                self.assertTrue(all(torch.equal(*pair) for pair in zip(one, other)))
            self.assertIs(optimizer.step.__func__, step.__func__)
        unused = TorchModel(module, optimizer)
        trained(module, optimizer, 1)
        unused.release()
        self.assertEqual(optimizer.state[module.weight]["step"], 3)
        model.release()  # a Worker that is closed twice
        self.assertEqual(optimizer.state[module.weight]["step"], 3)

    def test_a_worker_that_is_not_opened_leaves_the_step_alone(self):
        module = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        step = optimizer.step
        with self.assertRaises(KumoError):
            kumo.Worker("no such file", module, optimizer, train_samples=8)
        self.assertIs(optimizer.step.__func__, step.__func__)

    if hasattr(torch, "set_default_device"):  # since torch 2.0
        def test_another_default_device_is_no_matter(self):
            module = nn.Linear(3, 2).to(torch.bfloat16)
            model = TorchModel(module, torch.optim.SGD(module.parameters(), lr=0.1))
            torch.set_default_device("meta")
            try:
                model.load("bias", lambda address: np.ctypeslib.as_array(
                    c.floats(address), shape=(2,)).__setitem__(slice(None), (1, 2)))
            finally:
                torch.set_default_device("cpu")
            self.assertEqual(module.bias.tolist(), [1, 2])

    def test_a_state_that_cannot_be_rebuilt_is_not_carried(self):
        for make, word in ((torch.optim.NAdam, "mu_product"), (torch.optim.ASGD, "eta"),
                           (torch.optim.LBFGS, "closure")):
            model = TorchModel(net := Net(), make(net.parameters()))
            self.assertEqual(model.optimizer_states, 0)
            self.assertIn(word, model.obstacle)
        self.assertEqual(TorchModel(net, torch.optim.SGD(net.parameters(), lr=0.1)).obstacle, "")

    def test_entries_of_groups_that_steps_change_begin_each_block_anew(self):
        for sum_of in (lambda: 0.0, lambda: torch.zeros(())):
            module = nn.Linear(3, 2)
            optimizer = Slowing(module.parameters(), 0.1, sum_of)
            optimizer.param_groups[0]["bound"] = float("nan")
            model = TorchModel(module, optimizer)
            self.assertFalse(model.has_state)
            group = optimizer.param_groups[0]
            start = {name: tensor.clone() for name, tensor in module.state_dict().items()}
            results = []
            for _ in range(2):
                module.load_state_dict(start)
                model.begin_block(None, 0)
                group["weight_decay"] += 0.25
                results.append(trained(module, optimizer, 3))
                self.assertEqual((group["count"], float(group["sum"])), (3, 3.0))
            for one, other in zip(*results):
                self.assertTrue(torch.equal(one, other))
            self.assertEqual(group["weight_decay"], 0.5)  # the program's own
            self.assertEqual({key for _, key in model._stepped_entries}, {"count", "sum"})
            self.assertTrue(model.has_state)
            with self.assertRaisesRegex(KumoError, "its steps change count in the param_groups of Slowing"):
                model.end_block(None, 3)

    def test_state_that_a_trial_step_does_not_show_is_not_carried(self):
        zeros = torch.zeros_like
        for state_of, shared, words in (
                (lambda p: {"sum": zeros(p)} if p.ndim > 1 else {"other": zeros(p)}, None,
                 "parameter bias: other in the state of OfState was not there after a trial step"),
                (lambda p: {"sum": zeros(p), "row": None if p.shape == (2, 3) else p.sum()}, None,
                 "parameter bias: row in the state of OfState was not there"),
                (lambda p: {"sum": zeros(p) if p.ndim > 1 else zeros(p).double()}, None,
                 "parameter bias: sum .* is not an array of the parameter's shape and of torch.float32"),
                (lambda p: {"sum": zeros(p)}, "k", "'k' in the state of OfState belongs to no parameter")):
            module = nn.Linear(3, 2)
            optimizer = OfState(module.parameters(), state_of, shared)
            model = TorchModel(module, optimizer)
            self.assertEqual((model.optimizer_states, model.obstacle), (1, ""))
            model.begin_block(None, 0)
            trained(module, optimizer, 1)
            with self.assertRaisesRegex(KumoError, words + ".* take another optimizer, or block.reset_local_state"):
                model.end_block(Servers(model).write, 1)

    def test_state_that_nobody_can_probe_counts_if_there_is_any(self):
        class Own(OfState):
            def __init__(self, module, state_of):
                super().__init__(module.parameters(), state_of)
        for state_of, has_state in ((lambda p: {}, False), (lambda p: {"sum": torch.zeros_like(p)}, True)):
            module = nn.Linear(3, 2)
            optimizer = Own(module, state_of)
            model = TorchModel(module, optimizer)
            self.assertIn("a Own like it cannot be made and stepped", model.obstacle)
            self.assertFalse(model.has_state)
            model.begin_block(None, 0)
            trained(module, optimizer, 1)
            self.assertEqual(model.has_state, has_state)

    def test_a_carried_array_keeps_its_type(self):
        module = nn.Linear(3, 2).to(torch.bfloat16)
        optimizer = OfState(module.parameters(), lambda p: {"sum": torch.zeros_like(p, dtype=torch.float32)})
        model = TorchModel(module, optimizer)
        servers = Servers(model)
        model.begin_block(None, 0)
        for parameter in module.parameters():
            parameter.grad = torch.full_like(parameter, 1 / 3)
        for steps in (1, 2):
            optimizer.step()
            model.end_block(servers.write, steps)
            sums = [optimizer.state[parameter]["sum"] for parameter in module.parameters()]
            model.begin_block(servers.read, steps)
            for parameter, before in zip(module.parameters(), sums):
                self.assertTrue(torch.equal(optimizer.state[parameter]["sum"], before))
                self.assertEqual(optimizer.state[parameter]["sum"].dtype, torch.float32)
                parameter.grad = torch.full_like(parameter, 1 / 3)

    def test_each_block_begins_with_the_first_state(self):
        module = nn.Linear(3, 2)
        optimizer = torch.optim.Adagrad(module.parameters(), lr=0.1, initial_accumulator_value=0.5)
        model = TorchModel(module, optimizer)
        start = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        results = []
        for _ in range(2):
            module.load_state_dict(start)
            model.begin_block(None, 0)
            results.append(trained(module, optimizer, 3))
        for one, other in zip(*results):
            self.assertTrue(torch.equal(one, other))

    def test_parameters_that_the_optimizer_leaves_out_are_frozen(self):
        module = Net()
        model = TorchModel(module, torch.optim.SGD(module.head.parameters(), lr=0.1))
        self.assertEqual(kinds(model), {
            "body.weight": c.FROZEN, "body.bias": c.FROZEN, "norm.weight": c.FROZEN, "norm.bias": c.FROZEN,
            "head.weight": c.WEIGHTS, "head.bias": c.UNDECAYED,
            "norm.running_mean": c.STATISTICS, "norm.running_var": c.STATISTICS})
        self.assertEqual(kinds(TorchModel(module, None))["body.weight"], c.WEIGHTS)
        self.assertIn("one optimizer of all trained parameters", model.how_to_change("body.weight"))

    def test_rates_of_zero_are_known(self):
        optimizer = torch.optim.SGD([{"params": (module := nn.Linear(3, 2)).weight}, {"params": module.bias}], lr=0.1)
        model = TorchModel(module, optimizer)
        for group in optimizer.param_groups:
            self.assertFalse(model.has_zero_rates)
            group["lr"] = 0.0
        self.assertTrue(model.has_zero_rates)
        self.assertFalse(TorchModel(module, None).has_zero_rates)

    def test_a_parameter_may_not_be_unfrozen(self):
        module = Net()
        module.body.requires_grad_(False)
        model = TorchModel(module, torch.optim.SGD(module.parameters(), lr=0.1))
        module.head.requires_grad_(False)
        model.check()
        module.head.requires_grad_(True)
        module.body.bias.requires_grad_(True)
        with self.assertRaisesRegex(KumoError, "parameter body.bias requires a gradient now, but is frozen"):
            model.check()

    def test_a_change_of_a_frozen_parameter_is_seen(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float64):
            module = nn.Linear(3, 2).to(dtype)
            model = TorchModel(module, torch.optim.SGD([module.bias], lr=0.1))
            values = np.array([[0.1, -0.2, 0.3], [0, np.nan, 1e-40]], np.float32)
            model.load("weight", lambda address: np.ctypeslib.as_array(
                c.floats(address), shape=(2, 3)).__setitem__(slice(None), values))
            self.assertTrue(model.has_values("weight", values))
            module.weight.data[0, 0] *= 1.01  # which torch's version counter does not see
            self.assertFalse(model.has_values("weight", values))

    def test_a_moving_average_may_live_in_buffers(self):
        """By the lines of docs/pytorch.md."""
        module = Net()
        module.target = Net()
        for part in module.target.modules():
            for name, parameter in list(part.named_parameters(recurse=False)):
                delattr(part, name)
                part.register_buffer(name, parameter.detach().clone())
        model = TorchModel(module, torch.optim.SGD(module.parameters(), lr=0.1))
        self.assertEqual({kind for name, kind in kinds(model).items() if name.startswith("target.")},
                         {c.STATISTICS})
        self.assertEqual(module.target(torch.ones(2, 3)).shape, (2, 2))
        self.assertEqual(module.target.state_dict().keys(), Net().state_dict().keys())


class ServersStep(unittest.TestCase):
    def gradient(self, make, use=lambda optimizer: optimizer.step()):
        """The weights and gradients of a block that the servers step, and what they are without the step."""
        torch.manual_seed(7)
        module = nn.Linear(3, 2)
        optimizer = make(module.parameters())
        model = TorchModel(module, optimizer)
        model.begin_block(None, 0, servers_step=True)
        before = [parameter.detach().clone() for parameter in module.parameters()]
        module(torch.ones(4, 3)).square().sum().backward()
        gradients = [parameter.grad.clone() for parameter in module.parameters()]
        use(optimizer)
        model.end_training()
        after = [parameter.detach().clone() for parameter in module.parameters()]
        return model, (before, gradients), (after, [model.export_gradient(name) for name in ("weight", "bias")])

    def assert_equal(self, expected, got):
        for one, other in zip(sum(expected, []), sum(got, [])):
            self.assertTrue(torch.equal(one, other), (one, other))

    def test_a_step_changes_neither_weights_nor_gradients(self):
        for make in (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, foreach=True),
                     lambda p: torch.optim.AdamW(p, lr=0.1, maximize=True)):
            model, expected, got = self.gradient(make)
            self.assert_equal(expected, got)
            self.assertFalse(model.optimizer.state)
            # Blocks of block mode are stepped again, and so is what comes after the job.
            for begin in (lambda: model.begin_block(None, 0), lambda: None):
                begin()
                before = model.module.weight.detach().clone()
                model.module(torch.ones(4, 3)).sum().backward()
                model.optimizer.step()
                self.assertFalse(torch.equal(before, model.module.weight))

    def test_a_closure_computes_the_gradient_once(self):
        calls = []

        def use(optimizer):
            def closure():
                calls.append(torch.is_grad_enabled())
                return 5.0
            with torch.no_grad():
                calls.append(optimizer.step(closure))
                calls.append(optimizer.step(closure=closure))
        _, expected, got = self.gradient(torch.optim.LBFGS, use)
        self.assert_equal(expected, got)
        self.assertEqual(calls, [True, 5.0, True, 5.0])

    def test_an_optimizer_that_unscales_gradients_itself_still_does(self):
        def use(optimizer):  # as a GradScaler steps a fused optimizer
            optimizer.grad_scale, optimizer.found_inf = torch.tensor(4.0), torch.tensor(0.0)
            optimizer.step()
            del optimizer.grad_scale, optimizer.found_inf
        _, (weights, gradients), got = self.gradient(lambda p: torch.optim.Adam(p), use)
        self.assert_equal((weights, [gradient / 4 for gradient in gradients]), got)

    def test_schedulers_wrap_steps_before_and_after(self):
        def schedule(optimizer):
            return torch.optim.lr_scheduler.StepLR(optimizer, 1)

        def make(parameters):
            optimizer = torch.optim.SGD(parameters, lr=0.1)
            schedulers.append(schedule(optimizer))
            return optimizer

        def use(optimizer):
            schedulers.append(schedule(optimizer))
            optimizer.step()
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for scheduler in schedulers:
                    scheduler.step()
        schedulers = []
        _, expected, got = self.gradient(make, use)
        self.assert_equal(expected, got)


class Accumulation(unittest.TestCase):
    def test_parts_of_a_minibatch_have_its_mean_gradient(self):
        """By the lines of docs/pytorch.md, with a last minibatch of fewer samples than parts."""
        text = (pathlib.Path(__file__).resolve().parents[2] / "docs/pytorch.md").read_text()
        lines = next(code for code in text.split("```python\n")[1:] if "array_split" in code.split("```")[0])
        torch.manual_seed(1)
        train = torch.utils.data.TensorDataset(torch.randn(11, 3), torch.randn(11, 2))
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loss_function = nn.functional.mse_loss
        for indices in np.arange(8), np.arange(8, 11):
            loss = loss_function(model(train[indices][0]), train[indices][1])
            model.zero_grad()
            loss.backward()
            expected = [parameter.detach() - 0.1 * parameter.grad for parameter in model.parameters()]
            added = []
            block = types.SimpleNamespace(minibatches=lambda: [indices],
                                          add=lambda loss, samples: added.append((loss.item(), samples)))
            exec(lines.split("```")[0], {"block": block, "optimizer": optimizer, "train": train, "model": model,
                                         "loss_function": loss_function, "numpy": np})
            torch.testing.assert_close(list(model.parameters()), expected, check_dtype=False)
            self.assertEqual(sum(samples for _, samples in added), len(indices))
            self.assertAlmostEqual(sum(mean * samples for mean, samples in added) / len(indices), loss.item(), 5)


class Metrics(unittest.TestCase):
    def test_a_reused_tensor_is_reported_with_each_of_its_values(self):
        worker = object.__new__(kumo.Worker)
        worker._pid = os.getpid()
        work = object.__new__(kumo.Work)
        work._worker, work._means, work._added = worker, {"loss": []}, 0
        loss = torch.zeros((), requires_grad=True)
        for value in (1, 2, 4):
            loss.data.fill_(value)
            work.add(loss=loss, samples=8)
        self.assertEqual(worker._total(work._means["loss"]), 7 * 8)
        self.assertNotIsInstance(work._means["loss"][0][0], torch.Tensor)  # nor the graph behind it

    def test_no_tensor_of_the_cpu_is_kept_and_no_digit_is_lost(self):
        worker = object.__new__(kumo.Worker)
        worker._pid = os.getpid()
        work = object.__new__(kumo.Work)
        work._worker, work._means, work._added = worker, {"loss": []}, 0
        values = [1 / 3, 1 + 1e-12, 1e30]
        for value in values:
            work.add(loss=torch.tensor(value, dtype=torch.float64), samples=8)
        self.assertEqual([type(mean) for mean, _ in work._means["loss"]], [float] * 3)
        self.assertEqual(worker._total(work._means["loss"]), sum(value * 8 for value in values))


class Stream:
    """A stand-in for torch.cuda.Stream whose work waits until it is asked for, as that of a slow device may."""
    current: "Stream"

    def __init__(self, device=None):
        self.work, self.done = [], 0

    def run(self, until=None):
        while self.done < (len(self.work) if until is None else until):
            self.done += 1
            self.work[self.done - 1]()

    synchronize = run

    def wait_stream(self, other):
        until = len(other.work)
        self.work.append(lambda: other.run(until))


class Event:
    end = None

    def record(self, stream):
        self.end = lambda until=len(stream.work): stream.run(until)

    def synchronize(self):
        if self.end:
            self.end()


class OnDevice(torch.Tensor):
    def copy_(self, source, non_blocking=False):
        assert non_blocking
        Stream.current.work.append(lambda: torch.Tensor.copy_(self, source))


class CudaOrder(unittest.TestCase):
    """The order of the copies, with stand-ins for torch.cuda: no device is needed."""

    def setUp(self):
        self.program = Stream.current = Stream()
        empty = torch.empty
        current = lambda stream: unittest.mock.patch.object(Stream, "current", stream)
        for name, stand_in in {"cuda.Stream": Stream, "cuda.Event": Event, "cuda.stream": current,
                               "cuda.current_stream": lambda device: Stream.current,
                               "empty": lambda shape, **_: empty(shape).fill_(-1).as_subclass(OnDevice)}.items():
            patch = unittest.mock.patch(f"torch.{name}", stand_in)
            patch.start()
            self.addCleanup(patch.stop)
        self.copier = CudaCopier(torch.device("cuda"))
        self.tensors = {key: torch.zeros(3).as_subclass(OnDevice) for key in "ab"}

    def load(self, key, value):
        self.copier.load(key, self.tensors[key], lambda address: np.ctypeslib.as_array(
            c.floats(address), shape=(3,)).fill(value))

    def test_a_tensor_is_read_after_the_steps_before(self):
        for value in 1, 2:
            for tensor in self.tensors.values():
                self.program.work.append(lambda tensor=tensor, value=value: tensor.fill_(value))
            for key, tensor in self.tensors.items():
                self.copier.fetch(key, tensor)
            for key, tensor in self.tensors.items():
                self.assertEqual(self.copier.to_host(key, tensor).tolist(), [value] * 3)

    def test_later_steps_change_no_tensor_that_is_being_read(self):
        self.copier.fetch("a", self.tensors["a"])
        self.program.work.append(lambda: self.tensors["a"].fill_(7))  # as memory that is used again
        self.program.run()
        self.assertEqual(self.copier.to_host("a", self.tensors["a"]).tolist(), [0] * 3)

    def test_later_steps_see_what_was_loaded_and_earlier_ones_do_not(self):
        seen = []
        for value in 1, 2, 3:
            self.program.work.append(lambda: seen.append(self.tensors["a"][0].item()))
            self.load("a", value)
        self.program.work.append(lambda: seen.append(self.tensors["a"][0].item()))
        self.program.run()
        self.assertEqual(seen, [0, 1, 2, 3])

    def test_every_stream_sees_what_was_loaded_when_the_copies_are_finished(self):
        self.load("a", 5)
        self.copier.finish()
        self.assertEqual(torch.Tensor(self.tensors["a"]).tolist(), [5] * 3)

    def test_numbers_are_returned_once(self):
        self.copier.fetch("a", self.tensors["a"])
        self.copier.to_host("a", self.tensors["a"])
        self.program.work.append(lambda: self.tensors["a"].fill_(6))
        self.assertEqual(self.copier.to_host("a", self.tensors["a"]).tolist(), [6] * 3)

    def test_numbers_that_a_dropped_block_has_fetched_are_not_returned(self):
        self.copier.fetch("a", self.tensors["a"])
        self.load("a", 5)
        self.program.work.append(lambda: self.tensors["a"].fill_(6))
        self.assertEqual(self.copier.to_host("a", self.tensors["a"]).tolist(), [6] * 3)


class Fetched(unittest.TestCase):
    def test_what_is_fetched_is_what_is_exported(self):
        """A device returns what was fetched under a key, whatever to_host() is given."""
        case = self

        class Recorder(Copier):
            def __init__(self):
                self.fetched = {}

            def fetch(self, key, tensor):
                self.fetched[key] = tensor.data_ptr()

            def to_host(self, key, tensor):
                case.assertEqual(self.fetched.pop(key), tensor.data_ptr(), key)
                return super().to_host(key, tensor)

        module = Net()
        model = TorchModel(module, None)
        recorder = model._copiers[torch.device("cpu")] = Recorder()
        names = [name for name, _, _ in model.tensors()]
        for tensor in module.parameters():
            tensor.grad = torch.ones_like(tensor)
        trained = [name for name in names if model._tensors[name].grad is not None]
        kept = [name for name in names if name not in trained]
        self.assertTrue(trained and kept)
        for weights, gradients in ((names, []), (kept, trained)):
            model.begin_export(weights, gradients)
            for name in weights:
                model.export_weights(name)
            for name in gradients:
                model.export_gradient(name)
            self.assertFalse(recorder.fetched)


class Seeds(unittest.TestCase):
    def test_torch_is_seeded_for_each_kind_of_model(self):
        """A program may draw by torch for a model of arrays."""
        def drawn(model, seed):
            worker = object.__new__(kumo.Worker)
            worker._model, worker._seeds, worker._states = _adapted(model, None), True, 0
            worker._load = worker._note_rounding = lambda: None
            worker._begin(None, c.Work(steps=1, restarts=1, seed=seed))
            return torch.rand(1).item(), np.random.rand(), random.random()
        for model in (nn.Linear(3, 2), kumo.ArrayModel({"w": np.ones(3)})):
            one, two, again = drawn(model, 2**63 + 7), drawn(model, 2**33), drawn(model, 2**63 + 7)
            self.assertEqual(one, again)
            self.assertTrue(all(a != b for a, b in zip(one, two)), (one, two))


class Modules(unittest.TestCase):
    def test_weights_that_a_forward_pass_renormalises_are_known(self):
        embedding = nn.Embedding(4, 3, max_norm=1.0)
        model = TorchModel(nn.Sequential(embedding, nn.Linear(3, 2)), None)
        self.assertEqual(model.renormalised, {"0.weight"})
        before = embedding.weight.detach().mul_(10).clone()
        embedding(torch.arange(4))
        self.assertFalse(model.has_values("0.weight", before.numpy()))

    def test_modes_are_those_of_the_program(self):
        module = Net()
        module.norm.eval()
        model = TorchModel(module, None)
        before = [one.training for one in module.modules()]
        model.begin_block(None, 0)
        self.assertEqual(before, [one.training for one in module.modules()])
        with self.assertRaises(OSError), model.evaluating():
            self.assertFalse(module.training or module.head.training)
            raise OSError
        self.assertEqual(before, [one.training for one in module.modules()])

    def test_wrappers_leave_no_trace_in_names(self):
        class Compiled(nn.Module):  # as torch.compile makes it
            def __init__(self, module):
                super().__init__()
                self._orig_mod = module
                self.forward = module.forward

        names = [name for name, _, _ in TorchModel(Net(), None).tensors()]
        partly = Net()
        partly.body, partly.norm = Compiled(partly.body), Compiled(partly.norm)
        wrapped = [Compiled(Net()), nn.DataParallel(Net()), Compiled(nn.DataParallel(Net())), partly]
        for module in wrapped:
            self.assertEqual([name for name, _, _ in TorchModel(module, None).tensors()], names)
            stored = {name: torch.full(shape, 2.0) for name, shape, _ in TorchModel(module, None).tensors()}
            module.load_state_dict(filled_in(module, stored))
            self.assertTrue(all((tensor == 2).all() for tensor in module.parameters()))

    def test_a_state_dict_is_filled_in(self):
        module = Net()
        module.head.weight = module.body.weight = nn.Parameter(torch.ones(3, 3))  # shared
        module.head.bias = module.body.bias
        module.scale = nn.Parameter(torch.ones(()))
        module.norm.num_batches_tracked += 5
        stored = {name: torch.full(shape or (1,), 3.0) for name, shape, _ in TorchModel(module, None).tensors()}
        module.load_state_dict(filled_in(module, stored))
        self.assertEqual((module.scale.item(), module.norm.num_batches_tracked.item()), (3, 5))
        self.assertTrue((module.head.weight == 3).all() and (module.norm.running_var == 3).all())
        with self.assertRaisesRegex(RuntimeError, "Unexpected key.*tail.*|Missing key.*scale"):
            del stored["scale"]
            module.load_state_dict(filled_in(module, {**stored, "tail": torch.ones(1)}))

    def test_parameters_of_other_types_are_refused(self):
        module = nn.Linear(2, 2)
        module.wave = nn.Parameter(torch.zeros(2, dtype=torch.complex64))
        with self.assertRaisesRegex(KumoError, "wave is of torch.complex64.*view_as_real"):
            TorchModel(module, None)
        module.wave = nn.Parameter(torch.zeros(2, dtype=torch.int64), requires_grad=False)
        with self.assertRaisesRegex(KumoError, "wave is of torch.int64.*register_buffer"):
            TorchModel(module, None)

    def test_different_parameters_that_share_memory_are_refused(self):
        def coder():
            return nn.ModuleDict({"encoder": nn.Linear(3, 3), "decoder": nn.Linear(3, 3)})
        module = coder()
        module["decoder"].weight.data = module["encoder"].weight.data
        with self.assertRaisesRegex(KumoError, "parameter decoder.weight shares memory with encoder.weight.*; share "
                                               "the parameter itself: decoder.weight = encoder.weight$"):
            TorchModel(module, None)
        module["decoder"].weight = module["encoder"].weight
        TorchModel(module, None)
        module["decoder"].register_buffer("old", module["encoder"].weight.data)
        with self.assertRaisesRegex(KumoError, r"buffer decoder.old shares memory with encoder.weight.*clone\(\)"):
            TorchModel(module, None)
        # Parts of one array that do not overlap, in any order of their elements.
        module, flat = coder(), torch.zeros(4, 3)
        module["encoder"].weight.data, module["decoder"].weight.data = flat[1:].t(), module["encoder"].weight.data
        module["encoder"].bias.data = flat[0]
        TorchModel(module, None)
        module["encoder"].bias.data = flat[3]
        with self.assertRaisesRegex(KumoError, r"encoder.bias shares memory with encoder.weight.*clone\(\)"):
            TorchModel(module, None)
        module["encoder"].weight.data, module["encoder"].bias.data = flat.t()[:, :3], flat.t()[:, 3]
        TorchModel(module, None)
        # What never changes may be shared.
        module = coder()
        module["decoder"].weight.data = module["encoder"].weight.data
        module["decoder"].weight.requires_grad_(False)
        module["encoder"].weight.requires_grad_(False)
        TorchModel(module, None)

    def test_the_first_change_of_a_model_is_named(self):
        module = Net()
        model = TorchModel(module, None)
        module.body.bias = nn.Parameter(torch.zeros(3))
        module.head = nn.Linear(3, 5)
        with self.assertRaisesRegex(KumoError, "tensor body.bias of the model has been replaced"):
            model.check()


if __name__ == "__main__":
    ctest.run()
