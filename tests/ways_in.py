#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Try every way into the plugin on a GPU machine and write down which grew their trees there.

    python tests/ways_in.py --python PATH --python PATH ... --module PATH \
        --rscript PATH --rscript-cuda PATH --c-example PATH   # on the machine with the GPU
    python tests/ways_in.py --check            # anywhere: is it fresh, complete, without a failure
    python tests/ways_in.py --table            # a table of the report

--python is an interpreter with NumPy, scikit-learn and a stock XGBoost; one for each release and
wheel. --module is the plugin's library; the package is taken from these sources. --rscript has the
R packages xgboost, xgboostgpuexact (with a module of its own) and jsonlite, and sees the temporary
folder of this process (TMPDIR) under the same name; --rscript-cuda likewise, with an xgboost that
has CUDA (tests/r/link_r_to_wheel.sh). --c-example is the program of the C API,
plugin/examples/train.c: `train DEVICE MODEL` trains on numbers of rand(), says what builds the
trees and saves the model. It is run with the libxgboost of each interpreter and the folder of
--module in LD_LIBRARY_PATH.

A way has passed if its trees are those of XGBoost's own exact on the CPU, which a process without
the plugin grows, and were grown on a GPU: gpu_exact_fallback="error" is set, the booster's updater
is the plugin's, the context is what was asked for, and the plugin's builder is a GPU. The C program
sets no such parameter; it must not have warned that XGBoost's builder takes its place. A module that
was built of other sources proves nothing. What cannot be run is written down as not run, with the
reason. At the same sources and on the same kind of machine a run adds its rows to the report that
lies at --out. Only the standard library is needed here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import re
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gpu_report import (
    device_facts,
    link_libxgboost,
    module_hash,
    of_other_sources,
    of_others,
    read_report,
    report_parser,
    run,
    source_hash,
    xgboost_facts,
)

REPORT = "tests/ways_in.json"
VERSIONS = runpy.run_path(
    str(Path(__file__).resolve().parents[1] / "plugin/python/xgboost_gpu_exact/versions.py")
)
RELEASES = tuple(r for r in VERSIONS["XGBOOST_RELEASES"] if r not in VERSIONS["R_ONLY"])
WHEELS = ("xgboost-cpu", "xgboost")
R_WHEEL = "R package"
ROUNDS = 3
# What all ways train with. An XGBoost without the plugin warns of the first and goes on.
PARAMS = {
    "gpu_exact_fallback": "error",
    "tree_method": "exact",
    "objective": "reg:squarederror",
    "base_score": 0.5,
    "max_depth": 4,
    "nthread": 1,
}
FALLBACK = "own exact builder grows"  # in the warning that the plugin hands a tree on

