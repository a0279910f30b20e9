# Copyright 2026, the gpu_exact contributors
"""What a tree should take on several GPUs, by rows, columns, bins and the link between them.

    python benchmarks/scale_model.py                     # tables up to 1,000 GPUs
    python benchmarks/scale_model.py --rows 2e8 --columns 50 --depth 8 --link-bandwidth 50
    python benchmarks/scale_model.py --measured benchmarks/results/scale-nvidia-h200.jsonl

`columns`, which the plugin has: each GPU searches some of the columns, all of them move all rows.
Everybody sends to everybody, so that calls grow with the GPUs. Not built: `columns, joined`, the same
where messages are joined in each host, and these by a tree; `rows`: each GPU has some of the rows and
all columns, histograms are added up, joined likewise, by the owners of their bins. Columns of many
values have open ranges beside, whose entries go to the owners.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from arguments import above_zero

RESULTS = Path(__file__).resolve().parent / "results"
GPUS = [1, 2, 4, 8, 16, 64, 256, 1000]
SHOWN = ["higgs", "yltr", "epsilon", "criteo", "tall"]
# Of an H200. The first two are fitted to runs of one and two GPUs; those of four are their test.
ROW_S = 50e-12  # a row and level: route and move it. 32 B come for each of few scattered bytes
LEVEL_S = 0.15e-3  # of a level, whatever is in it: launches, ends of kernels, waits of the host
BANDWIDTH = 2e12  # reached of the device's memory, bytes a second
XGBOOST_ROW_BYTES = 28  # gradients and prediction cache of a simple loss, read and written
GRADIENTS_S = {"yltr": 3.45e-3}  # measured, of a ranking
# By src/histogram_plan.h, seconds and bytes.
BIN_S, OPEN_ENTRY_S = 75e-12, 100e-12
SUM_BYTES, BOUNDED_SUM_BYTES = 16, 20  # of a bin of one node; with what bounds a range
OPEN_BYTES = 12  # value and gradients of an entry that travels
BINS = [0, *(2**i for i in range(5, 15))]  # of a column to choose from; 0: all entries travel
# By src/memory_plan.cc, bytes: an entry, the least of it without the host's help, a row.
ENTRY_BYTES, LEAST_ENTRY_BYTES, HELD_ROW_BYTES = 12.5, 12, 54
MOST_ROWS = 2**31 - 1
# Between workers, by what is measured on two and four H200s of one host.
RING_STEP_S = 0.11e-3  # of XGBoost's sockets: a tree has n / 2 steps (plugin/xgboost_peers.cc)
MAILBOX_BYTES, MAILBOX_WORKERS = 2**23, 16  # of a call (src/device/mailbox.cuh)


class Link(NamedTuple):
    """Between GPUs, where messages are long or workers are many."""

    bandwidth: float  # bytes a second of each GPU, in and out
    call: float  # seconds of a call of two that is waited for
    peer: float = 2e-6  # more for each further worker, sent to and received from. Not measured


class Cluster(NamedTuple):
    """GPUs in hosts, and what is between these."""

    network: Link = Link(25e9, 60e-6)
    one_host: int = 8  # GPUs
    nvlink: Link = Link(350e9, 40e-6)

    def link(self, gpus: int) -> Link:
        return self.nvlink if gpus <= self.one_host else self.network

    def joined(self, gpus: int) -> float:
        """Bytes a second where what a host sends is joined first, and takes all its links."""
        links = 1 if gpus <= self.one_host else self.one_host
        return min(self.nvlink.bandwidth, links * self.link(gpus).bandwidth)

    def call(self, gpus: int, n_bytes: float, mode: str = "processes") -> float:
        """Seconds of a call, as built, in which so many bytes are told; but for the bytes."""
        if mode == "devices":  # threads meet
            return 20e-6 + 5e-6 * gpus
        if gpus <= min(self.one_host, MAILBOX_WORKERS) and n_bytes <= MAILBOX_BYTES:
            return 8e-6 + 1e-6 * gpus
        return self.link(gpus).call + self.link(gpus).peer * (gpus - 2)

    def joined_call(self, gpus: int, n_bytes: float) -> float:
        """By a tree; on one host as built."""
        tree = self.network.call * (1 + 0.3 * math.log2(gpus))
        return self.call(gpus, n_bytes) if gpus <= self.one_host else tree


CLUSTER = Cluster()


class Work(NamedTuple):
    """A table and its trees, with the time of one GPU."""

    name: str
    rows: int
    columns: int
    depth: int
    one_gpu_s: float
    gradients_s: float = 0.0  # of a loss that is not simple

    @property
    def xgboost(self) -> float:
        """XGBoost's own part: divided by processes, not by devices."""
        simple = self.rows * XGBOOST_ROW_BYTES / BANDWIDTH
        return min(self.gradients_s or simple, self.one_gpu_s / 2)

    @property
    def gaps(self) -> float:
        return min(LEVEL_S * (self.depth + 1), (self.one_gpu_s - self.xgboost) / 2)

    @property
    def row_work(self) -> float:
        return min(ROW_S * self.rows * self.depth, self.one_gpu_s - self.xgboost - self.gaps)

    @property
    def column_work(self) -> float:
        return self.one_gpu_s - self.xgboost - self.gaps - self.row_work

    def by_columns(
        self, gpus: int, mode: str = "processes", cluster: Cluster = CLUSTER, joined: bool = False
    ) -> float:
        """Seconds a tree; a column is never divided. Bins stay where they are."""
        idle = math.ceil(self.columns / gpus) * gpus / self.columns
        own = self.xgboost / (1 if mode == "devices" else gpus)
        work = own + self.gaps + self.row_work + self.column_work * idle / gpus
        if gpus == 1:
            return work
        others = (gpus - 1) / gpus
        gradients, bits = 8 * self.rows, self.rows / 8  # a bit a row
        # A level: how much a split must gain, then the best splits and which rows go left.
        if joined:
            told = others * (gradients + self.depth * 2 * bits) / cluster.joined(gpus)
            calls = [cluster.joined_call(gpus, n) for n in (gradients, 0, bits)]
        else:
            told = others * gradients + self.depth * (gpus - 1) * bits
            told /= cluster.link(gpus).bandwidth
            calls = [cluster.call(gpus, n, mode) for n in (gradients, 0, gpus * bits)]
        steps = 0 if mode == "devices" else math.log2(gpus) if joined else gpus // 2
        return work + told + calls[0] + self.depth * (calls[1] + calls[2]) + RING_STEP_S * steps

    def by_rows(self, gpus: int, bins: int, cluster: Cluster = CLUSTER) -> float:
        """Seconds a tree where a column has so many values; 0: no end of them."""
        work = self.gaps + (self.one_gpu_s - self.gaps) / gpus
        if gpus == 1:
            return work
        for nodes in (2**level for level in range(self.depth)):
            work += self._search_by_rows(nodes, gpus, bins, cluster)
            work -= self._search_by_rows(nodes, 1, bins, cluster) / gpus  # is in one_gpu_s
        # A level: bins to their owners, the best splits; bars, open ranges and their entries.
        long, short = cluster.joined_call(gpus, math.inf), cluster.joined_call(gpus, 0)
        calls = self.depth * (long + short if bins else 3 * long + 2 * short)
        return work + calls + RING_STEP_S * math.log2(gpus)

    def _search_by_rows(self, nodes: int, gpus: int, bins: int, cluster: Cluster) -> float:
        """Seconds a level for bins and open ranges, made and told."""
        built = max(1, nodes // 2)  # siblings are subtracted, by the owners
        others = (gpus - 1) / gpus
        heard = others / cluster.joined(gpus)  # seconds for a byte of what all have parts of

        def of_bins(n: int, sum_bytes: int) -> float:  # each GPU makes them all
            return built * self.columns * n * (sum_bytes * heard + BIN_S)

        def with_ranges(n: int) -> float:
            open_entries = open_share(self.rows / nodes, n) * self.rows * self.columns / gpus
            lists = nodes * self.columns * n / 8 * heard  # which ranges are open, to all
            sent = open_entries * OPEN_BYTES * others / cluster.link(gpus).bandwidth
            return of_bins(n, BOUNDED_SUM_BYTES) + lists + sent + open_entries * OPEN_ENTRY_S

        return of_bins(bins, SUM_BYTES) if bins else min(map(with_ranges, BINS))

    def held(self, gpus: int, scheme: str, entry_bytes: int = ENTRY_BYTES) -> float:
        """Bytes of each GPU."""
        if scheme == "rows":
            return self.rows / gpus * (HELD_ROW_BYTES + entry_bytes * self.columns)
        bits = gpus / 8 if gpus > 1 else 0  # of a row, that all have told
        return self.rows * (HELD_ROW_BYTES + bits + entry_bytes * math.ceil(self.columns / gpus))

    def most_rows(self, gpus: int, scheme: str, gpu_bytes: float) -> float:
        """That a table of these columns may have; a sixteenth of a GPU stays free."""
        fit = 15 / 16 * gpu_bytes * self.rows / self.held(gpus, scheme, LEAST_ENTRY_BYTES)
        return min(fit, MOST_ROWS * (gpus if scheme == "rows" else 1))


def open_share(rows: float, bins: int) -> float:
    """Of a node's entries, those in open ranges, by src/histogram_plan.h."""
    return min(1.0, 0.08 * (rows / bins**2) ** 0.85) if bins else 1.0


def works(lines: list[dict], time: str = "ms_per_tree") -> dict[str, Work]:
    """By shape, of the runs of one GPU."""
    names = ("rows", "columns", "max_depth")
    made = [Work(e["shape"], *(e[n] for n in names), e[time] / 1e3) for e in lines]
    return {w.name: w._replace(gradients_s=GRADIENTS_S.get(w.name, 0.0)) for w in made}


def read(path: Path) -> list[dict]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def measured() -> list[Work]:
    lines = read(RESULTS / "train-nvidia-h200.jsonl")
    of_shape = works([e for e in lines if e["system"] == "gpu_exact_cuda"])
    return [of_shape[name] for name in SHOWN if name in of_shape]


def estimate(rows: int, columns: int, depth: int) -> Work:
    """Of a table that was not measured: an entry and level costs the median of those that were."""
    entry_s = statistics.median(w.column_work / (w.rows * w.columns * w.depth) for w in measured())
    seconds = rows * (XGBOOST_ROW_BYTES / BANDWIDTH + ROW_S * depth) + LEVEL_S * (depth + 1)
    seconds += entry_s * rows * columns * depth
    return Work(f"{rows:,} x {columns}, estimated", rows, columns, depth, seconds)


def schemes(work: Work, bins: int, cluster: Cluster) -> dict[str, Callable[[int], float]]:
    return {
        "columns": lambda n: work.by_columns(n, cluster=cluster),
        "columns, joined": lambda n: work.by_columns(n, cluster=cluster, joined=True),
        f"rows, {bins} values": lambda n: work.by_rows(n, bins, cluster),
        "rows, open ranges": lambda n: work.by_rows(n, 0, cluster),
    }


def table(head: list[str], lines: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *lines))


