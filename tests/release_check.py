#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Say whether a release of XGBoost can be served, and by which adapter.

    python tests/release_check.py 3.4.1
    python tests/release_check.py 3.5.0 --sha256 HASH    # of a release that is not served yet
    python tests/release_check.py 3.5.0 --source TREE    # before there are wheels of it

A copy of the sources, in which `versions.py` names the release, is compiled against its headers and
those of every layout that is served. Then it is told
- which of these layouts the classes that the plugin uses have in the release, virtual tables too;
- whether functions whose rules are repeated here have the same text as there;
- whether both wheels, where there are any, have every function that the plugin calls;
- whether random problems give the models of XGBoost's own builder, by the reference builder on the host.
Ends with 0 where all that holds. What it takes: Python >= 3.12 with pip and a package index, g++ and
binutils, CMake, and the CUDA toolkit to configure; no GPU. The first run takes some minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = "plugin/python/xgboost_gpu_exact/versions.py"
SOURCES = ("CMakeLists.txt", "benchmarks", "include", "plugin", "src", "tests")
PIP = (sys.executable, "-m", "pip")
DOWNLOAD = ("download", "-q", "--no-deps")
FETCH = ROOT / "plugin/cmake/download_source.py"
DEBUG_FLAGS = "-g -femit-class-debug-always"  # of classes whose functions are elsewhere, too
SHOWN = 12  # differences and errors of each kind
# Of releases that are served by the layout of another one.
SHA256_OF_OTHERS = {
    "3.4.0": "a6b5d114e7186b5a68c5b08b42297fc76c8c5d7292294220cdb12a6efd59977e",
}
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


@dataclass
class Layout:
    """How a class lies in memory; of an enumeration, its values."""

    size: int | None = None  #: bytes
    members: dict[str, int] = field(default_factory=dict)  #: offsets in bytes, bases too
    virtual: dict[int, str] = field(default_factory=dict)  #: functions by place in the table


def run(*command: object, **options: object) -> subprocess.CompletedProcess:
    words = [str(word) for word in command]
    return subprocess.run(
        words, check=False, text=True, errors="replace", capture_output=True, **options
    )


