"""Families against transformers: each class built with its own defaults holds exactly this many parameters.

`class_counts.csv`: parameters of the class on torch's meta device (transformers 5.24.0, torch 2.13.0), tied
ones counted once. The sizes themselves come from our table of class defaults.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from chipwise.model.defaults import class_defaults
from chipwise.model.draft import Draft
from chipwise.model.keys import Keys
from chipwise.model.nested import read_part

TABLE = Path(__file__).parent / "class_counts.csv"
with TABLE.open(encoding="utf-8", newline="") as handle:
    ROWS = [(row["model_type"], row["architecture"], int(row["params"])) for row in csv.DictReader(handle)]


def total(draft: Draft) -> int:
    outside = sum(weight.params for weight in draft.outer) + sum(tower.params for tower in draft.towers)
    return outside + sum(layer.params for layer in draft.layers)


@pytest.mark.parametrize(("model_type", "architecture", "params"), ROWS)
def test_class_with_its_defaults(model_type: str, architecture: str, params: int) -> None:
    keys = Keys(
        data={"model_type": model_type},
        defaults=class_defaults(model_type),
        nested=True,
        head=architecture,
    )
    assert total(read_part(keys)) == params


@pytest.mark.parametrize(
    ("config", "params"),
    [
        (
            {
                "_class_name": "WanTransformer3DModel",
                "patch_size": [1, 2, 2],
                "num_attention_heads": 40,
                "attention_head_dim": 128,
                "in_channels": 16,
                "out_channels": 16,
                "ffn_dim": 13824,
                "num_layers": 40,
                "qk_norm": "rms_norm_across_heads",
            },
            14_288_491_584,
        ),
        (
            {
                "_class_name": "CogVideoXTransformer3DModel",
                "num_attention_heads": 30,
                "attention_head_dim": 64,
                "in_channels": 16,
                "num_layers": 30,
                "time_embed_dim": 512,
            },
            1_693_783_872,
        ),
        (
            {
                "_class_name": "QwenImageTransformer2DModel",
                "num_attention_heads": 24,
                "attention_head_dim": 128,
                "in_channels": 64,
                "out_channels": 16,
                "num_layers": 60,
                "joint_attention_dim": 3584,
            },
            20_430_401_088,
        ),
    ],
)
def test_diffusers_classes(config: dict[str, object], params: int) -> None:
    from chipwise.model.read import Source, read_source

    assert read_source(Source(config=config, name="made-up")).params_total == params
