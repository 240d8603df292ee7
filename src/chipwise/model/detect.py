"""Finds out what a config without a usable `model_type` is, and writes native formats in the common key names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from chipwise.errors import KnowledgeError
from chipwise.model.families import known_types, reader
from chipwise.model.nested import unknown_type

# What a description of embedding tables calls them, their rows and their widths.
TABLES = ("embedding_tables", "tables", "embeddings", "num_tables", "num_embedding_tables")
ROWS = ("rows", "num_embeddings", "num_embeddings_per_feature", "cardinalities", "arch_embedding_size", "table_rows")
DIMS = ("dims", "dim", "embedding_dim", "arch_sparse_feature_size", "width", "dimension")

Config = Mapping[str, Any]

_DEEPSEEK = {
    "dim": "hidden_size",
    "inter_dim": "intermediate_size",
    "moe_inter_dim": "moe_intermediate_size",
    "n_layers": "num_hidden_layers",
    "n_dense_layers": "first_k_dense_replace",
    "n_heads": "num_attention_heads",
    "n_activated_experts": "num_experts_per_tok",
}
_MISTRAL = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "hidden_dim": "intermediate_size",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "max_seq_len": "max_position_embeddings",
}


def normalised(config: Config) -> Config:
    """The config with a `model_type` that a family reads.

    Raises:
        KnowledgeError: nothing in it says what it is.
    """
    model_type = config.get("model_type")
    draft = _draft_type(config)
    if draft:
        return {**config, "model_type": draft}
    if isinstance(model_type, str) and reader(model_type):
        return config
    class_name = config.get("_class_name")
    if isinstance(class_name, str):
        return {**config, "model_type": class_name}
    for keys, rename in _SHAPES:
        if keys <= config.keys():
            return rename(config)
    if not isinstance(model_type, str) and _is_recommender(config):
        return {**config, "model_type": "dlrm"}
    return _by_architecture(config)


_DRAFTS = (("eagle3", "eagle3"), ("dflash", "dflash"), ("eagle", "eagle"), ("medusa", "medusa"))


def _draft_type(config: Config) -> str | None:
    """A draft model for speculative decoding: its architecture says so, whatever its model_type."""
    named = config.get("architectures")
    head = named[0].lower() if isinstance(named, list) and named and isinstance(named[0], str) else ""
    found = next((kind for word, kind in _DRAFTS if word in head), None)
    return found or ("medusa" if "medusa_num_heads" in config else None)


def _renamed(config: Config, names: Mapping[str, str], model_type: str) -> Config:
    renamed = {names.get(key, key): value for key, value in config.items()}
    return {"tie_word_embeddings": False, **renamed, "model_type": model_type}


def _mistral(config: Config) -> Config:
    experts = config.get("moe")
    if not isinstance(experts, Mapping):
        return _renamed(config, _MISTRAL, "mistral")
    more = {"num_local_experts": experts.get("num_experts"), "num_experts_per_tok": experts.get("num_experts_per_tok")}
    return {**_renamed(config, _MISTRAL, "mixtral"), **more}


def _deepseek(config: Config) -> Config:
    return _renamed(config, _DEEPSEEK, "deepseek_v3")


def _yolo(config: Config) -> Config:
    return {**config, "model_type": "yolo"}


def _tabnet(config: Config) -> Config:
    return {**config, "model_type": "tabnet"}


def _llava(config: Config) -> Config:
    return {**config, "model_type": "llava", "unknown_type": config.get("model_type") or "llava_llama"}


_SHAPES: tuple[tuple[set[str], Callable[[Config], Config]], ...] = (
    ({"dim", "n_layers", "n_routed_experts"}, _deepseek),
    ({"dim", "n_layers", "n_heads", "hidden_dim"}, _mistral),
    ({"mm_vision_tower", "hidden_size"}, _llava),
    ({"backbone", "head", "nc"}, _yolo),
    ({"n_d", "n_a", "n_steps"}, _tabnet),
)


def _is_recommender(config: Config) -> bool:
    """Whether a description speaks of embedding tables: a list of them, or their rows and dims."""
    if any(isinstance(config.get(name), list) for name in TABLES[:3]):
        return True
    return any(name in config for name in ROWS) and any(name in config for name in DIMS)


_HEADS = re.compile(r"(For[A-Z]\w*|LMHeadModel|Model)$")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _by_architecture(config: Config) -> Config:
    """The family whose model_type is the architecture's name without its head: `OpenMoeForCausalLM` is openmoe."""
    named = config.get("architectures")
    known = {_plain(model_type): model_type for model_type in known_types()}
    for name in named if isinstance(named, list) else ():
        found = known.get(_plain(_HEADS.sub("", name))) if isinstance(name, str) else None
        if found:
            return {**config, "model_type": found}
    model_type = config.get("model_type")
    # Imported only here: a config of a known family does not pay for them.
    generic, mixed = (import_module(f"chipwise.model.families.{name}") for name in ("generic", "mixed_vlm"))
    kinds = (
        ("mixed_vlm", mixed.parts_of),
        ("generic", generic.generic_type),
        ("generic_encoder", generic.encoder_type),
        ("generic_vision", generic.vision_type),
    )
    kind = next((kind for kind, fits in kinds if fits(config)), None)
    if kind:
        return {**config, "model_type": kind, "unknown_type": model_type or "none"}
    if isinstance(model_type, str):
        raise unknown_type(model_type)
    raise KnowledgeError(
        "the config does not say model_type",
        why="nothing else in it tells which architecture it is",
        fix="add model_type, or give the safetensors or GGUF file",
    )
