#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Fetch an original table from its source; README.md has their terms and what to make of them.

    python datasets/fetch.py higgs --to FOLDER
    python datasets/fetch.py            # which tables there are

A download that was cut short goes on where it ended, if the server still has the same file. What
was fetched must have the size and SHA-256 that are published before it gets its name and is
unpacked; where none is published, the SHA-256 is shown, to be recorded. Only the standard library
is needed.
"""

from __future__ import annotations

import argparse
import bz2
import errno
import hashlib
import http.client
import shutil
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

CHUNK = 1 << 20  # bytes
BAR = 30  # characters
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


class Bar:
    """How far a download is, on one line of a terminal; nothing where there is none."""

    def __init__(self, name: str, total: int | None, out: IO[str]) -> None:
        self._name, self._total, self._out = name, total, out
        self._begin, self._shown = time.monotonic(), 0.0
        self._first: int | None = None

    def show(self, done: int) -> None:
        """Bytes that are there, at most ten times a second."""
        now = time.monotonic()
        self._first = done if self._first is None else self._first
        if not self._out.isatty() or (now - self._shown < 0.1 and done != self._total):
            return
        self._shown = now
        rate = (done - self._first) / max(now - self._begin, 1e-9)
        text = f"{megabytes(done)} at {megabytes(rate)} a second"
        if self._total:
            filled = BAR * done // self._total
            bar = "#" * filled + "." * (BAR - filled)
            text = f"[{bar}] {done / self._total:4.0%} of {megabytes(self._total)}, {text}"
        print(f"\r{self._name} {text}\x1b[K", end="", file=self._out, flush=True)

    def end(self) -> None:
        if self._out.isatty():
            print(file=self._out)


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.1f} MB"


@contextmanager
def disk_is_blamed(folder: Path) -> Iterator[None]:
    """For what cannot be written below a folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise FetchError(
                f"`{folder}` cannot be written: {error}. Name another folder with --to."
            ) from None
        raise FetchError(
            f"The disk of `{folder}` is full. Free some of it and run this again, which goes on "
            "where it ended, or name another folder with --to."
        ) from None


def fetch(source: Source, folder: Path, out: IO[str] = sys.stderr) -> Path:
    """The file, downloaded unless it is there, checked, and unpacked where that is wanted."""
    file = folder / source.name
    with disk_is_blamed(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if file.exists():
            print(f"{file} is there.", file=out)
            check(source, file, out)
        else:
            part = folder / f"{source.name}.part"
            download(source, part, out)
            check(source, part, out)
            part.rename(file)
            version_file(part).unlink(missing_ok=True)
        return unpack(source, file, out) if source.unpacked else file


def version_file(part: Path) -> Path:
    """Holds what the server calls the version of the file that a part is of."""
    return part.with_name(part.name + ".version")


def download(source: Source, part: Path, out: IO[str]) -> None:
    """Complete `part`, which an earlier call may have begun."""
    version = version_file(part)
    begun = part.stat().st_size if part.exists() and version.exists() else 0
    request = urllib.request.Request(source.url, headers={"User-Agent": "gpu_exact"})
    if begun:
        request.add_header("Range", f"bytes={begun}-")
        request.add_header("If-Range", version.read_text())
    try:
        with urllib.request.urlopen(request, timeout=SILENCE_S) as answer:
            receive(source, answer, part, begun, out)
    except urllib.error.HTTPError as error:
        if error.code == 416 and begun:  # nothing follows the part: it is complete, or of no use
            if error.headers.get("Content-Range") == f"bytes */{begun}":
                return
            part.unlink()
            return download(source, part, out)
        raise FetchError(
            f"{source.url} answered {error.code} {error.reason}. Look for the file at the source "
            "that datasets/README.md names."
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as e:
        reason = getattr(e, "reason", None) or e or type(e).__name__
        raise FetchError(
            f"{source.url} cannot be read: {reason}. Check the network and run this again, which "
            "goes on where it ended."
        ) from None


def receive(
    source: Source, answer: http.client.HTTPResponse, part: Path, begun: int, out: IO[str]
) -> None:
    """Write what a server answers after the bytes that are there, or in their place."""
    if answer.status == 206 and not (answer.headers["Content-Range"] or "").startswith(
        f"bytes {begun}-"
    ):
        raise FetchError(f"{source.url} answered other bytes than it was asked for.")
    if answer.status != 206:
        begun = 0  # all of it comes: the server knows no parts, or has another version by now
    length = answer.headers["Content-Length"]
    total = None if length is None else begun + int(length)
    free = shutil.disk_usage(part.parent).free
    if total is not None and total - begun > free:
        raise FetchError(
            f"{source.name} takes {megabytes(total - begun)} more, and {megabytes(free)} are free "
            f"in `{part.parent}`. Free some, or name another folder with --to."
        )
    name = answer.headers["ETag"] or answer.headers["Last-Modified"]
    version_file(part).unlink(missing_ok=True)
    with part.open("ab" if begun else "wb") as file:
        if name and not name.startswith("W/"):  # weak: its bytes may differ
            version_file(part).write_text(name)
        print(f"{source.url}", f"from byte {begun:,} on" if begun else "", file=out)
        bar = Bar(source.name, total, out)
        done = begun
        bar.show(done)
        while chunk := answer.read1(CHUNK):
            file.write(chunk)
            done += len(chunk)
            bar.show(done)
        bar.end()
    if total is not None and done != total:
        raise FetchError(
            f"{source.url} ended after {done:,} of {total:,} bytes. Run this again, which "
            f"{'goes on there' if version_file(part).exists() else 'begins anew'}."
        )


def check(source: Source, file: Path, out: IO[str]) -> None:
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
        version_file(file).unlink(missing_ok=True)
        raise FetchError(f"{source.name} has {wrong}: it was removed. Run this again.")
    known = "as published" if source.sha256 else "none is published, so record it"
    print(f"{source.name}: {size:,} bytes, SHA-256 {found} ({known})", file=out)


def unpack(source: Source, file: Path, out: IO[str]) -> Path:
    """The content of a .bz2 file, or the file of that name in a .zip file."""
    content = file.with_name(source.unpacked)
    if content.exists():
        print(f"{content} is there.", file=out)
        return content
    made = content.with_name(content.name + ".part")
    try:
        with _opened(file, source.unpacked) as packed, made.open("wb") as target:
            shutil.copyfileobj(packed, target, CHUNK)
    except (EOFError, KeyError, OSError, zipfile.BadZipFile, zlib.error) as error:
        made.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:  # of the disk, not the content
            raise
        raise FetchError(
            f"{file} cannot be unpacked: {error}. Remove it and run this again."
        ) from None
    made.rename(content)
    print(f"{content} is unpacked.", file=out)
    return content


def _opened(file: Path, member: str) -> IO[bytes]:
    openers: dict[str, Callable[[], IO[bytes]]] = {
        ".bz2": lambda: bz2.open(file),
        ".zip": lambda: zipfile.ZipFile(file).open(member),
    }
    return openers[file.suffix]()


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
            print(fetch(source, options.to))
    except FetchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
