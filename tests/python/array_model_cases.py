"""What a Worker does to numpy arrays, metrics and exceptions, without a job; worker_test.py runs it."""
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import ctest
import numpy as np

import kumo
from kumo import _library as c, _worker
from kumo._arrays import Arrays
from kumo._checkpoints import _write_npz
from kumo._step_checker import StepChecker
from kumo._worker import Work, _adapted, _declared


def fill(value, size):
    """As the library writes the values of a tensor."""
    return lambda *where: np.ctypeslib.as_array(c.floats(where[-1]), shape=(size,)).fill(value)


class ArrayModels(unittest.TestCase):
    def test_arrays_may_be_replaced_in_the_programs_mappings(self):
        weights = {"w": np.ones(3, np.float32), "scalar": np.ones((), np.float32)}
        momentum = {name: np.zeros_like(array) for name, array in weights.items()}
        model = kumo.ArrayModel(weights, states=[momentum])
        arrays = Arrays(model)
        states = {}
        for done in range(1, 3):
            arrays.check()
            arrays.load("w", fill(1, 3))
            arrays.load("scalar", fill(1, 1))
            arrays.begin_block(None if done == 1 else lambda name, i, address: fill(
                states[name, i].flat[0], states[name, i].size)(address), done - 1)
            self.assertEqual(model.gradients["w"].tolist(), [0, 0, 0])
            for name in weights:
                momentum[name] = momentum[name] + np.float32(1)
                weights[name] = weights[name] - momentum[name]
                model.gradients[name] = np.asarray([2.5] * 3 if name == "w" else 2.5, np.float64)
            model.gradients["w"].flags.writeable = False
            arrays.check()
            self.assertEqual(arrays.export_weights("w").tolist(), [1 - done] * 3)
            self.assertEqual(arrays.export_weights("scalar").tolist(), 1 - done)
            self.assertEqual(arrays.export_gradient("w").tolist(), [2.5] * 3)
            arrays.end_block(lambda name, i, values: states.update({(name, i): values.copy()}), done)
        # The worker gives a plain dict to an ArrayModel.
        plain = {"w": np.ones(3)}
        adapted = _adapted(plain, None)
        plain["w"] = plain["w"] * 2
        self.assertEqual(adapted.export_weights("w").tolist(), [2, 2, 2])

    def test_an_array_of_another_type_is_refused(self):
        locked = np.ones(3, np.float32)
        locked.flags.writeable = False
        for array, words in ((np.ones(3), "is of float64, but was of float32 when the Worker was made"),
                             (np.ones(4, np.float32), r"is of shape \[4\], but was of shape \[3\]"),
                             ([1, 2, 3], "is a builtins.list, but was a numpy array"),
                             (locked, "is read-only; give a copy")):
            weights, state = {"w": np.ones(3, np.float32)}, {"w": np.ones(3, np.float32)}
            arrays = Arrays(kumo.ArrayModel(weights, states=[state]))
            arrays.check()
            for what, mapping in (("tensor", weights), ("the state of", state)):
                before = mapping["w"]
                mapping["w"] = array
                with self.assertRaisesRegex(kumo.KumoError, f"{what} w {words}"):
                    arrays.check()
                mapping["w"] = before

    def test_gradients_of_another_type_keep_it(self):
        gradients = {"w": np.ones(3)}
        arrays = Arrays(kumo.ArrayModel({"w": np.ones(3, np.float32)}, gradients))
        own = gradients["w"]
        arrays.begin_block(None, 0)
        self.assertIs(arrays.model.gradients["w"], own)
        self.assertEqual(own.tolist(), [0, 0, 0])

    def test_a_mapping_that_cannot_be_changed_is_copied(self):
        weights = types.MappingProxyType({"w": np.ones(3, np.float32)})
        model = kumo.ArrayModel(weights)
        self.assertIs(model.weights["w"], weights["w"])

    def test_arrays_that_are_read_only_are_refused(self):
        whole = np.ones(3, np.float32)
        locked = whole.copy()
        locked.flags.writeable = False
        with tempfile.TemporaryDirectory() as folder:
            np.save(pathlib.Path(folder, "w.npy"), whole)
            mapped = np.load(pathlib.Path(folder, "w.npy"), mmap_mode="r")
            for tensors, words in (([{"w": mapped}], "tensor w is read-only"),
                                   ([{"w": locked}], "tensor w is read-only"),
                                   ([{"w": whole}, {"w": locked}], "gradient of w is read-only")):
                with self.assertRaisesRegex(kumo.KumoError, words + r"; give a copy \(array.copy\(\)\)"):
                    kumo.ArrayModel(*tensors)
        with self.assertRaisesRegex(kumo.KumoError, "state of w is read-only"):
            kumo.ArrayModel({"w": whole}, states=[{"w": locked}])
        model = kumo.ArrayModel({"w": whole})
        model.weights["w"] = locked
        with self.assertRaises(ValueError):
            Arrays(model).load("w", lambda address: None)


    def test_arrays_that_share_memory_are_refused(self):
        whole = np.zeros((4, 6), np.float32)
        other, apart = np.zeros((4, 6), np.float32), np.zeros(3, np.float32)
        for make, words in (
                (lambda: kumo.ArrayModel({"a": whole, "b": whole}), "tensor b shares memory with tensor a"),
                (lambda: kumo.ArrayModel({"a": whole, "c": apart, "b": whole[2:].T}, frozen=["a"]),
                 "tensor b shares memory with tensor a"),
                (lambda: kumo.ArrayModel({"a": whole[:, 1::2], "b": whole[1::3]}),
                 "tensor b shares memory with tensor a"),
                (lambda: kumo.ArrayModel({"a": whole, "c": apart}, {"a": other, "c": other[0, :3]}),
                 "the gradient of c shares memory with the gradient of a"),
                (lambda: kumo.ArrayModel({"a": whole}, {"a": whole}), "the gradient of a shares memory with tensor a"),
                (lambda: kumo.ArrayModel({"a": whole}, states=[{"a": other}, {"a": other}]),
                 "the state of a shares memory with the state of a")):
            with self.assertRaisesRegex(kumo.KumoError, f"{words}.*give one of them a copy"):
                make()
        with self.assertRaisesRegex(kumo.KumoError, "tensor b shares memory with tensor a"):
            _adapted({"a": whole, "b": whole}, None)
        empty = np.zeros((0, 6), np.float32)
        kumo.ArrayModel({"a": whole[:2], "b": whole[2:, ::2], "c": whole[2:, 1::2], "d": empty, "e": empty})
        kumo.ArrayModel({"a": whole, "b": whole, "c": apart}, frozen=["a", "b"])

    def test_a_dict_names_the_model_that_takes_gradients(self):
        self.assertIn("give a kumo.ArrayModel", _adapted({"w": np.ones(3)}, None).how_to_give_gradients)