def text_of(ms: float) -> str:
    """A time as tables have it."""
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def forecast(bins: int, some: list[Work] | None = None, cluster: Cluster = CLUSTER) -> str:
    """Markdown: milliseconds a tree on each number of GPUs."""
    lines = [
        [work.name, scheme, *(text_of(1e3 * at(n)) for n in GPUS)]
        for work in some or [*measured(), estimate(10**8, 100, 8)]
        for scheme, at in schemes(work, bins, cluster).items()
    ]
    return table(["shape, ms a tree", "scheme", *map(str, GPUS)], lines)


def crossings(bins: int, some: list[Work], cluster: Cluster) -> str:
    """Markdown: on how many GPUs a scheme is at its best, and from where on rows beat columns."""

    def wins(rows: list[float], columns: list[float]) -> str:
        # On one GPU they are the same.
        last = max((n for n, (r, c) in enumerate(zip(rows, columns), 1) if r >= c), default=1)
        return f"from {last + 1}" if last < GPUS[-1] else "never"

    lines, head = [], list(schemes(some[0], bins, cluster))
    for work in some:
        all_of = schemes(work, bins, cluster).values()
        columns, joined, *rows = ([at(n) for n in range(1, GPUS[-1] + 1)] for at in all_of)
        best = [f"{t.index(min(t)) + 1} ({text_of(1e3 * min(t))} ms)" for t in (columns, joined, *rows)]
        beat = [f"{wins(times, columns)}; {wins(times, joined)}" for times in rows]
        lines.append([work.name, *best, *beat])
    return table(["best on", *head, *(f"{n}: beat columns; joined" for n in head[2:])], lines)


