#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Say whether a release of XGBoost can be served by the build that serves the others.

    python tests/release_check.py 3.4.1
    python tests/release_check.py 3.5.0 --sha256 HASH    # of a release that is not served yet

A copy of the sources in which `versions.py` names the release is compiled against its headers. Then
the classes that the plugin uses must lie in memory as those of the newest served release, both
wheels must have every function that the plugin calls, and random problems must give the models of
XGBoost's own builder, by the reference builder on the host. Ends with 0 where all that holds. What
it takes: Python >= 3.12 with pip and a package index, g++ and binutils, CMake, and the CUDA toolkit
to configure; no GPU. The first run takes some minutes.
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
DEBUG_FLAGS = "-g -femit-class-debug-always"  # of classes whose functions are elsewhere, too
SHOWN = 12  # differences and errors of each kind


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
    """The source distribution with this SHA-256, unpacked.

    pip runs an archive's build backend, for its metadata: with a hash, not that of another archive.
    """
    archive = folder / f"xgboost-{release}.tar.gz"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        wanted = folder / "source.txt"
        wanted.write_text(f"xgboost=={release} --hash=sha256:{sha256}\n")
        hashed = ("--require-hashes", "--requirement", wanted)
        must(*PIP, *DOWNLOAD, "--no-binary", "xgboost", "-d", folder, *hashed)
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


def copy_sources(copy: Path, release: str) -> None:
    """The sources, with `versions.py` naming the release last; what is the same stays untouched."""
    lines = (ROOT / VERSIONS).read_text().splitlines(keepends=True)
    lines = [line for line in lines if not line.startswith(f'    "{release}"')]
    lines.insert(lines.index("}\n"), f'    "{release}": "0",\n')  # nothing is downloaded by it
    for old in filter(Path.is_file, copy.rglob("*")):  # of a run before: CMake would compile it
        if not (ROOT / old.relative_to(copy)).is_file():
            old.unlink()
    for name in SOURCES:
        for file in [ROOT / name, *(ROOT / name).rglob("*")]:
            if file.is_file() and "__pycache__" not in file.parts:
                path = file.relative_to(ROOT)
                content = file.read_bytes()
                if path == Path(VERSIONS):
                    content = "".join(lines).encode()
                if not (copy / path).exists() or (copy / path).read_bytes() != content:
                    (copy / path).parent.mkdir(parents=True, exist_ok=True)
                    (copy / path).write_bytes(content)


def configure(work: Path, release: str, headers: Path, *options: str) -> Path:
    """Gives the build folder, in which the sources meet the headers of the release."""
    build = work / release / "build"
    must(
        "cmake",
        "-S",
        work / "sources",
        "-B",
        build,
        "-G",
        "Unix Makefiles",
        f"-DXGBOOST_SOURCE_DIR={headers}",
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


def run_fuzz(options: argparse.Namespace, headers: Path) -> list[str]:
    """The last lines of what failed; empty where all models are equal."""
    environment = ["-DGPU_EXACT_PYTHON_ENV=venv", f"-DGPU_EXACT_PYTHON={sys.executable}"]
    if options.python:
        environment = ["-DGPU_EXACT_PYTHON_ENV=current", f"-DGPU_EXACT_PYTHON={options.python}"]
    build = configure(
        options.work,
        options.release,
        headers,
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
        help="source tree of the release; else pip downloads it, which builds releases before 3.4",
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
    served = runpy.run_path(str(ROOT / VERSIONS))["XGBOOST_RELEASES"]
    release, newest = options.release, list(served)[-1]
    print(f"XGBoost {release}, beside {newest}")
    headers, sha256 = options.source, options.sha256 or "SHA-256 of its source distribution"
    if not headers:
        sha256 = hash_of(release, served, options.sha256)
        headers = download_source(release, options.work / release, sha256)
    known = download_source(newest, options.work / newest, served[newest])
    libraries = download_libraries(release, options.work / release)
    copy_sources(options.work / "sources", release)

    alone = ("-DGPU_EXACT_PYTHON_ENV=none", "-DGPU_EXACT_BUILD_TESTS=OFF")
    theirs = configure(options.work, release, headers, *alone)
    ours = configure(options.work, newest, known, *alone)
    errors = compile_target(theirs, "gpu_exact_imports", options.jobs)
    passed = [tell("compiles", errors, "yes")]

    failed = compile_target(ours, "gpu_exact_imports", options.jobs)
    if failed:
        sys.exit("These sources do not compile themselves:\n" + "\n".join(failed))
    objects = "plugin/CMakeFiles/gpu_exact_plugin.dir"
    layouts = [read_layouts(sorted((b / objects).glob("*.o"))) for b in (ours, theirs)]
    found = differences(*layouts, whole=not errors)
    passed.append(tell("layouts", found, f"{len(layouts[0])} classes as in {newest}"))

    imports = (ours if errors else theirs) / "plugin/imports.inc"
    names = re.findall(r"IMPORT\(\d+, (\w+)\)", imports.read_text())
    for name in ("xgboost-cpu", "xgboost"):
        if name in libraries:
            functions = functions_of(libraries[name])
            missing = [f"lacks {must('c++filt', n).strip()}" for n in names if n not in functions]
        else:
            missing = ["has no wheel of this release"]
        passed.append(tell(name, missing, f"all {len(names)} functions"))

    if all(passed):
        failures = run_fuzz(options, headers)
        passed.append(tell("fuzz", failures, f"{options.fuzz} problems, equal models"))
    else:
        print("  fuzz         not run: it would crash, or compare nothing")
    if not all(passed):
        print(f"XGBoost {release} CANNOT be served by the build that serves {newest}.")
        return 1
    print(f"XGBoost {release} can be served by the build that serves {newest}.")
    if release not in served:
        print(f'Add this to {VERSIONS}, in its place:\n    "{release}": "{sha256}",')
    return 0


if __name__ == "__main__":
    sys.exit(main())