def work_of(minibatch, worker=None):
    work = object.__new__(Work)
    work._work, work._worker = types.SimpleNamespace(minibatch=minibatch), worker
    work._means, work._added = {"loss": []}, 0
    return work


class Steps(unittest.TestCase):
    def worker(self):
        """A Worker without a job, whose library has ones as the installed values of its tensors."""
        worker = object.__new__(kumo.Worker)
        worker._model = _adapted({"w": np.ones(3, np.float32), "b": np.ones(2, np.float16)}, None)
        worker._trained, worker._shapes = ["w", "b"], {"w": (3,), "b": (2,)}
        worker._places, worker._reads = {"w": 0, "b": 1}, []
        worker._checker = StepChecker(worker._model, worker._trained, worker._is_changed)

        def get(place, address):
            worker._reads.append(place)
            fill(1, (3, 2)[place])(address)
        worker._get = get
        return worker

    def block(self, *, mode="weights", learning_rates=(0.5,), **named):
        return types.SimpleNamespace(mode=mode, learning_rates=learning_rates, **named)

    def test_a_block_that_moves_nothing_is_refused_until_one_has_moved(self):
        worker = self.worker()
        block = self.block(_place="block of round 0, partition 1", round=0, learning_rates=[0.0, *[0.5] * 8])
        with self.assertRaisesRegex(kumo.KumoError, "^block of round 0, partition 1: no trained weight has changed"):
            worker._checker.check(block)
        worker._checker.check(self.block(round=0, learning_rates=[0.0] * 9))
        worker._model.model.weights["b"][1] += 1
        worker._checker.check(block)
        worker._model.model.weights["b"][1] -= 1
        worker._reads.clear()
        worker._checker.check(block)
        self.assertEqual(worker._reads, [])

    def test_the_first_short_blocks_may_move_nothing(self):
        worker = self.worker()
        for number in range(8):
            worker._checker.check(self.block(round=number))
        with self.assertRaisesRegex(kumo.KumoError, "no trained weight has changed"):
            worker._checker.check(self.block(_place="x", round=8))

    def test_the_first_block_of_a_worker_that_comes_later_may_move_nothing(self):
        worker = self.worker()
        worker._checker.check(self.block(round=7, learning_rates=[0.5] * 50))

    def test_a_changed_weight_is_refused_in_the_first_blocks_of_gradient_mode(self):
        worker = self.worker()
        block = self.block(_place="block of round 2, partition 1", mode="gradients")
        worker._checker.check(block)
        worker._model.model.weights["b"][1] += 1
        with self.assertRaisesRegex(kumo.KumoError, "^block of round 2, partition 1: tensor b has been changed, but in "
                                                    "gradient mode the servers step"):
            worker._checker.check(block)
        worker._model.model.weights["b"][1] -= 1
        for _ in range(10):
            worker._reads.clear()
            worker._checker.check(block)
        self.assertEqual(worker._reads, [])


