#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Say whether a release of XGBoost can be served, and by which adapter.

    python tests/release_check.py 3.5.0             # pip downloads its sources and wheels
    python tests/release_check.py path/to/xgboost   # a source tree, before there are wheels of it

Takes a configured build folder (`cmake -B build`), where nothing need be built; no GPU. The adapter is
compiled against the headers of the release, and of the layout that serves it, or else of the newest one.
Then it says what differs:
- the classes of XGBoost that the adapter uses: sizes, members, virtual tables;
- the functions of XGBoost that it calls, and whether the release's wheels have them;
- the text of functions whose rules are repeated here.
Ends with 1 where the release cannot be served by these sources, or its rules must be read first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = "plugin/python/xgboost_gpu_exact/versions.py"
DEBUG_FLAGS = "-g -femit-class-debug-always"  # of classes whose functions are elsewhere, too
SHOWN = 12  # findings of each kind
# Functions of XGBoost that this plugin does anew, in the same way.
REPEATED = {
    "src/common/categorical.h": "Decision InvalidCat UseOneHot",
    "src/common/hist_util.h": "SearchCatBin",
    "src/common/quantile.cc": "AddCategories",
    "src/common/random.cc": "ColSample",
    "src/common/random.h": "GetFeatureSet WeightedSamplingWithoutReplacement",
    "src/gbm/gbtree.cc": "BoostNewTrees UpdatersMatched",
    "src/tree/constraints.cc": "Configure SplitImpl",
    "src/tree/hist/evaluate_splits.h": "EnumerateOneHot EnumeratePart EvaluateSplits",
    "src/tree/param.h": "CalcGain CalcGainGivenWeight CalcWeight IsValidSplit NeedPrune NeedReplace "
    "ThresholdL1",
    "src/tree/split_evaluator.h": "AddSplit CalcGainGivenWeight CalcSplitGain CalcWeight CalcWeightCat",
    "src/tree/updater_colmaker.cc": "EnumerateSplit FindSplit InitData InitNewNode NeedBackwardSearch "
    "NeedForwardSearch ResetPosition UpdateEnumeration UpdateSolution",
    "src/tree/updater_prune.cc": "DoPrune TryPruneLeaf",
}
#: Of a class its bytes, the places of its members, and the functions of its virtual table; of an
#: enumeration its values.
Layout = dict[str, int | str]


def run(*command: object, **options: object) -> subprocess.CompletedProcess:
    words = [str(word) for word in command]
    fixed = {"text": True, "errors": "replace", "capture_output": True}
    return subprocess.run(words, check=False, **fixed, **options)


def must(*command: object) -> str:
    """What the command says; ends the program where it fails."""
    done = run(*command)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


@dataclass
class Adapter:
    """The adapter, compiled against a source tree; its command is that of the build folder."""

    tree: Path  #: the root of XGBoost's headers
    command: list[str]
    folder: str  #: where the command is run

    def against(self, tree: Path) -> Adapter:
        """The same adapter, compiled against another tree."""
        words = [word.replace(str(self.tree), str(tree)) for word in self.command]
        return Adapter(tree, words, self.folder)

    def compile(self, object_file: Path) -> list[str]:
        """Errors, a line each."""
        words = [*self.command, *DEBUG_FLAGS.split()]
        words[words.index("-o") + 1] = str(object_file)
        done = run(*words, cwd=self.folder)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        return list(dict.fromkeys(errors)) or [done.stderr[-500:]] * (done.returncode != 0)


def adapters_of(build: Path) -> dict[str, Adapter]:
    """By the name of the layout."""
    file = build / "compile_commands.json"
    if not file.exists():
        sys.exit(f"{build} is no configured build folder: run `cmake -B {build}`, or name one by --build.")
    adapters = {}
    for entry in json.loads(file.read_text()):
        layout = re.search(r"gpu_exact_adapter_([\d.]+)\.dir", entry["file"])
        if layout:
            words = shlex.split(entry["command"])
            [headers] = [word for word in words if word.endswith("/dmlc-core/include")]
            tree = Path(headers.removeprefix("-isystem")).parents[1]
            adapters[layout[1]] = Adapter(tree, words, entry["directory"])
    return adapters


def download_source(release: str, folder: Path) -> tuple[Path, str]:
    """The source distribution, unpacked, and its SHA-256. Nothing of it is run."""
    archive = folder / f"xgboost-{release}.tar.gz"
    must(sys.executable, ROOT / "plugin/cmake/download_source.py", release, archive)
    shutil.unpack_archive(archive, folder, filter="data")
    return folder / f"xgboost-{release}", hashlib.sha256(archive.read_bytes()).hexdigest()


