"""The settings of a training run as files: `plan.yaml` in the plan's words, and one in the trainer's own."""

from __future__ import annotations

from typing import Any

from chipwise.deploy.asked.chosen import Chosen, Scalar
from chipwise.deploy.written.render import document_text
from chipwise.engines.flags import engine_flags_of
from chipwise.errors import UnknownNameError

_AXES = ("tp", "pp", "ep", "dp", "cp")
_OWN = (*_AXES, "micro_batch", "global_batch", "seq_len")
"""Settings that every trainer counts alike; how it names recomputation and sharding is its own matter."""


def settings_files(chosen: Chosen, engine: str) -> dict[str, str]:
    """The files by name: the plan's, and the trainer's where its table knows its keys."""
    plan = plan_settings(chosen)
    files = {"plan.yaml": document_text(plan)}
    own = _own_settings(plan, engine)
    if own:
        files[f"{engine}.yaml"] = document_text(own)
    return files


def plan_settings(chosen: Chosen) -> dict[str, Scalar]:
    """What the plan says of the run: its split, its batch, its precision."""
    split = {axis: int(getattr(chosen.split, axis)) for axis in _AXES}
    return {
        "model": chosen.model.checkpoint,
        **{name: value for name, value in chosen.settings.items() if value is not None},
        **split,
        "weights": chosen.precision.weights,
        "compute": chosen.precision.compute,
    }


def _own_settings(plan: dict[str, Scalar], engine: str) -> dict[str, Any]:
    """The same under the trainer's dotted keys, as nested mappings."""
    try:
        flags = engine_flags_of(engine).by_setting
    except UnknownNameError:
        return {}
    made: dict[str, Any] = {}
    for setting in _OWN:
        flag = flags.get(setting)
        if flag is not None and flag.form == "config" and plan.get(setting) is not None:
            *path, last = flag.flag.split(".")
            below = made
            for part in path:
                below = below.setdefault(part, {})
            below[last] = plan[setting]
    return made
