"""The program of worker.command in worker_test.py for jobs with workers of both kinds: worker-0 is an example
of PyTorch ($EXAMPLE), worker-1 is kumo-worker ($KUMO_WORKER) with network.file."""
import os
import runpy
import sys

name = os.environ["KUMO_WORKER_NAME"]
if name == "worker-0":
    runpy.run_path(os.environ["EXAMPLE"], run_name="__main__")
    sys.exit()
settings = [*filter(None, os.environ["KUMO_SETTINGS"].splitlines()), "worker.command="]
os.execv(os.environ["KUMO_WORKER"], ["kumo-worker", os.environ["KUMO_EXPERIMENT"], "--name", name,
                                     *[word for setting in settings for word in ("--set", setting)]])