def memory(some: list[Work], gpu_bytes: float) -> str:
    """Markdown: what a GPU holds, and the most rows of a table with as many columns."""
    lines, head, gpus = [[work.name] for work in some], ["on 1, 8, 64, 1,000 GPUs"], (1, 8, 64, 1000)
    for scheme in ("columns", "rows"):
        head += [f"{scheme}: GB a GPU", "millions of rows at most"]
        for work, line in zip(some, lines):
            line.append(", ".join(f"{work.held(n, scheme) / 1e9:,.2f}" for n in gpus))
            line.append(", ".join(f"{work.most_rows(n, scheme, gpu_bytes) / 1e6:.0f}" for n in gpus))
    return table(head, lines)


def held_together(lines: list[dict]) -> dict[tuple[str, int, str], tuple[float, float]]:
    """By shape, GPUs and mode: milliseconds that were measured on several GPUs, and the model's."""
    runs = [e for e in lines if e["system"] == "gpu_exact"]
    runs = list({(e["shape"], e["gpus"], e["mode"]): e for e in runs}.values())  # the last of each
    ones = [e for e in runs if e["gpus"] == 1]
    found = {}
    for e in runs:
        early = e.get("iterations", 60) < 20  # its trees are no late ones
        work = works(ones, "ms_per_tree_first" if early else "ms_per_tree").get(e["shape"])
        if work and e["gpus"] > 1:
            model = 1e3 * work.by_columns(e["gpus"], e["mode"])
            found[e["shape"], e["gpus"], e["mode"]] = e["ms_per_tree"], model
    return found


