# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""The guides: short, linked, and of what is in the sources."""

import re
import sys
from pathlib import Path

import pytest
import xgboost
import xgboost_gpu_exact as gpu_exact
from xgboost import libpath

ROOT = Path(__file__).resolve().parents[2]
PARAMETERS = ROOT / "plugin/train/param.h"
sys.path.insert(0, str(ROOT / "benchmarks"))

import tables  # noqa: E402

MOST_LINES = {"README.md": 200, "src/README.md": 250, "benchmarks/README.md": 200}
MOST_LINES_OF_A_CHAPTER = 150
MOST_BYTES_OF_README = 14_000
MOST_CHARACTERS_OF_A_RESULT = 400
GUIDES = [*tables.guides(), *ROOT.glob(".github/*.md"), ROOT / "tests/README.md", ROOT / "datasets/README.md"]
OF_CUDA = {"cudaErrorIllegalAddress", "cudaErrorIllegalInstruction"}
SOURCES = "*.cc *.h *.in *.cu *.cuh *.py *.R *.c *.cmake CMakeLists.txt configure".split()
NOT_FOR_USERS = {"DeviceStatus", "LastRun", "MemoryEstimate", "__version__", "source_hash"}


def name_of(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def sources(*folders: str) -> str:
    files = [
        f
        for folder in folders
        for pattern in SOURCES
        for f in sorted((ROOT / folder).rglob(pattern))
    ]
    return "\n".join(file.read_text() for file in files)


def anchors(file: Path) -> set[str]:
    """Of a guide's headings, as GitHub makes them."""
    heads = re.findall(
        r"^#+ (.*)$", re.sub(r"```.*?```", "", file.read_text(), flags=re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("guide", tables.guides(), ids=name_of)
def test_guides_are_short(guide):
    lines = guide.read_text().splitlines()
    assert len(lines) <= MOST_LINES.get(name_of(guide), MOST_LINES_OF_A_CHAPTER)
    assert name_of(guide) != "README.md" or guide.stat().st_size <= MOST_BYTES_OF_README


@pytest.mark.parametrize("guide", GUIDES, ids=name_of)
def test_links_lead_somewhere(guide):
    for link in re.findall(r"\]\(([^)]+)\)", guide.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        file = (guide.parent / path).resolve() if path else guide
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


def test_every_chapter_is_in_the_index():
    index = (ROOT / "plugin/guide/README.md").read_text()
    chapters = {file.name for file in (ROOT / "plugin/guide").glob("*.md")} - {"README.md"}
    assert {name for name in chapters if f"]({name})" not in index} == set()


def test_messages_of_troubleshooting_are_in_the_sources():
    """Ours in our sources, XGBoost's in its library."""
    rows = re.findall(
        r"^\| (`.*?) \|", (ROOT / "plugin/guide/troubleshooting.md").read_text(), re.MULTILINE
    )
    messages = {a.strip() or b for row in rows for a, b in re.findall(r"``(.+?)``|`([^`]+)`", row)}
    text = (
        sources("plugin", "src", "include", "tests/cmake")
        + (ROOT / "tests/CMakeLists.txt").read_text()
    )
    ours = re.sub(
        r'\\"', '"', re.sub(r'"\s*(<<)?\s*f?"', "", text)
    )  # literals side by side are one
    theirs = Path(libpath.find_lib_path()[0]).read_bytes().decode(errors="replace")
    theirs += (Path(xgboost.__file__).parent / "core.py").read_text()
    assert len(messages) > 60
    assert {m for m in messages if m not in ours and m not in theirs} <= OF_CUDA


def test_words_of_ours_exist():
    """Parameters, variables, options and fields that guides name; all of them are described."""
    text = sources("plugin", "src", "include", "tests", "benchmarks")
    for guide in GUIDES:
        words = set(
            re.findall(
                r"\b(?:XGBOOST_)?GPU_EXACT_[A-Z_]+\b|\bgpu_exact_[a-z_]+\b", guide.read_text()
            )
        )
        assert {word for word in words if not re.search(rf"\b{word}\b", text)} == set(), name_of(
            guide
        )
    chapter = (ROOT / "plugin/guide/parameters.md").read_text()
    parameters = re.findall(r"DMLC_DECLARE_FIELD\((\w+)\)", PARAMETERS.read_text())
    named = [*parameters, *gpu_exact.LastRun._fields, *set(gpu_exact.__all__) - NOT_FOR_USERS]
    assert {name for name in named if not re.search(rf"`[^`]*\b{name}\b", chapter)} == set()


def cells(guide: str) -> dict[str, str]:
    """What a guide's tables have beside each name."""
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", (ROOT / guide).read_text(), re.MULTILINE)
    return {name: cell.replace("`", "") for name, cell in rows}


def test_defaults_and_values_of_parameters():
    told = cells("plugin/guide/parameters.md")
    text = PARAMETERS.read_text()
    fields = re.findall(r"FIELD\((gpu_exact_\w+)\)(.*?)\.describe", text, re.DOTALL)
    assert len(fields) > 3
    for name, field in fields:
        values = {value: word for word, value in re.findall(r'add_enum\("(\w+)", (\w+)\)', field)}
        default = re.search(r"set_default\((.*?)\)", field)[1]
        shown = values.get(default, {"0.0": "0", '""': "empty"}.get(default, default))
        assert told[name].startswith(f"{shown} (default"), name
        assert [word for word in values.values() if word not in told[name]] == [], name


def test_defaults_of_build_options():
    told = cells("plugin/guide/install.md")
    text = (ROOT / "CMakeLists.txt").read_text() + sources("plugin/cmake")
    options = re.findall(r'option\((\w+)\s+"[^"]*"\s+(ON|OFF)\)', text)
    options += re.findall(r'set\((GPU_EXACT_\w+|XGBOOST_\w+) "?(\w*)"? CACHE STRING', text)
    assert len(options) > 6
    assert [name for name, default in options if not told[name].startswith(default or "empty")] == []


def test_the_map_has_every_file():
    """File by file: each of the sources once, and no other."""
    named = []
    for guide, root in (("src/README.md", "src/"), ("plugin/README.md", "")):
        text = (ROOT / guide).read_text()
        for row in re.findall(r"^\| (.*?) \|", text[text.index("## File by file") :], re.MULTILINE):
            if row.startswith("**"):
                folder = root + row.strip("*")
            named += [f"{folder}/{name}" for name in re.findall(r"`([\w/]+)`", row)]
    folders = ("plugin/load", "plugin/hooks", "plugin/train", "plugin/workers", "src")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*")]
    there = {
        (file.parent / file.name.split(".")[0]).relative_to(ROOT).as_posix()
        for file in files
        if file.suffix in (".cc", ".h", ".cu", ".cuh", ".in")
    }
    assert sorted(named) == sorted(there)


def test_includes_follow_the_map():
    """A file includes those of its own folder, and of folders above it in the map of src/README.md."""
    folders = re.findall(r"^\| \*\*([\w/]+)\*\* \|", (ROOT / "src/README.md").read_text(), re.MULTILINE)
    rank = {folder: i for i, folder in enumerate(folders)}
    against = []
    for file in sorted((ROOT / "src").rglob("*.*")):
        if file.suffix in (".cc", ".h", ".cu", ".cuh"):
            here = rank[file.parent.relative_to(ROOT / "src").as_posix()]
            for name in re.findall(r'^#include "([^"]+)"', file.read_text(), re.MULTILINE):
                if rank.get(str(Path(name).parent), -1) > here:
                    against.append(f"{name_of(file)}: {name}")
    assert len(folders) > 10 and against == []


def test_tables_are_those_of_the_results():
    """`python benchmarks/tables.py --write` mends it."""
    pytest.importorskip("scipy")
    assert [
        name_of(g) for g in tables.guides() if tables.filled(g.read_text()) != g.read_text()
    ] == []


def test_results_are_lines_that_can_be_read():
    files = sorted((ROOT / "benchmarks/results").glob("*.jsonl"))
    longest = {f.name: max(map(len, f.read_text().splitlines())) for f in files}
    assert {name: n for name, n in longest.items() if n > MOST_CHARACTERS_OF_A_RESULT} == {}


def test_numbers_of_the_first_page_are_those_of_the_results():
    """Those that no marker has."""
    pytest.importorskip("scipy")
    page = " ".join((ROOT / "README.md").read_text().split())
    lines = tables.read("parity-*.jsonl")
    n_splits = sum(line["splits"] for line in lines)
    assert n_splits == sum(line["splits_identical"] for line in lines)
    assert f"On {len(lines)} real data sets all [{n_splits:,} splits]" in page
    study = tables.differences(tables.read("accuracy.jsonl")).values()
    worse = {
        system: sum(by[system].mean > 0 and not by[system].is_noise for by in study)
        for system in tables.BINS
    }
    assert worse["xgb_hist_cpu_256"] == 0 and f"on none of {len(study)} real data sets" in page
    assert f"With 64 bins, on {worse['xgb_hist_cpu_64']} they were" in page
    rows = tables.famous(tables.read("train-*.jsonl"))
    used = [int(row.peak(tables.OURS).replace(",", "")) for row in rows]
    of_hist = [row.peak(tables.HIST, tables.HIST + tables.BY_DMATRIX) for row in rows]
    most = max(ours / int(theirs.replace(",", "")) for ours, theirs in zip(used, of_hist, strict=True))
    assert round(most) == 5 and "about five times as much" in page
