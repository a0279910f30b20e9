#!/usr/bin/env python3
# Copyright 2026, the gpu_exact contributors
"""Lines of host code that tests have run, of a build with --coverage: python tests/coverage.py BUILD

With `--least 90` it ends with 1 where that is less than so many percent.
Lines of code in src and plugin that the compiler made something of; in a header those of any file that
includes it. The last line is the whole, as JSON. Needs gcov.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    files: dict[str, dict[int, bool]] = defaultdict(lambda: defaultdict(bool))  # lines: run or not
    for data in Path(sys.argv[1]).resolve().rglob("*.gcda"):
        command = ["gcov", "--json-format", "--stdout", str(data)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        for of_object in map(json.loads, told.splitlines()):
            for file in of_object["files"]:
                path = Path(of_object["current_working_directory"], file["file"]).resolve()
                name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
                if name.startswith(("src/", "plugin/")):
                    for line in file["lines"]:
                        files[name][line["line_number"]] |= line["count"] > 0
    for name, lines in sorted(files.items()):
        missed = [str(number) for number, hit in sorted(lines.items()) if not hit]
        print(f"{name}: {sum(lines.values())} of {len(lines)}", *missed)
    hits = [hit for lines in files.values() for hit in lines.values()]
    percent = round(100 * sum(hits) / max(len(hits), 1), 1)
    print(json.dumps({"lines": len(hits), "run": sum(hits), "percent": percent}))
    least = float(sys.argv[3]) if sys.argv[2:3] == ["--least"] else 0
    return int(percent < least)


if __name__ == "__main__":
    sys.exit(main())