def held_against(path: Path) -> str:
    """Markdown: what was measured on several GPUs, and what the model says."""
    rows = [
        [shape, str(gpus), mode, f"{ms:.3g}", f"{model:.3g}", f"{100 * (model / ms - 1):+.0f}%"]
        for (shape, gpus, mode), (ms, model) in held_together(read(path)).items()
    ]
    return table(["shape", "GPUs", "mode", "measured, ms", "model, ms", "off by"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--measured", type=Path, metavar="FILE", help="of scale.py: to hold it against")
    add("--bins", type=int, default=256, help="values a column, where these are few (default 256)")
    add("--rows", type=above_zero(float), help="of a table, with --columns, in the place of those measured")
    add("--columns", type=above_zero(int))
    add("--depth", type=above_zero(int), help="of that table's trees (default 6)")
    add("--one-gpu-ms", type=above_zero(float), help="a tree of it on one GPU (default: estimated)")
    add("--gradients-ms", type=above_zero(float), help="of these, XGBoost's (default: a simple loss)")
    add("--one-host", type=above_zero(int), default=8, help="GPUs that NVLink joins; 1: none (default 8)")
    add("--link-bandwidth", type=above_zero(float), default=25.0, help="of the others, GB/s a GPU (default 25)")
    add("--link-call-us", type=float, default=60.0, help="of a call of two of them (default 60)")
    add("--link-peer-us", type=float, default=2.0, help="and of each further GPU (default 2)")
    add("--gpu-gb", type=above_zero(float), default=141.0, help="memory of a GPU (default 141)")
    o = parser.parse_args()
    if o.measured:
        if not o.measured.is_file():
            parser.error(f"there is no `{o.measured}`")
        print(held_against(o.measured))
        return
    if (o.rows is None) != (o.columns is None):
        parser.error("--rows and --columns go together")
    if o.rows is None and (o.depth or o.one_gpu_ms or o.gradients_ms):
        parser.error("--depth, --one-gpu-ms and --gradients-ms are of the table of --rows")
    some = [*measured(), estimate(10**8, 100, 8)]
    if o.rows is not None:
        work = estimate(int(o.rows), o.columns, o.depth or 6)
        work = work._replace(gradients_s=(o.gradients_ms or 0.0) / 1e3)
        if o.one_gpu_ms:
            name = work.name.removesuffix(", estimated")
            work = work._replace(name=name, one_gpu_s=o.one_gpu_ms / 1e3)
        some = [work]
    network = Link(1e9 * o.link_bandwidth, o.link_call_us / 1e6, o.link_peer_us / 1e6)
    cluster = Cluster(network, o.one_host)
    parts = [forecast(o.bins, some, cluster), crossings(o.bins, some, cluster)]
    print("\n\n".join([*parts, memory(some, 1e9 * o.gpu_gb)]))


if __name__ == "__main__":
    main()
