# Copyright 2026, the gpu_exact contributors
"""What a tree should take on several GPUs, by rows, columns, bins and the link between them.

    python benchmarks/scale_model.py                     # a table up to 1,000 GPUs
    python benchmarks/scale_model.py --measured benchmarks/results/scale-nvidia-h200.jsonl

Two schemes. `columns`, which the plugin has: each GPU searches some of the columns, all of them move
all rows, so that a tree takes

    column work / GPUs + row work + what GPUs tell each other (gradients, a bit a row and level)

`rows`, which would come after it: each GPU has some of the rows and all of the columns; histograms
are added up instead, and only bins can be searched.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).resolve().parent / "results"
GPUS = [1, 2, 4, 8, 16, 64, 256, 1000]
# Of an H200, fitted to the kernels' times of one GPU.
ROW_BYTES = 60  # moved of a row and level: its id and gradients, its node, its value, its position
BANDWIDTH = 2e12  # reached of the device's memory, bytes a second
LEVEL_GAP = 0.12e-3  # seconds a level in which the device waits for the host
SUM_BYTES = 16  # of a bin of one node


class Link(NamedTuple):
    """Between GPUs: one host of them, or several hosts."""

    bandwidth: float  # bytes a second of each GPU
    call: float  # seconds of a collective call of two GPUs; a part of it for each doubling

    def calls(self, n: int, gpus: int) -> float:
        return n * self.call * (1 + 0.3 * math.log2(gpus)) if gpus > 1 else 0.0


NVLINK = Link(350e9, 25e-6)
NETWORK = Link(25e9, 40e-6)
ONE_HOST = 8  # GPUs, beyond which the network is the link


class Work(NamedTuple):
    """A table and its trees, with the time of one GPU."""

    name: str
    rows: int
    columns: int
    depth: int
    one_gpu_s: float

    @property
    def gaps(self) -> float:
        return LEVEL_GAP * (self.depth + 1)

    @property
    def row_work(self) -> float:
        return min(self.rows * self.depth * ROW_BYTES / BANDWIDTH, 0.9 * self.one_gpu_s)

    @property
    def column_work(self) -> float:
        return max(0.0, self.one_gpu_s - self.row_work - self.gaps)

    def by_columns(self, gpus: int) -> float:
        """Seconds a tree; a column is never divided."""
        link = NVLINK if gpus <= ONE_HOST else NETWORK
        idle = math.ceil(self.columns / gpus) * gpus / self.columns
        heard = (gpus - 1) / gpus * 8 * self.rows + self.depth * (gpus - 1) * self.rows / 8
        told = heard / link.bandwidth if gpus > 1 else 0.0
        # A level: how much a split must gain, the best splits, which rows go left.
        calls = link.calls(1 + 3 * self.depth, gpus)
        return self.column_work * idle / gpus + self.row_work + self.gaps + told + calls

    def by_rows(self, gpus: int, bins: int) -> float:
        """The same where bins travel and no range is looked into."""
        link = NVLINK if gpus <= ONE_HOST else NETWORK
        built = 2 ** (self.depth - 1)  # histograms of a tree: siblings are subtracted
        heard = 2 * (gpus - 1) / gpus * built * self.columns * bins * SUM_BYTES
        told = heard / link.bandwidth
        own = (self.column_work + self.row_work) / gpus
        return own + self.gaps + told + link.calls(2 * self.depth, gpus)


def works(lines: list[dict]) -> dict[str, Work]:
    """By shape, of the runs of one GPU."""
    return {
        e["shape"]: Work(e["shape"], e["rows"], e["columns"], e["max_depth"], e["ms_per_tree"] / 1e3)
        for e in lines
    }


def read(path: Path) -> list[dict]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def forecast(bins: int) -> str:
    """Markdown: milliseconds a tree on each number of GPUs."""
    lines = [e for e in read(RESULTS / "train-nvidia-h200.jsonl") if e["system"] == "gpu_exact_cuda"]
    of_shape = works(lines)
    of_shape["1e8 x 100"] = Work("1e8 x 100", 10**8, 100, 8, 0.4)
    shown = ["higgs", "yltr", "epsilon", "criteo", "tall", "1e8 x 100"]
    text = ["| shape, ms a tree | scheme | " + " | ".join(map(str, GPUS)) + " |"]
    text.append("| --- " * (len(GPUS) + 2) + "|")
    for work in (of_shape[name] for name in shown if name in of_shape):
        for scheme, at in (("columns", work.by_columns), ("rows", lambda n: work.by_rows(n, bins))):
            times = " | ".join(f"{1e3 * at(n):.3g}" for n in GPUS)
            text.append(f"| {work.name} | {scheme} | {times} |")
    return "\n".join(text)


def held_against(path: Path) -> str:
    """Markdown: what was measured on several GPUs, and what the model says."""
    lines = [e for e in read(path) if e["system"] == "gpu_exact"]
    of_shape = works([e for e in lines if e["gpus"] == 1])
    text = ["| shape | GPUs | mode | measured, ms | model, ms |", "| --- " * 5 + "|"]
    for e in lines:
        if e["gpus"] > 1 and e["shape"] in of_shape:
            model = 1e3 * of_shape[e["shape"]].by_columns(e["gpus"])
            row = (e["shape"], e["gpus"], e["mode"], f"{e['ms_per_tree']:.3g}", f"{model:.3g}")
            text.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measured", type=Path, metavar="FILE", help="of scale.py: to hold it against")
    parser.add_argument("--bins", type=int, default=256, help="a column, by rows (default 256)")
    options = parser.parse_args()
    print(held_against(options.measured) if options.measured else forecast(options.bins))


if __name__ == "__main__":
    main()
