#!/usr/bin/env python3
"""Mean average precision of a trained detector on a set of Pascal VOC's layout, by `kumo evaluate` and by
torchmetrics (COCO's program underneath), from the detections of `kumo detect`.

  bench/torch_map.py out/bccd_ssd300_slim voc/bccd.tar.gz test [--set KEY=VALUE ...]

torchmetrics takes precisions at given recalls: at 10,001 of them for map, the area, and at 11 and 101 for
map_11 and map_coco. Where two objects overlap, COCO gives a detection the best object that is still free, and
Pascal VOC the best one, whether it is free or not, so that small differences may remain. Data without difficult
objects. Needs a Python that has torch, torchmetrics and pycocotools.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]


def layout(archive, name, folder):
    """Writes the images of a set into the folder: {file name: [(class name, box)]}."""
    with tarfile.open(archive) as tar:
        members = {member.name: member for member in tar}
        (listed,) = [member for path, member in members.items() if path.endswith(f"ImageSets/Main/{name}.txt")]
        root = listed.name.removesuffix(f"ImageSets/Main/{name}.txt")
        objects = {}
        for image in tar.extractfile(listed).read().decode().split():
            (picture,) = [path for path in members if path.startswith(f"{root}JPEGImages/{image}.")]
            file = pathlib.PurePath(picture).name
            (folder / file).write_bytes(tar.extractfile(members[picture]).read())
            tree = ElementTree.parse(tar.extractfile(members[f"{root}Annotations/{image}.xml"]))
            objects[file] = found = []
            for one in tree.iter("object"):
                left, top, right, bottom = (float(one.find("bndbox").find(side).text)
                                            for side in ("xmin", "ymin", "xmax", "ymax"))
                if left < right and top < bottom:
                    found.append((one.find("name").text.strip(), [left - 1, top - 1, right, bottom]))
    return objects


def torchmetrics_map(torch, detections, objects, overlaps, recalls):
    from torchmetrics.detection import MeanAveragePrecision
    metric = MeanAveragePrecision(iou_thresholds=overlaps, rec_thresholds=recalls,
                                  max_detection_thresholds=[1, 10, 1000], extended_summary=True)
    names = sorted({name for found in objects.values() for name, _ in found})
    number = {name: i for i, name in enumerate(names)}
    for image in detections:
        found, truth = image["objects"], objects[pathlib.PurePath(image["file"]).name]
        metric.update([{"boxes": torch.tensor([one["box"] for one in found]).reshape(-1, 4),
                        "scores": torch.tensor([one["score"] for one in found]),
                        "labels": torch.tensor([number[one["name"]] for one in found], dtype=torch.long)}],
                      [{"boxes": torch.tensor([box for _, box in truth]).reshape(-1, 4),
                        "labels": torch.tensor([number[name] for name, _ in truth], dtype=torch.long)}])
    # Overlaps x recalls x classes x sizes of objects (0: all) x largest numbers of detections.
    precisions = metric.compute()["precision"][..., 0, -1]
    return precisions[precisions >= 0].mean().item()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", help="folder of a job or a checkpoint, or an experiment")
    options.add_argument("archive", help="tar file with the layout of Pascal VOC")
    options.add_argument("name", help="the set: a file of ImageSets/Main, without .txt")
    options.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = options.parse_args()
    try:
        import torch
        import torchmetrics
    except ImportError as error:
        sys.exit(f"{error}: run this with a Python that has torch, torchmetrics and pycocotools")
    sets = [part for one in arguments.set for part in ("--set", one)]

    def kumo(*command):
        return subprocess.run([arguments.bin / "kumo", *command, *sets], check=True, stdout=subprocess.PIPE,
                              text=True).stdout
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        objects = layout(arguments.archive, arguments.name, folder)
        detections = json.loads(kumo("detect", arguments.model, folder, "--score", "0.01"))["images"]
    ours = json.loads(kumo("evaluate", arguments.model, "--json"))
    each = [.5 + .05 * i for i in range(10)]
    print(f"{len(detections)} images, torchmetrics {torchmetrics.__version__}")
    print(f"{'':10}{'Kumo':>12}{'torchmetrics':>14}")
    for key, overlaps, recalls in (("map", [.5], 10000), ("map_11", [.5], 10), ("map_coco", each, 100)):
        theirs = torchmetrics_map(torch, detections, objects, overlaps, [i / recalls for i in range(recalls + 1)])
        print(f"{key:10}{ours['validation/main/' + key]:12.6f}{theirs:14.6f}")


if __name__ == "__main__":
    main()
