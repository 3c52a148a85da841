"""The compiled kernels, from the module that suits this processor.

The core is compiled twice: `_core_generic` runs on every processor of the platform, `_core_avx2` on x86-64 processors
with AVX2 and FMA. Both give the same bits. The environment variable `ROBUSTMDP_CORE` (`generic` or `avx2`) forces one.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # kernels are typed by the bindings


VARIABLE = "ROBUSTMDP_CORE"


def available() -> tuple[str, ...]:
    """Names of the variants that this processor can run, the preferred one first."""
    return ("avx2", "generic") if _load("generic").supports_avx2() else ("generic",)


def _load(variant: str) -> ModuleType:
    try:
        return import_module(f"robustmdp._core_{variant}")
    except ImportError as error:
        raise ImportError(
            "the compiled core of robustmdp is missing or was built for another Python: run `make core` "
            f"or `pip install -e .` in a source checkout, otherwise install robustmdp again ({error})"
        ) from error


def _choose() -> str:
    variants = available()
    chosen = os.environ.get(VARIABLE) or variants[0]
    if chosen not in ("avx2", "generic"):
        raise ImportError(f"{VARIABLE} must be 'generic' or 'avx2', got {chosen!r}")
    if chosen not in variants:
        raise ImportError(f"{VARIABLE}={chosen} needs a processor with AVX2 and FMA: unset it or set it to 'generic'")
    return chosen


variant = _choose()
"""Name of the variant in use."""

globals().update({name: value for name, value in vars(_load(variant)).items() if not name.startswith("_")})
