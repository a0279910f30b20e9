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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    run: dict[str, dict[int, bool]] = {}  # by file and line
    for data in Path(sys.argv[1]).resolve().rglob("*.gcda"):
        text = subprocess.run(
            ["gcov", "--json-format", "--stdout", str(data)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for of_object in map(json.loads, text.splitlines()):
            for file in of_object["files"]:
                path = Path(of_object["current_working_directory"], file["file"]).resolve()
                if not path.is_relative_to(ROOT):
                    continue
                name = path.relative_to(ROOT).as_posix()
                if name.startswith(("src/", "plugin/")):
                    lines = run.setdefault(name, {})
                    for line in file["lines"]:
                        number = line["line_number"]
                        lines[number] = lines.get(number, False) or line["count"] > 0
    for name, lines in sorted(run.items()):
        missed = [number for number, hit in sorted(lines.items()) if not hit]
        told = f", not {', '.join(map(str, missed))}" if missed else ""
        print(f"{name}: {len(lines) - len(missed)} of {len(lines)}{told}")
    hit = sum(sum(lines.values()) for lines in run.values())
    of = sum(map(len, run.values()))
    percent = round(100 * hit / max(of, 1), 1)
    print(json.dumps({"lines": of, "run": hit, "percent": percent}))
    least = float(sys.argv[3]) if sys.argv[2:3] == ["--least"] else 0
    return int(percent < least)


if __name__ == "__main__":
    sys.exit(main())
