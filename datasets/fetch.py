#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""Fetch an original table from its source, with curl; README.md has the terms and what to make of it.

    python datasets/fetch.py higgs --to FOLDER
    python datasets/fetch.py            # which tables there are

A download that was cut short goes on where it ended. What was fetched must have the size and SHA-256
that are published before it gets its name and is unpacked; where none is published, the SHA-256 is
shown, to be recorded.
"""

from __future__ import annotations

import argparse
import bz2
import hashlib
import shutil
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

CHUNK = 1 << 20  # bytes
SILENCE_S = 60  # of a server, before it is given up


class FetchError(Exception):
    """One sentence or two: what is wrong, and what to do."""


class Source(NamedTuple):
    """A file of a table."""

    url: str
    name: str  # it gets
    sha256: str | None = None  # where it is published
    size: int | None = None  # bytes, where they are published
    unpacked: str | None = None  # name of the content, where readers need it unpacked


UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
FIGSHARE = "https://ndownloader.figshare.com/files"  # scikit-learn's copies of UCI's files
DATAVERSE = "https://dataverse.harvard.edu/api/access/datafile/:persistentId"
FLIGHTS = f"{DATAVERSE}?persistentId=doi:10.7910/DVN/HG7NV7"

SOURCES = {
    "higgs": [
        Source(
            f"{UCI}/00280/HIGGS.csv.gz",
            "HIGGS.csv.gz",
            "ea302c18164d4e3d916a1e2e83a9a8d07069fa6ebc7771e4c0540d54e593b698",
            2_816_407_858,
        )
    ],
    "yearpredictionmsd": [
        Source(
            f"{UCI}/00203/YearPredictionMSD.txt.zip",
            "YearPredictionMSD.txt.zip",
            unpacked="YearPredictionMSD.txt",
        )
    ],
    "covtype": [
        Source(
            f"{FIGSHARE}/5976039",
            "covtype.data.gz",
            "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
        )
    ],
    "kdd99": [
        Source(
            f"{FIGSHARE}/5976045",
            "kddcup.data.gz",
            "3b6c942aa0356c0ca35b7b595a26c89d343652c9db428893e7494f837b274292",
        )
    ],
    "rcv1": [
        Source(f"{LIBSVM}/rcv1_train.binary.bz2", "rcv1_train.binary.bz2", unpacked="rcv1.svm")
    ],
    "news20": [Source(f"{LIBSVM}/news20.binary.bz2", "news20.binary.bz2", unpacked="news20.svm")],
    "epsilon": [
        Source(f"{LIBSVM}/epsilon_normalized.bz2", "epsilon_normalized.bz2", unpacked="epsilon.svm")
    ],
    "airline": [
        Source(f"{FLIGHTS}/JTFT25", "2005.csv.bz2"),
        Source(f"{FLIGHTS}/EPIFFT", "2006.csv.bz2"),
        Source(f"{FLIGHTS}/2BHLWK", "2007.csv.bz2"),
    ],
}
LOGIN = {
    "bosch": "Log in at kaggle.com, accept the rules of the competition "
    "`bosch-production-line-performance`, download `train_numeric.csv` there and unpack it.",
    "criteo": "Log in at kaggle.com, accept the terms of the Criteo Display Advertising Challenge "
    "(competition `criteo-display-ad-challenge`) and unpack `train.txt` of its data.",
    "yltr": "Log in at Yahoo! Webscope, request the data set C14 (Learning to Rank Challenge) for "
    "research and unpack `set1.train.txt` of what you are given.",
}
BY_HAND = {
    "gisette": "Look for data set 170, Gisette, at archive.ics.uci.edu and unpack "
    "`gisette_train.data` and `gisette_train.labels`.",
}
SHAPES = {"year": "yearpredictionmsd"}  # what the benchmarks call a table


def fetch(source: Source, folder: Path) -> Path:
    """The file, downloaded unless it is there, checked, and unpacked where that is wanted."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / source.name
    if file.exists():
        check(source, file)
    else:
        part = folder / f"{source.name}.part"
        download(source, part)
        check(source, part)
        part.rename(file)
    return unpack(source, file) if source.unpacked else file


def download(source: Source, part: Path) -> None:
    """Complete `part`, which an earlier call may have begun."""
    command = f"curl --fail --location --continue-at - --connect-timeout {SILENCE_S} --speed-limit 1".split()
    command += ["--speed-time", str(SILENCE_S), "--output", str(part), source.url]
    try:
        status = subprocess.run(command, check=False).returncode
    except FileNotFoundError:
        raise FetchError("There is no curl: install it.") from None
    if status != 0:
        raise FetchError(
            f"{source.url} could not be fetched: curl says why above (exit {status}). Run this again, "
            f"which goes on where it ended, or remove `{part}` to begin anew."
        )


def check(source: Source, file: Path) -> None:
    """Compare with what is published; a file that differs is removed."""
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    size = file.stat().st_size
    wrong = None
    if source.size is not None and size != source.size:
        wrong = f"{size:,} bytes instead of {source.size:,}"
    elif source.sha256 is not None and found != source.sha256:
        wrong = f"the SHA-256 {found} instead of {source.sha256}"
    if wrong:
        file.unlink()
        raise FetchError(f"{source.name} has {wrong}: it was removed. Run this again.")
    known = "as published" if source.sha256 else "none is published, so record it"
    print(f"{source.name}: {size:,} bytes, SHA-256 {found} ({known})", file=sys.stderr)


def unpack(source: Source, file: Path) -> Path:
    """The content of a .bz2 file, or the file of that name in a .zip file."""
    content = file.with_name(source.unpacked)
    if content.exists():
        return content
    made = content.with_name(content.name + ".part")
    try:
        with made.open("wb") as target:
            packed = (
                bz2.open(file)
                if file.suffix == ".bz2"
                else zipfile.ZipFile(file).open(source.unpacked)
            )
            with packed:
                shutil.copyfileobj(packed, target, CHUNK)
    except (EOFError, KeyError, OSError, zipfile.BadZipFile, zlib.error) as error:
        made.unlink(missing_ok=True)
        raise FetchError(
            f"{file} cannot be unpacked: {error}. If the disk has room, remove it and run this again."
        ) from None
    made.rename(content)
    return content


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", nargs="?", help="a table; without it, all names")
    parser.add_argument("--to", type=Path, default=Path(), help="folder (default: this one)")
    options = parser.parse_args(arguments)
    if options.name is None:
        print(f"{', '.join(SOURCES)}; and with a login: {', '.join(LOGIN)}")
        return 0
    name = options.name.lower()
    name = SHAPES.get(name, name)
    if name in LOGIN or name in BY_HAND:
        why = "needs a login" if name in LOGIN else "is not fetched by this script"
        print(f"{options.name} {why}. {(LOGIN | BY_HAND)[name]}", file=sys.stderr)
        return 1
    if name not in SOURCES:
        known = ", ".join([*SOURCES, *SHAPES, *LOGIN, *BY_HAND])
        parser.error(f"there is no table `{options.name}`; there are {known}")
    try:
        for source in SOURCES[name]:
            print(fetch(source, options.to), flush=True)
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