def download_libraries(release: str, folder: Path) -> dict[str, Path]:
    """libxgboost.so of each wheel that the release has, by the name of the distribution."""
    libraries = {}
    for name in ("xgboost-cpu", "xgboost"):
        pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:")
        if run(*pip, "-d", folder, f"{name}=={release}").returncode == 0:
            [wheel] = folder.glob(f"{name.replace('-', '_')}-{release}-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                libraries[name] = Path(archive.extract("xgboost/lib/libxgboost.so", folder / name))
    return libraries


def version_of(tree: Path) -> str:
    file = tree / "include/xgboost/version_config.h"
    if not file.exists():
        sys.exit(f"{file} is missing: name a release, or the root of XGBoost's sources with dmlc-core.")
    return ".".join(re.findall(r"define XGBOOST_VER_\w+ (\d+)", file.read_text()))


def read_layouts(object_file: Path) -> dict[str, Layout]:
    """Classes and enumerations of XGBoost that it uses, by its debug information."""
    command = ["readelf", "--debug-dump=info", object_file]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, errors="replace", **pipes) as dump:
        return dict(layouts_in(dump.stdout))


def layouts_in(lines: Iterable[str]) -> Iterator[tuple[str, Layout]]:
    """Parse what readelf prints."""
    scopes: list[tuple[str, dict]] = []  # tag and attributes of what encloses the present entry
    complete: list[tuple[list, dict]] = []
    for line in lines:
        entry = re.match(r"\s*<([0-9a-f]+)><[0-9a-f]+>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)", line)
        if entry:
            del scopes[int(entry[1], 16) :]
            scopes.append((entry[2], {"children": []}))
            if len(scopes) > 1:
                scopes[-2][1]["children"].append(scopes[-1])
            if entry[2] in ("class_type", "structure_type", "enumeration_type"):
                complete.append(([attributes for _, attributes in scopes[:-1]], scopes[-1][1]))
            continue
        attribute = re.match(r"\s*<[0-9a-f]+>\s+DW_AT_(\w+)\s*: (.*)", line)
        if attribute and scopes:
            value = attribute[2].rstrip()
            value = re.sub(r"^\((?:indirect|alt indirect)[^)]*\): ", "", value)
            scopes[-1][1][attribute[1]] = value
    for outer, attributes in complete:
        names = [scope.get("name") for scope in outer[1:]] + [attributes.get("name")]
        if names[0] in ("xgboost", "dmlc") and all(names) and "byte_size" in attributes:
            yield "::".join(names), layout_of(attributes)


def layout_of(attributes: dict) -> Layout:
    layout: Layout = {"size": int(attributes["byte_size"], 0)}
    for tag, child in attributes["children"]:
        if tag == "enumerator":
            layout[child["name"]] = int(child["const_value"], 0)
        elif tag in ("member", "inheritance") and "data_member_location" in child:
            name = child.get("name", f"base or nameless member {len(layout)}")
            layout[name] = int(child["data_member_location"].split()[0], 0)
        elif "vtable_elem_location" in child:
            place = re.search(r"DW_OP_constu: (\d+)", child["vtable_elem_location"])
            layout[f"virtual function {place[1]}"] = child.get("linkage_name", child["name"])
    return layout


def differences(ours: dict[str, Layout], theirs: dict[str, Layout]) -> list[str]:
    """What is laid out differently: the first difference of each class."""
    found = []
    for name in sorted(ours.keys() | theirs.keys()):
        a, b = ours.get(name), theirs.get(name)
        if a is None or b is None:
            found.append(f"{name} is {'new' if a is None else 'gone'}")
        elif a != b:
            what = next(key for key in [*a, *b] if a.get(key) != b.get(key))
            found.append(f"{name}: {what} is {b.get(what)}, not {a.get(what)}")
    return found


def bodies(text: str, name: str) -> list[str]:
    """Parameters and bodies of a file's functions of this name, without comments and white space."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    found = []
    for match in re.finditer(rf"\b{name}\s*\(", text):
        end = closing(text, match.end() - 1, "()")
        head = re.compile(r"\s*(?:(?:const|noexcept|override)\s*)*\{").match(text, end)
        if head:
            found.append("".join(text[match.start() : closing(text, head.end() - 1, "{}")].split()))
    return found


def closing(text: str, at: int, pair: str) -> int:
    """One past the bracket that closes the one here."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == pair[0]) - (text[i] == pair[1])
        if depth == 0:
            return i + 1
    return len(text)


