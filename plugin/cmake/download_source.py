# Copyright 2026, the gpu_exact contributors. SPDX-License-Identifier: Apache-2.0
"""python download_source.py RELEASE ARCHIVE [SHA256]: a source distribution of XGBoost, by pip.

`pip download` also runs the build backend of what it downloads, for the metadata: that of XGBoost 3.2
and 3.3 compiles all of XGBoost. So pip's own parts are called, with the index and the network that
pip is configured for; nothing of the archive is run.
"""

import hashlib
import sys
from pathlib import Path

from pip._internal.commands import create_command
from pip._vendor.packaging.specifiers import SpecifierSet


def main(release: str, archive: str, sha256: str | None = None) -> None:
    command = create_command("download")
    options, _ = command.parse_args(["--no-binary", "xgboost"])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options, session, ignore_requires_python=True)
        found = finder.find_best_candidate("xgboost", SpecifierSet(f"=={release}")).best_candidate
        if found is None:
            sys.exit(f"pip finds no source distribution of XGBoost {release}.")
        response = session.get(found.link.url_without_fragment)
        response.raise_for_status()
    if sha256 and (got := hashlib.sha256(response.content).hexdigest()) != sha256:
        sys.exit(f"{found.link.filename} has the SHA-256 {got}, not {sha256}.")
    Path(archive).write_bytes(response.content)


main(*sys.argv[1:])
