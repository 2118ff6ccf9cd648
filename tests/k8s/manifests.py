"""Kustomize's output, as the tests of k8s/ read it."""
import pathlib
import re
import shutil
import subprocess
import os

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLDEST = (1, 27)  # whose Kustomize knows all that k8s/ uses


def find_kubectl():
    """(kubectl, "") or ("", why there is none)."""
    kubectl = os.environ.get("KUMO_KUBECTL") or shutil.which("kubectl")
    if not kubectl:
        return "", "kubectl is missing (KUMO_KUBECTL names one)"
    said = subprocess.run([kubectl, "version", "--client"], capture_output=True, text=True).stdout
    found = re.search(r'(?:Client Version: v|GitVersion:"v)(\d+)\.(\d+)', said)
    version = tuple(map(int, found.groups())) if found else (0, 0)
    if version < OLDEST:
        return "", f"{kubectl} is older than {OLDEST[0]}.{OLDEST[1]}"
    return kubectl, ""


def render(kubectl, folder):
    """The objects that a folder with a kustomization.yaml stands for."""
    ended = subprocess.run([kubectl, "kustomize", folder], capture_output=True, text=True)
    if ended.returncode != 0:
        raise AssertionError(f"kubectl kustomize {folder}: {ended.stderr}")
    if "Warning" in ended.stderr:
        raise AssertionError(f"kubectl kustomize {folder}: {ended.stderr}")
    return [one for one in yaml.safe_load_all(ended.stdout) if one]


def named(objects, kind, name):
    """The one object of that kind whose name ends with `name`."""
    found = [one for one in objects
             if one["kind"] == kind and re.fullmatch(rf"(.*-)?{name}", one["metadata"]["name"])]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects {kind} {name}")
    return found[0]


def pod_templates(objects):
    """(object, pod template) of whatever makes pods."""
    return [(one, one["spec"]["template"]) for one in objects
            if one["kind"] in ("StatefulSet", "Job", "Deployment", "DaemonSet")]


def containers_of(template):
    return template["spec"].get("initContainers", []) + template["spec"]["containers"]