def changed_rules(ours: Path, theirs: Path) -> list[str]:
    """Functions in REPEATED that two trees have in other words."""
    found = []
    for file, names in REPEATED.items():
        a, b = ((tree / file).read_text() if (tree / file).exists() else "" for tree in (ours, theirs))
        found += [
            f"{name} of {file} has another text: repeat here what it does"
            for name in names.split()
            if bodies(a, name) != bodies(b, name)
        ]
    return found


def calls_of(object_file: Path) -> set[str]:
    """The functions of XGBoost that it calls."""
    listed = object_file.with_suffix(".inc")
    script = ROOT / "plugin/cmake/WriteImports.cmake"
    must("cmake", "-DNM=nm", f"-DOBJECTS={object_file}", f"-DOUTPUT={listed}", "-P", script)
    return set(re.findall(r"IMPORT\(\d+, (\w+)\)", listed.read_text()))


def functions_of(library: Path) -> set[str]:
    """Names of the functions that a library has, exported or in its symbol table."""
    symbols = must("readelf", "--wide", "--dyn-syms", "--syms", library)
    return set(re.findall(r" I?FUNC +\w+ +\w+ +\d+ (\S+?)(?:@\S+)?$", symbols, re.MULTILINE))


def readable(function: str) -> str:
    return must("c++filt", function).strip()


def tell(what: str, findings: list[str], good: str) -> bool:
    print(f"  {what:<12} {good if not findings else f'{len(findings)} differ or fail:'}")
    for finding in findings[:SHOWN]:
        print(f"    {finding}")
    if len(findings) > SHOWN:
        print(f"    and {len(findings) - SHOWN} more")
    sys.stdout.flush()
    return not findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("release", help="of XGBoost, such as 3.4.1, or the root of its sources")
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="a configured build folder")
    options = parser.parse_args()
    served = runpy.run_path(str(ROOT / VERSIONS))["XGBOOST_RELEASES"]
    adapters = adapters_of(options.build)
    work = options.build.resolve() / "release-check"
    work.mkdir(exist_ok=True)

    tree, sha256, libraries = Path(options.release).resolve(), "SHA-256 of its source distribution", {}
    if not tree.is_dir():
        libraries = download_libraries(options.release, work)
        if options.release in adapters:
            tree = adapters[options.release].tree
        else:
            tree, sha256 = download_source(options.release, work)
    tree = tree / "cpp_src" if (tree / "cpp_src").exists() else tree
    release = version_of(tree)
    layout = served.get(release, list(served.values())[-1])
    print(f"XGBoost {release}, beside {layout}")

    compiled = {layout: adapters[layout], f"{release} of {tree}": adapters[layout].against(tree)}
    objects = [work / f"{layout}.o", work / "checked.o"]
    with ThreadPoolExecutor() as pool:
        errors = list(pool.map(Adapter.compile, compiled.values(), objects))
    passed = [tell("compiles", e, f"against {name}") for name, e in zip(compiled, errors, strict=True)]
    alike = tell("rules", changed_rules(adapters[layout].tree, tree), f"the text of {layout}")
    passed.append(alike or release not in served)
    if not any(errors):
        before, now = map(read_layouts, objects)
        fits = tell("layouts", differences(before, now), f"{len(now)} classes as in {layout}")
        before, now = map(calls_of, objects)
        calls = [f"{readable(f)} is {'new' if f in now else 'gone'}" for f in sorted(before ^ now)]
        fits &= tell("calls", calls, f"{len(now)} functions as in {layout}")
        passed.append(fits or release not in served)
        for name, library in libraries.items():
            missing = [f"lacks {readable(f)}" for f in sorted(now - functions_of(library))]
            passed.append(tell(name, missing, f"has all {len(now)}"))
    if not all(passed):
        print(f"XGBoost {release} CANNOT be served by these sources.")
        return 1
    adapter = f"the adapter to {layout}" if fits else "an adapter of its own"
    print(f"XGBoost {release} can be served by {adapter}{'' if alike else ', once its rules are read'}.")
    if release not in served:
        own = "" if fits else f'\n    "{release}": "{sha256}",\nand'
        adapter = layout if fits else release
        print(f'Add to {VERSIONS}, in their places:{own}\n    "{release}": "{adapter}",')
    return 0 if alike else 1


if __name__ == "__main__":
    sys.exit(main())