def must(*command: object, **options: object) -> str:
    """What the command says; ends the program where it fails."""
    done = run(*command, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def download_source(release: str, folder: Path, sha256: str) -> Path:
    """The source distribution with this SHA-256, unpacked. Nothing of it is run."""
    archive = folder / f"xgboost-{release}.tar.gz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        must(sys.executable, FETCH, release, sha256, archive)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != sha256:
        sys.exit(f"{archive} has the SHA-256 {found}, not {sha256}: remove it.")
    shutil.unpack_archive(archive, folder, filter="data")
    return folder / f"xgboost-{release}"


def hash_of(release: str, served: dict[str, str], named: str | None) -> str:
    """SHA-256 of the release's source distribution; ends the program where it is not known."""
    if named is None and release not in served:
        sys.exit(
            f"Name the SHA-256 of xgboost-{release}.tar.gz by --sha256, as the package index shows it, or "
            "a source tree by --source."
        )
    return served.get(release) or named


def download_libraries(release: str, folder: Path) -> dict[str, Path]:
    """libxgboost.so of each wheel that the release has, by the name of the distribution."""
    libraries = {}
    for name in ("xgboost-cpu", "xgboost"):
        wheels = (*PIP, *DOWNLOAD, "--only-binary", ":all:", "-d", folder)
        if run(*wheels, f"{name}=={release}").returncode != 0:
            continue
        [wheel] = folder.glob(f"{name.replace('-', '_')}-{release}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            libraries[name] = Path(archive.extract("xgboost/lib/libxgboost.so", folder / name))
    return libraries


def versions_with(release: str, layout: str) -> str:
    """`versions.py` of sources that serve the release by this layout, which may be its own."""
    lines = (ROOT / VERSIONS).read_text().splitlines(keepends=True)
    lines = [line for line in lines if not line.startswith(f'    "{release}": "{release[:2]}')]
    ends = [i for i, line in enumerate(lines) if line == "}\n"]  # of layouts, of releases
    lines.insert(ends[1], f'    "{release}": "{layout}",\n')
    if layout == release and not any(f'    "{layout}": "' in line for line in lines[: ends[0]]):
        lines.insert(ends[0], f'    "{layout}": "0",\n')  # nothing is downloaded by it
    return "".join(lines)


def copy_sources(copy: Path, versions: str) -> None:
    """The sources with this `versions.py`; what is the same stays untouched."""
    for old in filter(Path.is_file, copy.rglob("*")):  # of a run before: CMake would compile it
        if not (ROOT / old.relative_to(copy)).is_file():
            old.unlink()
    for name in SOURCES:
        for file in [ROOT / name, *(ROOT / name).rglob("*")]:
            if file.is_file() and "__pycache__" not in file.parts:
                path = file.relative_to(ROOT)
                content = versions.encode() if path == Path(VERSIONS) else file.read_bytes()
                if not (copy / path).exists() or (copy / path).read_bytes() != content:
                    (copy / path).parent.mkdir(parents=True, exist_ok=True)
                    (copy / path).write_bytes(content)


def configure(work: Path, name: str, trees: list[Path], *options: str) -> Path:
    """Gives the build folder, in which the sources meet the headers of all trees."""
    build = work / name
    must(
        "cmake",
        "-S",
        work / "sources",
        "-B",
        build,
        "-G",
        "Unix Makefiles",
        f"-DXGBOOST_SOURCE_DIR={';'.join(map(str, trees))}",
        f"-DCMAKE_CXX_FLAGS={DEBUG_FLAGS}",
        "-DCMAKE_CUDA_ARCHITECTURES=75",
        *options,
    )
    return build


def compile_target(build: Path, target: str, jobs: int) -> list[str]:
    """Errors, a line each; empty where it is built."""
    done = run("cmake", "--build", build, "-j", jobs, "--target", target, "--", "-k")
    errors = [line for line in done.stderr.splitlines() if re.search(r"\berror:|\*\*\* No", line)]
    return list(dict.fromkeys(errors)) or [done.stderr[-500:]] * (done.returncode != 0)


def read_layouts(objects: list[Path]) -> dict[str, Layout]:
    """Classes and enumerations of XGBoost that these objects use, by their debug information."""
    layouts: dict[str, Layout] = {}
    for file in objects:
        dump = subprocess.Popen(
            ["readelf", "--debug-dump=info", file],
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for name, layout in entries_of(dump.stdout):
            layouts.setdefault(name, layout)
        dump.wait()
    return layouts


def entries_of(lines):
    """Parse what readelf prints: yields qualified name and Layout of each class."""
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
        if names[0] not in ("xgboost", "dmlc") or not all(names) or "byte_size" not in attributes:
            continue
        yield "::".join(names), layout_of(attributes)


def layout_of(attributes: dict) -> Layout:
    layout = Layout(int(attributes["byte_size"], 0))
    for tag, child in attributes["children"]:
        if tag == "enumerator":
            layout.members[child["name"]] = int(child["const_value"], 0)
        elif tag in ("member", "inheritance") and "data_member_location" in child:
            name = child.get("name", f"base or nameless member {len(layout.members)}")
            layout.members[name] = int(child["data_member_location"].split()[0], 0)
        elif "vtable_elem_location" in child:
            place = re.search(r"DW_OP_constu: (\d+)", child["vtable_elem_location"])
            layout.virtual[int(place[1])] = child.get("linkage_name", child["name"])
    return layout


def differences(ours: dict[str, Layout], theirs: dict[str, Layout], whole: bool) -> list[str]:
    """What is laid out differently, a sentence each; classes of one side only where `whole`."""
    found = []
    for name in sorted(ours.keys() | theirs.keys()):
        a, b = ours.get(name), theirs.get(name)
        if a is None or b is None:
            if whole:
                found.append(f"{name} is {'new' if a is None else 'gone'}")
        elif a.size != b.size:
            found.append(f"{name} has {b.size} bytes, not {a.size}")
        elif a.virtual != b.virtual:
            places = sorted(
                k
                for k in a.virtual.keys() | b.virtual.keys()
                if a.virtual.get(k) != b.virtual.get(k)
            )
            k = places[0]
            found.append(
                f"{name}: virtual function {k} is {b.virtual.get(k)}, not {a.virtual.get(k)}"
            )
        elif a.members != b.members:
            names = sorted(
                k
                for k in a.members.keys() | b.members.keys()
                if a.members.get(k) != b.members.get(k)
            )
            found.append(f"{name}: other places of {', '.join(names)}")
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
        texts = [(root_of(tree) / file).read_text() for tree in (ours, theirs)]
        for name in names.split():
            if bodies(texts[0], name) != bodies(texts[1], name):
                found.append(f"{name} of {file}: read it, and repeat here what it does")
    return found


def root_of(tree: Path) -> Path:
    return tree / "cpp_src" if (tree / "cpp_src").exists() else tree


def functions_of(library: Path) -> set[str]:
    """Names of the functions that a library has, exported or in its symbol table."""
    symbols = must("readelf", "--wide", "--dyn-syms", "--syms", library)
    return set(re.findall(r" I?FUNC +\w+ +\w+ +\d+ (\S+?)(?:@\S+)?$", symbols, re.MULTILINE))


def tell(what: str, findings: list[str], good: str) -> bool:
    print(f"  {what:<12} {good if not findings else f'{len(findings)} differ or fail:'}")
    for finding in findings[:SHOWN]:
        print(f"    {finding}")
    if len(findings) > SHOWN:
        print(f"    and {len(findings) - SHOWN} more")
    sys.stdout.flush()
    return not findings


def run_fuzz(options: argparse.Namespace, trees: list[Path]) -> list[str]:
    """The last lines of what failed; empty where all models are equal."""
    environment = ["-DGPU_EXACT_PYTHON_ENV=venv", f"-DGPU_EXACT_PYTHON={sys.executable}"]
    if options.python:
        environment = ["-DGPU_EXACT_PYTHON_ENV=current", f"-DGPU_EXACT_PYTHON={options.python}"]
    build = configure(
        options.work,
        options.release,
        trees,
        *environment,
        "-DGPU_EXACT_BUILD_TESTS=ON",
        "-DGPU_EXACT_XGBOOST=cpu",
        f"-DGPU_EXACT_XGBOOST_VERSION={options.release}",
    )
    errors = compile_target(build, "xgboost_gpu_exact_reference", options.jobs)
    if errors:
        return errors
    env = os.environ | {
        "GPU_EXACT_MODULE": str(build / "tests/libxgboost_gpu_exact_reference.so"),
        "GPU_EXACT_FUZZ": str(options.fuzz),
        "PYTHONPATH": str(options.work / "sources/plugin/python"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    python = options.python or build / "venv/bin/python"
    pytest = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_fuzz.py")
    done = run(*pytest, cwd=options.work / "sources/tests/e2e", env=env)
    equal = done.returncode == 0 and re.search(r"\d+ passed", done.stdout)
    return [] if equal else (done.stdout + done.stderr).splitlines()[-SHOWN:]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("release", help="of XGBoost, such as 3.4.1")
    parser.add_argument(
        "--work",
        type=Path,
        default=ROOT / "build-release-check",
        help="folder for downloads and builds, kept",
    )
    parser.add_argument(
        "--source",
        type=Path,
        help="source tree of the release; else pip downloads it",
    )
    parser.add_argument(
        "--sha256",
        metavar="HASH",
        help="of the source distribution of a release that versions.py does not name",
    )
    parser.add_argument(
        "--python",
        type=Path,
        help="interpreter that has the release and what tests need; else an environment is made",
    )
    parser.add_argument("--fuzz", type=int, default=1000, help="random problems")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.source = options.source and options.source.resolve()
    return options


def main() -> int:
    options = parse()
    known = runpy.run_path(str(ROOT / VERSIONS))
    served, hashes, release = known["XGBOOST_RELEASES"], known["XGBOOST_LAYOUTS"], options.release
    expected = served.get(release, list(hashes)[-1])
    print(f"XGBoost {release}, beside {', '.join(hashes)}")
    trees = {name: download_source(name, options.work / name, hashes[name]) for name in hashes}
    sha256 = options.sha256 or "SHA-256 of its source distribution"
    if options.source:
        trees[release] = options.source
    elif release not in trees:
        sha256 = hash_of(release, SHA256_OF_OTHERS | hashes, options.sha256)
        trees[release] = download_source(release, options.work / release, sha256)
    sources = list(trees.values())
    libraries = download_libraries(release, options.work / release)

    copy_sources(options.work / "sources", versions_with(release, release))
    alone = ("-DGPU_EXACT_PYTHON_ENV=none", "-DGPU_EXACT_BUILD_TESTS=OFF")
    build = configure(options.work, "adapters", sources, *alone)
    passed = []
    for name in dict.fromkeys([*hashes, release]):
        errors = compile_target(build, f"gpu_exact_imports_{name}", options.jobs)
        passed.append(tell("compiles", errors, f"against {name}"))

    def layouts_of(name: str) -> dict[str, Layout]:
        folder = build / f"plugin/CMakeFiles/gpu_exact_adapter_{name}.dir"
        return read_layouts(sorted(folder.rglob("*.o")))

    layout = release
    if passed[-1]:
        theirs = layouts_of(release)
        found = {name: differences(layouts_of(name), theirs, whole=True) for name in hashes}
        layout = next((name for name in hashes if not found[name]), release)
        if layout in hashes:
            passed.append(tell("layouts", [], f"{len(theirs)} classes as in {layout}"))
        else:
            fine = tell("layouts", found[expected], "")
            passed.append(fine or release not in served)
    rules = changed_rules(trees[expected], trees[release])
    passed.append(tell("rules", rules, f"the text of {expected}"))

    imports = build / f"plugin/imports-{release}/imports.inc"
    names = re.findall(r"IMPORT\(\d+, (\w+)\)", imports.read_text() if imports.exists() else "")
    for name in ("xgboost-cpu", "xgboost"):
        if name in libraries:
            functions = functions_of(libraries[name])
            missing = [f"lacks {must('c++filt', n).strip()}" for n in names if n not in functions]
            passed.append(tell(name, missing, f"all {len(names)} functions"))
        elif options.source:
            print(f"  {name:<12} not looked at: there is no wheel of this release")
        else:
            passed.append(tell(name, ["has no wheel of this release"], ""))

    if all(passed) and libraries:
        copy_sources(options.work / "sources", versions_with(release, layout))
        failures = run_fuzz(options, sources)
        passed.append(tell("fuzz", failures, f"{options.fuzz} problems, equal models"))
    else:
        print("  fuzz         not run: it would crash, or compare nothing")
    if not all(passed):
        print(f"XGBoost {release} CANNOT be served by these sources.")
        return 1
    by = f"the adapter to {layout}" if layout in hashes else "an adapter of its own"
    print(f"XGBoost {release} can be served by {by}.")
    if release not in served:
        own = "" if layout in hashes else f'\n    "{release}": "{sha256}",\nand'
        print(f'Add to {VERSIONS}, in their places:{own}\n    "{release}": "{layout}",')
    return 0


if __name__ == "__main__":
    sys.exit(main())
