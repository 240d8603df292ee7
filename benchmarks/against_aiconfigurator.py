"""One question to chipwise and to NVIDIA's aiconfigurator: what each says, and the processor time that it takes.

aiconfigurator is asked where this interpreter has it, or that of AICONFIGURATOR_PYTHON (`python -m venv` and
`pip install aiconfigurator`, apart from chipwise's own environment). Without it this says so and does nothing.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping

AGAIN = 20
ISL, OSL, BATCH, TP = 2048, 256, 32, 4
_ASK = """
import json, sys, time
{imports}
started = time.process_time()
for _ in range({again}):
    found = {call}
print(json.dumps([{ttft}, {tpot}, (time.process_time() - started) / {again}]), file=sys.stderr)
"""
QUESTIONS: Mapping[str, Mapping[str, str]] = {
    "chipwise": {
        "imports": "from chipwise.advisor import estimate\nfrom chipwise.advisor.request import *",
        "call": (
            f"estimate(EstimateRequest(model='llama-3.1-70b', chip='h200-sxm', isl_tokens={ISL}, osl_tokens={OSL}, "
            f"concurrency={BATCH}, split=SplitRequest(tp={TP}), engine=EngineRequest(engine='vllm')))"
        ),
        "ttft": "found['serving']['ttft_s'].mid * 1e3",
        "tpot": "found['serving']['tpot_s'].mid * 1e3",
    },
    "aiconfigurator": {
        "imports": "from aiconfigurator.cli.api import cli_estimate",
        "call": (
            f"cli_estimate('meta-llama/Meta-Llama-3.1-70B', 'h200_sxm', backend_name='vllm', isl={ISL}, osl={OSL}, "
            f"batch_size={BATCH}, tp_size={TP}, gemm_quant_mode='bfloat16', kvcache_quant_mode='bfloat16')"
        ),
        "ttft": "float(found.ttft)",
        "tpot": "float(found.tpot)",
    },
}


def asked(python: str, question: Mapping[str, str], again: int) -> tuple[list[float], float]:
    """TTFT and TPOT in ms and the seconds of one question, `again` times over, and the seconds of the whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = _ASK.format(**question, again=again)
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    answer = json.loads(done.stderr.strip().splitlines()[-1])
    return answer, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def installed(python: str) -> bool:
    """Whether that interpreter has aiconfigurator."""
    return subprocess.run([python, "-c", "import aiconfigurator"], check=False, capture_output=True).returncode == 0


def main() -> None:
    """Print one row a tool, and the ratio."""
    other = os.environ.get("AICONFIGURATOR_PYTHON", sys.executable)
    if not installed(other):
        print("skipped: aiconfigurator is not installed here; install it apart and set AICONFIGURATOR_PYTHON")
        return
    print(f"Llama 3.1 70B, bf16, tp {TP} on H200, vLLM, {ISL} tokens in, {OSL} out, {BATCH} at a time")
    print(f"{'tool':<18}{'TTFT ms':>10}{'TPOT ms':>10}{'cold CPU s':>12}{'warm CPU ms':>13}")
    for name, python, again in (("chipwise", sys.executable, AGAIN), ("aiconfigurator", other, 3)):
        _, cold_s = asked(python, QUESTIONS[name], 1)
        (ttft_ms, tpot_ms, warm_s), _ = asked(python, QUESTIONS[name], again)
        print(f"{name:<18}{ttft_ms:>10.1f}{tpot_ms:>10.2f}{cold_s:>12.2f}{warm_s * 1e3:>13.1f}")


if __name__ == "__main__":
    main()
