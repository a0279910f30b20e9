#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Say whether a release of XGBoost can be served, and by which adapter.

    build/venv/bin/python tests/release_check.py 3.5.0             # pip downloads its sources and wheels
    build/venv/bin/python tests/release_check.py path/to/xgboost   # a source tree, before there are wheels of it

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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

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
# What a later release calls otherwise in these texts, and nothing more: 3.5 has a new name for a member.
RENAMED = {"learner_model_state": "learner_model_param"}
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
    library = object_file.with_suffix(".so")  # pyelftools cannot relocate what is local to a thread
    must("c++", "-shared", "-o", library, object_file)
    layouts: dict[str, Layout] = {}
    with library.open("rb") as file:
        for unit in ELFFile(file).get_dwarf_info().iter_CUs():
            for scope in unit.get_top_DIE().iter_children():
                if name_of(scope) in ("xgboost", "dmlc"):
                    add_layouts(scope, name_of(scope), layouts)
    return layouts


def name_of(entry: DIE, attribute: str = "DW_AT_name") -> str:
    return entry.attributes[attribute].value.decode() if attribute in entry.attributes else ""


def add_layouts(scope: DIE, path: str, layouts: dict[str, Layout]) -> None:
    """Those of what a namespace or class encloses."""
    for entry in scope.iter_children():
        is_type = entry.tag in ("DW_TAG_class_type", "DW_TAG_structure_type", "DW_TAG_enumeration_type")
        if name_of(entry) and (is_type or entry.tag == "DW_TAG_namespace"):
            name = f"{path}::{name_of(entry)}"
            if "DW_AT_byte_size" in entry.attributes:
                layouts[name] = layout_of(entry)
            add_layouts(entry, name, layouts)


def layout_of(entry: DIE) -> Layout:
    layout: Layout = {"size": entry.attributes["DW_AT_byte_size"].value}
    for child in entry.iter_children():
        values = {name.removeprefix("DW_AT_"): found.value for name, found in child.attributes.items()}
        if child.tag == "DW_TAG_enumerator":
            layout[name_of(child)] = values["const_value"]
        elif child.tag in ("DW_TAG_member", "DW_TAG_inheritance") and "data_member_location" in values:
            name = name_of(child) or f"base or nameless member {len(layout)}"
            layout[name] = values["data_member_location"]
        elif "vtable_elem_location" in values:  # DW_OP_constu, and the place
            function = name_of(child, "DW_AT_linkage_name") or name_of(child)
            layout[f"virtual function {values['vtable_elem_location'][1]}"] = function
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


def text_of(file: Path) -> str:
    """By the older names; nothing of a file that is not there."""
    text = file.read_text() if file.exists() else ""
    for name, older in RENAMED.items():
        text = re.sub(rf"\b{name}\b", older, text)
    return text


def changed_rules(ours: Path, theirs: Path) -> list[str]:
    """Functions in REPEATED that two trees have in other words."""
    found = []
    for file, names in REPEATED.items():
        a, b = (text_of(tree / file) for tree in (ours, theirs))
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