class Metrics(unittest.TestCase):
    def test_plain_names_say_a_direction_if_they_can(self):
        self.assertEqual(_declared(["loss", "loss_aux", "accuracy_top5", "top1"]), [
            kumo.Metric("loss"), kumo.Metric("loss_aux"),
            kumo.Metric("accuracy_top5", share=True, more_is_better=True),
            kumo.Metric("top1", more_is_better=None)])
        with self.assertRaisesRegex(kumo.KumoError, r"metrics=\['loss'\]"):
            kumo.Worker("job.conf", {"w": np.ones(3)}, train_samples=1, metrics="loss")

    def test_one_word_is_no_list_of_words(self):
        weights = {"w": np.ones(3, np.float32)}
        with self.assertRaisesRegex(kumo.KumoError, r"^settings = 'job.seed=1': give a list, settings=\['job.seed=1'\]"):
            kumo.Worker("job.conf", weights, train_samples=1, settings="job.seed=1")
        for what in ("undecayed", "statistics", "frozen"):
            for make in (kumo.ArrayModel, kumo.Tree):
                with self.assertRaisesRegex(kumo.KumoError, rf"^{what} = 'w': give a list, {what}=\['w'\]"):
                    make(weights, **{what: "w"})
        with self.assertRaisesRegex(kumo.KumoError, r"^states is a dict: give a list of them, states=\[\.\.\.\]"):
            kumo.ArrayModel(weights, states={"w": np.ones(3, np.float32)})

    def test_a_bad_loss_is_found_in_its_minibatch(self):
        work = work_of(8)
        work._means = {"loss": [(1.0, 4), (1.0, 4), (1.0, 4), (float("inf"), 4)]}  # two parts of each
        self.assertEqual(work._first_bad("loss"), "inf in minibatch 1")
        work._means = {"loss": [(np.ones((1, 1)), 8), (np.full(1, np.nan), 8)]}
        self.assertEqual(work._first_bad("loss"), "nan in minibatch 1")

    def test_a_reused_array_is_reported_with_each_of_its_values(self):
        worker = object.__new__(kumo.Worker)
        worker._pid = os.getpid()
        work = work_of(8, worker)
        for loss in (np.zeros(()), np.zeros((1, 1), np.float32)):
            work._means["loss"].clear()
            for value in (1, 2, 4):
                loss[...] = value
                work.add(loss=loss, samples=8)
            self.assertEqual(worker._total(work._means["loss"]), 7 * 8)