# Begins each script: `sys.argv` has the folder, the file of the answer, the device ("" for none).
PRELUDE = f"""
import json, os, pickle, sys
import numpy as np
import xgboost as xgb
folder, out, device = sys.argv[1:]
X = np.genfromtxt(os.path.join(folder, "X.csv"), delimiter=",", dtype=np.float32)
y = np.genfromtxt(os.path.join(folder, "y.csv"), dtype=np.float32)
params = {PARAMS!r} | ({{"device": device}} if device else {{}})
rounds = {ROUNDS}

def tell(boosters):
    plugin = sys.modules.get("xgboost_gpu_exact")
    answer = {{
        "models": [json.loads(b.save_raw("json")) for b in boosters],
        "configs": [json.loads(b.save_config()) for b in boosters],
        "builder": plugin.device_status()._asdict() if plugin else None,
        "built_of": plugin.source_hash() if plugin else None,
    }}
    json.dump(answer, open(out, "w"))
"""
TRAIN = "tell([xgb.train(params, xgb.DMatrix(X, y), rounds)])"
CV = """
boosters = []
class Keep(xgb.callback.TrainingCallback):
    def after_training(self, model):
        boosters.extend(fold.bst for fold in model.cvfolds)
        return model
xgb.cv(params, xgb.DMatrix(X, y), rounds, nfold=2, seed=1, callbacks=[Keep()])
tell(boosters)
"""
SKLEARN = "tell([xgb.XGBRegressor(**params, n_estimators=rounds).fit(X, y).get_booster()])"
# A second process, which has no plugin, loads what the first one pickled.
PICKLE = """
import subprocess
booster = xgb.train(params, xgb.DMatrix(X, y), rounds)
pickle.dump(booster, open(out + ".pickle", "wb"))
load = '''
import pickle, sys
import numpy as np, xgboost as xgb
booster = pickle.load(open(sys.argv[1] + ".pickle", "rb"))
assert "xgboost_gpu_exact" not in sys.modules
booster.save_model(sys.argv[1] + ".json")
X = np.genfromtxt(sys.argv[2], delimiter=",", dtype=np.float32)
np.save(sys.argv[1], booster.predict(xgb.DMatrix(X)))
'''
subprocess.run([sys.executable, "-c", load, out, os.path.join(folder, "X.csv")], check=True)
np.testing.assert_array_equal(np.load(out + ".npy"), booster.predict(xgb.DMatrix(X)))
tell([booster])
answer = json.load(open(out))
answer["models"] = [json.load(open(out + ".json"))]
json.dump(answer, open(out, "w"))
"""
R_SCRIPT = f"""
arguments <- commandArgs(TRUE)
library(xgboost)
if (arguments[[3]] != "stock") library(xgboostgpuexact)
X <- as.matrix(read.csv(file.path(arguments[[1]], "X.csv"), header = FALSE))
y <- scan(file.path(arguments[[1]], "y.csv"), quiet = TRUE)
params <- jsonlite::fromJSON('{json.dumps(PARAMS)}')
if (arguments[[3]] == "cuda") params$device <- "cuda"
model <- xgb.train(params, xgb.DMatrix(X, label = y, nthread = 1), nrounds = {ROUNDS})
text <- function(raw) jsonlite::fromJSON(rawToChar(raw), simplifyVector = FALSE)
builder <- if (arguments[[3]] != "stock") xgboostgpuexact::device_status()
answer <- list(models = list(text(xgb.save.raw(model, "json"))), configs = list(xgb.config(model)),
               builder = builder, release = as.character(packageVersion("xgboost")),
               built_of = if (arguments[[3]] != "stock") xgboostgpuexact:::source_hash())
writeLines(jsonlite::toJSON(answer, auto_unbox = TRUE, null = "null", digits = NA),
           arguments[[2]])
"""


# What the C program trains on, by XGBoost alone; its base score is that of the program's model.
C_STOCK = """
import ctypes, json, sys
import numpy as np
import xgboost as xgb
rand = ctypes.CDLL(None).rand
numbers = [rand() for _ in range(3000)]
X = np.array(numbers, np.float32).reshape(1000, 3) / np.float32(2**31 - 1)
base = json.load(open(sys.argv[1]))["learner"]["learner_model_param"]["base_score"]
params = {"tree_method": "exact", "base_score": float(base.strip("[]"))}
dtrain = xgb.DMatrix(X, X[:, 0] * X[:, 1] + X[:, 2])
xgb.train(params, dtrain, 20).save_model(sys.argv[2])
"""


class Way(NamedTuple):
    """A way into the plugin from Python."""

    body: str
    imports: bool = True  # whether the script imports the plugin
    command: tuple[str, ...] = ()  # between interpreter and script
    env: dict[str, str] = {}
    names_device: bool = True  # else the device comes from elsewhere


# A script that does not know the plugin, where Python has read the package's folder at its start.
AS_INSTALLED = f"""
import runpy, site, sys
site.addsitedir({str(Path(__file__).resolve().parents[1] / "plugin/python")!r})
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
WAYS = {
    "xgb.train": Way(TRAIN),
    "xgb.cv": Way(CV),
    "scikit-learn": Way(SKLEARN),
    "unpickled without the plugin": Way(PICKLE),
    "python -m xgboost_gpu_exact": Way(
        TRAIN, imports=False, command=("-m", "xgboost_gpu_exact"), names_device=False
    ),
    "XGBOOST_GPU_EXACT_DEVICE=cuda": Way(
        TRAIN,
        imports=False,
        command=("-c", AS_INSTALLED),
        env={"XGBOOST_GPU_EXACT_DEVICE": "cuda"},
        names_device=False,
    ),
}
R, C = "R", "C"


def expected_rows() -> Iterator[tuple[str, str, str, str]]:
    """Way, release, wheel and context of all rows of a complete report; R's release is any."""
    for release in RELEASES:
        for wheel in WHEELS:
            for way in [*WAYS, C]:
                for context in contexts(way, wheel):
                    yield way, release, wheel, context
    for context in contexts(R, "xgboost"):
        yield R, "", R_WHEEL, context


