"""Takes a format, a chip or a `ModelSpec`; gives its bytes, what the chip does with it, what is legal.

Read `formats.py` first.
"""

from chipwise.precision.capability import Capability, capability
from chipwise.precision.checkpoint import WeightBytes, stored_bytes, with_precision
from chipwise.precision.formats import (
    Format,
    bytes_per_param,
    canonical,
    format_facts,
    format_names,
    kv_bytes_per_element,
    kv_format_names,
    meets_floor,
    precision_rank,
)
from chipwise.precision.legal import (
    PrecisionOption,
    default_option,
    legal_kv_formats,
    legal_precisions,
    option_for,
    stored_format,
    widened_fallback,
)

__all__ = [
    "Capability",
    "Format",
    "PrecisionOption",
    "WeightBytes",
    "bytes_per_param",
    "canonical",
    "capability",
    "default_option",
    "format_facts",
    "format_names",
    "kv_bytes_per_element",
    "kv_format_names",
    "legal_kv_formats",
    "legal_precisions",
    "meets_floor",
    "option_for",
    "precision_rank",
    "stored_bytes",
    "stored_format",
    "widened_fallback",
    "with_precision",
]