class Files(unittest.TestCase):
    def test_tensors_may_have_the_names_of_numpys_parameters(self):
        names = ["file", "allow_pickle", "args", "a.b"]
        arrays = {name: np.full((2, 3), i, np.float32) for i, name in enumerate(names)}
        stored = io.BytesIO()
        _write_npz(arrays, stored)
        stored.seek(0)
        loaded = np.load(stored)
        self.assertEqual(loaded.files, list(arrays))
        for name, array in arrays.items():
            np.testing.assert_array_equal(loaded[name], array)


class Signals(unittest.TestCase):
    def test_sigterm_ends_a_program_whose_loop_has_ended(self):
        class Ended:
            _pid, _takes_part = os.getpid(), False
        _worker._open[:] = [Ended()]
        try:
            with self.assertRaises(SystemExit) as raised:
                _worker._on_sigterm(signal.SIGTERM, None)
            self.assertEqual(raised.exception.code, 143)
        finally:
            _worker._open.clear()


class Opening(unittest.TestCase):
    def test_an_interrupt_while_a_worker_opens_leaves_none_behind(self):
        """Ctrl-C raises KeyboardInterrupt after the call of the library, or behind any later statement."""
        def after(function):
            def call(*arguments):
                result = function(*arguments)
                raise KeyboardInterrupt(result)
            return call

        with tempfile.TemporaryDirectory() as folder:
            experiment = pathlib.Path(folder, "job.conf")
            experiment.write_text(f"[worker]\ncommand = python3\n[output]\ndirectory = {folder}/out\n"
                                  f"[cluster]\nservers = ipc://{folder}/server\n")

            def opened():
                return kumo.Worker(experiment, {"w": np.ones(3, np.float32)}, train_samples=1)

            for owner, name in ((c.library, "kumo_worker_open"), (c.library, "kumo_worker_states"),
                                (_worker.atexit, "register")):
                with self.subTest(name), self.assertRaises(KeyboardInterrupt), \
                        unittest.mock.patch.object(owner, name, after(getattr(owner, name))):
                    opened()
                self.assertEqual(_worker._open, [])
                opened().close()


class Processes(unittest.TestCase):
    def ends(self, method, program):
        """The result of a script whose process starts another one by this method of multiprocessing."""
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "script.py")
            script.write_text(
                "import multiprocessing, sys, kumo, numpy\n"
                "def make():\n"
                "    kumo.Worker('no-such-file', {'w': numpy.zeros(3)}, train_samples=1)\n"
                "def start(target):\n"
                f"    child = multiprocessing.get_context('{method}').Process(target=target)\n"
                "    child.start()\n"
                "    child.join()\n"
                "    sys.exit(child.exitcode)\n" + program)
            return subprocess.run([sys.executable, script], capture_output=True, text=True)

    def test_a_process_that_imports_the_script_makes_no_worker(self):
        """As a DataLoader's processes do if a script has no guard."""
        for method in ("spawn", "forkserver"):
            done = self.ends(method, ("if multiprocessing.parent_process() is None and __name__ == '__main__':\n"
                                      "    start(print)\n"
                                      "make()\n"))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("if __name__ == \"__main__\":", done.stderr)
            self.assertNotIn("no-such-file: ", done.stderr)

    def test_a_process_that_the_script_starts_may_make_one(self):
        for method in ("spawn", "forkserver", "fork"):
            done = self.ends(method, "if __name__ == '__main__':\n    start(make)\n")
            self.assertIn("no-such-file: ", done.stderr)


class Exceptions(unittest.TestCase):
    def test_an_error_has_its_exit_code_after_the_programs_own_hooks(self):
        text = ("import atexit, sys, kumo\nfrom kumo._worker import _report_exceptions\n"
                "sys.excepthook = lambda *_: print('hook')\natexit.register(print, 'end')\n"
                "_report_exceptions()\n_report_exceptions()\nraise kumo.KumoError('why', exit_code=75)")
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                                  env={**os.environ, "KUMO_TERMINATION_LOG": str(log)})
            self.assertEqual((done.returncode, done.stdout, log.read_text()), (75, "hook\nend\n", "why\n"),
                             done.stderr)


if __name__ == "__main__":
    ctest.run()