def contexts(way: str, wheel: str) -> tuple[str, ...]:
    """Where boosters of a way are: where the plugin chooses, on the GPU if the wheel has CUDA."""
    if wheel != "xgboost":
        return ("cpu",)
    return ("cpu", "cuda") if way not in WAYS or WAYS[way].names_device else ("cuda",)


def problems(report: dict, current_hash: str) -> list[str]:
    """Why the report proves nothing, a sentence each; empty where it proves that all passed."""
    found = of_other_sources(report, current_hash)
    rows = {key(row): row for row in report.get("rows", [])}
    there = {(way, "" if way == R else release, *rest) for way, release, *rest in rows}
    for row in expected_rows():
        if row not in there:
            found.append(f"{' '.join(filter(None, row))}: there is no row.")
    for which, row in rows.items():
        if row["passed"] is not True:
            what = "failed" if row["passed"] is False else "was not run"
            found.append(f"{' '.join(filter(None, which))} {what}: {row['reason']}")
        else:
            found += of_others(" ".join(filter(None, which)), row, current_hash)
    return found


def key(row: dict) -> tuple[str, str, str, str]:
    return row["way"], row["release"], row["wheel"], row["context"]


def write_table(folder: Path) -> None:
    """X.csv and y.csv: values whose text is exact, some missing."""
    rng = random.Random(0)
    X = [[rng.randrange(-320, 320) / 16 for _ in range(6)] for _ in range(300)]
    y = [round(16 * (r[0] * r[1] / 40 + abs(r[2]) + rng.gauss(0, 1))) / 16 for r in X]
    X = [[None if rng.random() < 0.1 else value for value in row] for row in X]
    text = [",".join("" if v is None else str(v) for v in row) for row in X]
    (folder / "X.csv").write_text("\n".join(text).replace(",,", ",nan,").replace(",,", ",nan,"))
    (folder / "y.csv").write_text("\n".join(map(str, y)))


def judge(ours: dict, stock: dict, context: str) -> str:
    """Why the trees do not count; empty where they do."""
    for mine, own in zip(ours["models"], stock["models"], strict=True):
        if trees(mine) != trees(own):
            return "the trees are not those of XGBoost's own exact"
    for config in ours["configs"]:
        booster = config["learner"]["gradient_booster"]
        if not any("gpu_exact_train_param" in updater for updater in booster["updater"]):
            return "the booster's updater is not the plugin's"
        device = config["learner"]["generic_param"]["device"]
        if not device.startswith(context):
            return f"the context is {device}"
    return no_gpu(ours["builder"])


def no_gpu(builder: dict | None) -> str:
    """Why a builder is none of a GPU; empty where it is one."""
    if not builder or not builder["usable"] or builder["text"].startswith("reference builder"):
        return f"the builder is no GPU: {builder and builder['text']}"
    return ""


def trees(model: dict) -> list[dict]:
    return model["learner"]["gradient_booster"]["model"]["trees"]


Attempt = Callable[..., str]


