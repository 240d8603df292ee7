"""What a family reader gives: a model without its name, dtype and quantisation. And the grouping of equal layers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from chipwise.model.spec import Attention, Layer, Tower, Weight

Kind = Literal["llm", "vision-language", "vision", "diffusion", "cnn", "audio", "encoder", "recommender", "tabular"]
Plan = TypeVar("Plan", bound=Hashable)

NO_ATTENTION = Attention(kind="none", query_heads=0, kv_heads=0, head_dim=0, value_head_dim=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Layers, outer weights and towers as a family read them. `kind` is what the family is by itself.

    `params_stated` is set where a published total is all that the layer list cannot give.
    """

    kind: Kind
    layers: tuple[Layer, ...] = ()
    outer: tuple[Weight, ...] = ()
    towers: tuple[Tower, ...] = ()
    mtp: tuple[Layer, ...] = ()
    hidden_size: int = 0
    vocab_size: int = 0
    max_context_tokens: int | None = None
    warnings: tuple[str, ...] = ()

    def tower(self, name: str) -> Tower:
        """This draft as a part beside another model's main stack; its own towers become weights of it."""
        inner = [layer for tower in self.towers for layer in tower.layers]
        loose = [weight for tower in self.towers for weight in tower.weights]
        return Tower(name=name, layers=(*self.layers, *inner), weights=(*self.outer, *loose))

    def beside(self, *towers: Tower, kind: Kind | None = None) -> Draft:
        """This draft with more towers."""
        return replace(self, towers=(*self.towers, *towers), kind=kind or self.kind)


def grouped(plan: Sequence[Plan], build: Callable[[Plan], Layer]) -> tuple[Layer, ...]:
    """Layers of equal description become one `Layer` with its count and positions; each kind is built once.

    >>> same = lambda kind: Layer(count=1, attention=NO_ATTENTION, weights=())
    >>> [(layer.count, layer.indices) for layer in grouped(["a", "b", "a"], same)]
    [(2, (0, 2)), (1, (1,))]
    """
    where: dict[Plan, list[int]] = {}
    for index, item in enumerate(plan):
        where.setdefault(item, []).append(index)
    return tuple(replace(build(item), count=len(indices), indices=tuple(indices)) for item, indices in where.items())


def stack(count: int, weights: Iterable[Weight], attention: Attention = NO_ATTENTION) -> tuple[Layer, ...]:
    """`count` equal layers; none where `count` is 0."""
    if count == 0:
        return ()
    return (Layer(count=count, attention=attention, weights=tuple(weights), indices=tuple(range(count))),)
