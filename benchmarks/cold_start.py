"""CPU seconds of a cold start: fresh processes, medians, against an interpreter that does nothing."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

RUNS = 9
P5 = ["--on", "p5.48xlarge", "--tp", "8"]
LENGTHS = ["--isl", "1k", "--osl", "256"]
PLAN = ["--for", "chat", "--users", "64", "--context", "8k", "--ttft-p99", "1s", "--tpot-p99", "40ms"]
COMMANDS = {
    "--help": ["--help"],
    "model": ["model", "llama-3.3-70b", "--json"],
    "memory": ["memory", "llama-3.3-70b", "--chip", "h100-sxm", "--tp", "4", "--json"],
    "estimate": ["estimate", "llama-3.3-70b", *P5, *LENGTHS, "--concurrency", "16", "--json"],
    "catalog show": ["catalog", "show", "p5en.48xlarge"],
    "plan": ["plan", "llama-3.3-70b", *PLAN],
    "plan --json": ["plan", "llama-3.3-70b", *PLAN, "--json"],
}


def cpu_s(command: list[str]) -> tuple[float, int]:
    """User and system time of one run, and its exit status."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    status = subprocess.run(command, check=False, capture_output=True).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, status


def median_cpu_s(command: list[str]) -> tuple[float, int]:
    """The median of RUNS runs after one that warms the file cache, and the last exit status."""
    cpu_s(command)
    runs = [cpu_s(command) for _ in range(RUNS)]
    return statistics.median(seconds for seconds, _ in runs), runs[-1][1]


def main() -> None:
    """Print one row a command."""
    nothing_s, _ = median_cpu_s([sys.executable, "-c", "pass"])
    print(f"{'command':<14}{'CPU s':>8}{'x nothing':>11}{'exit':>6}")
    print(f"{'(nothing)':<14}{nothing_s:>8.3f}{1.0:>11.1f}{0:>6}")
    for name, arguments in COMMANDS.items():
        seconds, status = median_cpu_s([sys.executable, "-m", "chipwise", *arguments])
        if status:
            raise SystemExit(f"chipwise {' '.join(arguments)} ended with status {status}")
        print(f"{name:<14}{seconds:>8.3f}{seconds / nothing_s:>11.1f}{status:>6}")


if __name__ == "__main__":
    main()