class Session:
    """Rows of one machine, one after the other."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self._options, self._folder, self._count = options, folder, 0
        write_table(folder)
        self._plain = {k: v for k, v in os.environ.items() if "GPU_EXACT" not in k}
        self._plain["PYTHONDONTWRITEBYTECODE"] = "1"
        path = [str(options.source / "plugin/python"), self._plain.get("PYTHONPATH", "")]
        self._with_plugin = self._plain | {"PYTHONPATH": os.pathsep.join(filter(None, path))}
        if options.module:
            self._with_plugin["GPU_EXACT_MODULE"] = str(Path(options.module).resolve())

    def rows_of_python(self, python: str) -> Iterator[dict]:
        name, library = xgboost_facts(python, self._plain)
        wheel, release = name.rsplit(" ", 1)
        for way in WAYS:
            for context in contexts(way, wheel):
                yield self._row(way, release, wheel, context, self._try_python, python, WAYS[way])
        with tempfile.TemporaryDirectory() as links:
            folders = [link_libxgboost(library, Path(links))]
            folders += [Path(self._options.module).resolve().parent] if self._options.module else []
            libraries = os.pathsep.join(map(str, folders))
            for context in contexts(C, wheel):
                more = (self._try_c, python, libraries)
                yield self._row(C, release, wheel, context, *more)

    def rows_of_r(self) -> Iterator[dict]:
        for context in contexts(R, "xgboost"):
            row = self._row(R, "", R_WHEEL, context, self._try_r)
            yield row | {"release": row.pop("found_release", "")}

    def _row(
        self, way: str, release: str, wheel: str, context: str, attempt: Attempt, *more: Any
    ) -> dict:
        """What came of `attempt`, which gives the reason why a way does not count, or ""."""
        row = {"way": way, "release": release, "wheel": wheel, "context": context}
        try:
            reason = attempt(row, context, *more)
            row |= {"passed": not reason, "reason": reason}
        except NotRun as why:
            row |= {"passed": None, "reason": str(why)}
        except Failed as why:
            row |= {"passed": False, "reason": str(why)}
        return row

    def _try_python(self, row: dict, context: str, python: str, way: Way) -> str:
        ours = self._script(python, way, context)
        row["built_of"] = [ours["built_of"]]
        return judge(ours, self._script(python, way, None), context)

    def _script(self, python: str, way: Way, context: str | None) -> dict:
        """The answer of a way's script; without a context that of XGBoost alone."""
        plugin = "import xgboost_gpu_exact\n" if way.imports and context else ""
        script, out = self._file("py"), self._file("json")
        script.write_text(plugin + PRELUDE + way.body)
        command, env = [python, str(script)], self._plain
        if context:
            command, env = [python, *way.command, str(script)], self._with_plugin | way.env
        device = context if context and way.names_device else ""
        return self._answer(command + [str(self._folder), str(out), device], env, out)

    def _try_r(self, row: dict, context: str) -> str:
        option = {"cpu": "rscript", "cuda": "rscript_cuda"}[context]
        rscript = getattr(self._options, option)
        if not rscript:
            raise NotRun(f"--{option.replace('_', '-')} was not given")
        script = self._file("R")
        script.write_text(R_SCRIPT)
        answers = []
        for how, env in ((context, self._with_plugin), ("stock", self._plain)):
            out = self._file("json")
            command = [rscript, str(script), str(self._folder), str(out), how]
            answers.append(self._answer(command, env, out))
        row["found_release"] = ".".join(answers[0]["release"].split(".")[:3])
        row["built_of"] = [answers[0]["built_of"]]
        return judge(*answers, context)

    def _try_c(self, row: dict, context: str, python: str, libraries: str) -> str:
        if not self._options.c_example:
            raise NotRun("--c-example was not given")
        model, stock = self._file("json"), self._file("json")
        command = [self._options.c_example, context, str(model)]
        output = self._run(command, self._with_plugin | {"LD_LIBRARY_PATH": libraries})
        said = re.search(r"trees on the (GPU|CPU): (.*)", output)
        if not model.is_file() or not said:
            raise Failed("it saved no model, or did not say what builds the trees")
        row["built_of"] = [module_hash(self._options.module)] if self._options.module else []
        if FALLBACK in output:
            return "XGBoost's own builder grew trees"
        if f'"device":"{context}' not in output:
            return "it does not say that it was in the context"
        self._run([python, "-c", C_STOCK, str(model), str(stock)], self._plain)
        ours, own = (json.loads(file.read_text()) for file in (model, stock))
        release = ".".join(map(str, ours["version"]))
        if release != row["release"]:
            return f"it ran with XGBoost {release}"
        if trees(ours) != trees(own):
            return "the trees are not those of XGBoost's own exact"
        return no_gpu({"usable": said[1] == "GPU", "text": said[2]})

    def _file(self, suffix: str) -> Path:
        self._count += 1
        return self._folder / f"{self._count}.{suffix}"

    def _answer(self, command: list[str], env: dict, out: Path) -> dict:
        self._run(command, env)
        if not out.is_file():
            raise Failed("it ended without an answer")
        return json.loads(out.read_text())

    def _run(self, command: list[str], env: dict) -> str:
        """What it said."""
        status, output, _ = run(command, env, self._options.timeout)
        if status == 127:
            raise NotRun(last_line(output))
        if status != 0:
            raise Failed(f"it ended with {status}: {last_line(output)}")
        return output


