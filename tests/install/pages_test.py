#!/usr/bin/env python3
"""The man pages and the completion that the build makes: groff has nothing to say of the pages, and a
real bash completes what the programs take.

  tests/install/pages_test.py --build DIR
"""
import argparse
import gzip
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

ARGUMENTS = argparse.ArgumentParser(description=__doc__)
ARGUMENTS.add_argument("--build", type=pathlib.Path, required=True)
PROGRAMS = ("kumo", "kumo-server", "kumo-worker", "kumo-data")


def run(*command):
    return subprocess.run(command, text=True, capture_output=True, check=True).stdout


class ManPagesTest(unittest.TestCase):
    def setUp(self):
        """Their texts, by name."""
        self.pages = {file.name.removesuffix(".1.gz"): gzip.decompress(file.read_bytes()).decode()
                      for file in (options.build / "share/man/man1").iterdir()}

    def test_every_program_and_command_has_one(self):
        kumo = options.build / "bin/kumo"
        commands = re.findall(r"^  (\w+) +\S", run(kumo, "--help"), re.M)
        self.assertIn("launch", commands)
        wanted = {*PROGRAMS, "kumo-data-digits", "kumo-data-scenes", *(f"kumo-{command}" for command in commands)}
        self.assertEqual(set(self.pages), wanted)

    def test_they_name_every_option_of_the_help(self):
        for name, page in self.pages.items():
            # The page of kumo-data is that of `kumo data`.
            command = name.split("-", 1) if name not in PROGRAMS[:3] else [name]
            if name in ("kumo-data-digits", "kumo-data-scenes"):
                command = ["kumo-data", name.rpartition("-")[2]]
            text = run(options.build / "bin" / command[0], *command[1:], "--help")
            for option in re.findall(r"^  (--[a-z-]+)", text, re.M):
                self.assertIn("\\fB" + option.replace("-", "\\-"), page, name)

    @unittest.skipUnless(shutil.which("groff"), "there is no groff to read the pages")
    def test_groff_warns_of_nothing(self):
        for name, page in self.pages.items():
            ended = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=page, text=True,
                                   capture_output=True)
            self.assertEqual((ended.returncode, ended.stderr), (0, ""), name)
            self.assertIn("User Commands", ended.stdout)


class CompletionTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "my.conf").touch()
        (self.folder / "mnt").mkdir()
        self.environment = {**os.environ, "PATH": f"{options.build / 'bin'}:{os.environ['PATH']}",
                            "HOME": scratch.name}

    def bash(self, script):
        file = options.build / "share/bash-completion/completions/kumo"
        ended = subprocess.run(["bash", "--norc", "-c", f"source {shlex.quote(str(file))}\n{script}"],
                               cwd=self.folder, env=self.environment, text=True, capture_output=True)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout.split()

    def complete(self, line):
        """What bash offers behind the line; words are split as Readline does, at blanks, = and :."""
        words = re.findall(r"[=:]+|[^\s=:]+", line)
        if not line or line[-1].isspace():
            words.append("")
        word = "" if words[-1] in ("=", ":") else words[-1]
        return self.bash(
            f"COMP_WORDS=({' '.join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}\n"
            f"COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}\n"
            f"_kumo {shlex.quote(words[0])} {shlex.quote(word)} ''\n"
            'printf "%s\\n" "${COMPREPLY[@]}"')

    def test_commands(self):
        self.assertEqual(self.complete("kumo la"), ["launch"])
        offered = self.complete("kumo ")
        self.assertIn("evaluate", offered)
        self.assertIn("new", offered)
        self.assertEqual(self.complete("kumo --v"), ["--version"])
        self.assertEqual(self.complete("kumo-data d"), ["digits"])
        self.assertEqual(self.complete("kumo-data sc"), ["scenes"])

    def test_options_of_the_command(self):
        self.assertEqual(self.complete("kumo launch x.conf --max"), ["--max-restarts"])
        self.assertEqual(self.complete("kumo check --max"), [])
        self.assertEqual(self.complete("kumo-worker x.conf --na"), ["--name"])
        self.assertEqual(self.complete("kumo-data digits --tr"), ["--train"])

    def test_each_option_of_each_help_is_completed(self):
        for command in (["kumo", "launch"], ["kumo", "status"], ["kumo-server"], ["kumo-data", "digits"]):
            text = run(options.build / "bin" / command[0], *command[1:], "--help")
            self.assertEqual(set(self.complete(" ".join([*command, "--"]))),
                             set(re.findall(r"^  (--[a-z-]+)", text, re.M)))

    def test_settings_and_their_values(self):
        self.assertEqual(self.complete("kumo launch x --set sync.mi"), ["sync.minibatch=", "sync.minibatch_parts="])
        self.assertEqual(self.complete("kumo launch x --set sync.mode="), ["gradient", "block", "async"])
        self.assertEqual(self.complete("kumo launch x --set sync.mode=g"), ["gradient"])
        self.assertEqual(self.complete("kumo launch x --set data.flip=t"), ["true"])
        self.assertEqual(self.complete("kumo-server x --set=sync.mode=b"), ["block"])
        keys = run(options.build / "bin/kumo", "options", "--keys").splitlines()
        self.assertEqual(self.complete("kumo check --set "), [key.split()[0] + "=" for key in keys])

    def test_devices_are_a_list(self):
        self.assertEqual(self.complete("kumo launch x --devices cp"), ["cpu"])
        self.assertEqual(self.complete("kumo launch x --devices cpu,cp"), ["cpu,cpu"])
        self.assertEqual(self.complete("kumo launch x --devices cpu,cuda:12"), ["12"])

    def test_experiments_and_files(self):
        self.assertEqual(self.complete("kumo launch m"),
                         ["mnist_lenet", "mnist_lenet_sync", "mnist_mlp", "mnt", "my.conf"])
        self.assertEqual(self.complete("kumo new mine --from mnist_m"), ["mnist_mlp"])
        self.assertEqual(self.complete("kumo evaluate my.conf --checkpoint m"), ["mnt"])
        self.assertEqual(self.complete("kumo evaluate my.conf --checkpoint b"), ["best"])
        self.assertEqual(self.complete("kumo launch my.conf --from m"), ["mnt"])
        self.assertEqual(self.complete("kumo export my.conf --out m"), ["mnt", "my.conf"])
        self.assertEqual(self.complete("kumo export my.conf --format s"), ["safetensors"])
        self.assertEqual(self.complete("kumo new m"), [])

    def test_a_terminal(self):
        """What a person sees who presses the tabulator key."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"],
                       {**self.environment, "PS1": "> ", "TERM": "dumb", "INPUTRC": "/dev/null"})
        shown = ""

        def until(text):
            nonlocal shown
            while text not in shown:
                ready, _, _ = select.select([terminal], [], [], 30)
                self.assertTrue(ready, f"no {text!r} in {shown!r}")
                shown += os.read(terminal, 4096).decode().replace("\a", "")

        def type_line(keys, result):
            nonlocal shown
            shown = ""
            os.write(terminal, keys.encode())
            until(result)
            os.write(terminal, b"\x15")  # rubs the line out

        try:
            file = options.build / "share/bash-completion/completions/kumo"
            os.write(terminal, f"source {file}; echo rea''dy\n".encode())
            until("ready\r\n")
            type_line("kumo lau\t", "kumo launch ")
            type_line("kumo launch mnist_m\t", "kumo launch mnist_mlp ")
            type_line("kumo launch x --set sync.mo\tg\t", "--set sync.mode=gradient ")
            type_line("kumo launch x --set sync.push_codec=one\t", "one")
            type_line("kumo launch x --devices cpu,cuda:1\t5\t", "cpu,cuda:15 ")
            os.write(terminal, b"exit\n")
        finally:
            os.close(terminal)
            os.waitpid(pid, 0)


if __name__ == "__main__":
    options, rest = ARGUMENTS.parse_known_args()
    options.build = options.build.resolve()
    ctest.run(rest)
