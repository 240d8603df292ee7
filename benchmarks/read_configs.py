"""CPU seconds of reading every config of a folder in one process, and of one `chipwise model` on a file, cold.

Bytecode is kept, as it is wherever chipwise is installed.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from chipwise.errors import ChipwiseError
from chipwise.model import load_model

RUNS = 9
CONFIGS = Path(__file__).parents[2] / "shared" / "truth" / "configs"


def read_all(files: list[Path]) -> tuple[float, list[str]]:
    """CPU seconds of reading all `files`, and those that were refused."""
    refused = []
    start = time.process_time()
    for file in files:
        try:
            load_model(str(file))
        except ChipwiseError as error:
            refused.append(f"{file.name}: {error.what}")
    return time.process_time() - start, refused


def cold(file: Path) -> float:
    """The median CPU seconds of `chipwise model FILE` over fresh processes, after one that warms the file cache."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = []
    for _ in range(RUNS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "chipwise", "model", str(file)]
        subprocess.run(command, check=True, capture_output=True, env=kept)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        runs.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(runs[1:])


def main(folder: Path) -> None:
    """Print the figures; a folder of another name may be given."""
    files = sorted(folder.glob("*.json"))
    seconds, refused = read_all(files)
    print(f"{len(files)} configs in one process: {seconds:.2f} s of CPU, {len(refused)} refused")
    print("\n".join(refused))
    for file in files[:: max(len(files) // 3, 1)][:3]:
        print(f"chipwise model {file.name}: {cold(file):.3f} s of CPU")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else CONFIGS)