class NotRun(Exception):
    """Why a way could not be tried."""


class Failed(Exception):
    """What a way ended with."""


def last_line(output: str) -> str:
    """Of the error, without the stack that XGBoost adds."""
    lines = [line for line in output.split("Stack trace:")[0].splitlines() if line.strip()]
    return lines[-1].strip()[-300:] if lines else "it said nothing"


def make_report(options: argparse.Namespace) -> dict:
    facts = {"source_hash": source_hash(options.source), **device_facts(None)}
    rows, absent = [], []
    with tempfile.TemporaryDirectory() as folder:
        session = Session(options, Path(folder))
        for python in options.python:
            try:
                rows.extend(session.rows_of_python(python))
            except SystemExit as why:  # no XGBoost there
                absent.append(str(why))
        rows += session.rows_of_r()
    reason = " ".join(["no interpreter with this release and wheel", *absent])
    made = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    rows = merged(rows, earlier_rows(options.out, facts), reason)
    report = {**facts, "made": made, "rows": rows}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    return report


def earlier_rows(out: Path, facts: dict) -> list[dict]:
    """Those of a report of the same sources, device and driver."""
    report = json.loads(out.read_text()) if out.is_file() else {}
    return report["rows"] if all(report.get(k) == v for k, v in facts.items()) else []


def merged(rows: list[dict], earlier: list[dict], reason: str) -> list[dict]:
    """New rows in the place of earlier ones, but none that was run by one that was not."""
    found = {}
    for row in [*earlier, *rows]:
        which = key(row) if row["way"] != R else (R, "", R_WHEEL, row["context"])
        if row["passed"] is not None or found.get(which, row)["passed"] is None:
            found[which] = row
    for which in expected_rows():
        names = ("way", "release", "wheel", "context")
        absent = dict(zip(names, which, strict=True)) | {"passed": None, "reason": reason}
        found.setdefault(which, absent)
    order = {which: i for i, which in enumerate(expected_rows())}
    return [found[w] for w in sorted(found, key=lambda which: order.get(which, len(order)))]


def table(report: dict) -> str:
    """A row each way in Markdown, a column each release and wheel; contexts in the cell."""
    columns = list(dict.fromkeys((row["release"], row["wheel"]) for row in report["rows"]))
    columns.sort()
    marks = {True: "passed", False: "failed", None: "not run"}
    lines = [["way in", *(f"{wheel} {release}".strip() for release, wheel in columns)]]
    lines.append(["---"] * len(lines[0]))
    for way in dict.fromkeys(row["way"] for row in report["rows"]):
        line = [f"`{way}`" if "xgb" in way.lower() else way]
        for column in columns:
            rows = [r for r in report["rows"] if key(r)[:3] == (way, *column)]
            line.append(", ".join(f"{r['context']} {marks[r['passed']]}" for r in rows))
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = report_parser(__doc__, REPORT)
    parser.add_argument("--table", action="store_true", help="print the report at --out as a table")
    parser.add_argument(
        "--python", action="append", help="interpreter with a stock XGBoost; again for another one"
    )
    parser.add_argument("--module", help="libxgboost_gpu_exact.so")
    parser.add_argument("--rscript", help="Rscript with xgboost and xgboostgpuexact")
    parser.add_argument("--rscript-cuda", help="the same, with an xgboost that has CUDA")
    parser.add_argument("--c-example", help="program through XGBoost's C API, see above")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a process")
    options = parser.parse_args(arguments)
    options.out = options.out or options.source / REPORT
    if not (options.check or options.table) and not options.python:
        parser.error("name an interpreter for each release and wheel with --python")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    is_there = options.check or options.table
    report = read_report(options.out) if is_there else make_report(options)
    if report is None:
        return 1
    if options.table:
        print(table(report))
        return 0
    found = problems(report, source_hash(options.source))
    print("\n".join(found) if found else f"All ways passed on {report['device']}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
