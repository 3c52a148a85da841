"""The compiled core: how it was built, which of its modules is used, and what is said where one cannot be."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from robustmdp import _core, _core_generic
from robustmdp.app.commands import main

REPORT = "import json, robustmdp._core as c; print(json.dumps([c.variant, c.build_info(), c.available()]))"


def run(code: str, choice: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "ROBUSTMDP_CORE"}
    if choice is not None:
        environment["ROBUSTMDP_CORE"] = choice
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_build_info_names_compiler_instruction_set_and_standard() -> None:
    info = _core.build_info()
    assert re.fullmatch(r"(GNU|Clang|AppleClang) \d+(\.\d+)*", info["compiler"])
    assert info["instruction_set"] in ("avx2", "generic", "arm64")
    assert info["standard"] >= 202002


def test_the_preferred_variant_is_used() -> None:
    variant, info, available = json.loads(run(REPORT).stdout)
    assert variant == available[0]
    assert info["instruction_set"] == variant or info["instruction_set"] == "arm64"
    assert available[-1] == "generic"


@pytest.mark.parametrize("choice", _core.available())
def test_a_variant_can_be_forced(choice: str) -> None:
    variant, info, _ = json.loads(run(REPORT, choice).stdout)
    assert variant == choice
    assert info["instruction_set"] in (choice, "arm64")


def test_both_modules_offer_the_same_names() -> None:
    if "avx2" not in _core.available():
        pytest.skip("this processor has no AVX2")
    from robustmdp import _core_avx2

    def public(module: object) -> set[str]:
        return {name for name in dir(module) if not name.startswith("_")}

    assert public(_core_avx2) == public(_core_generic)
    assert public(_core_generic) <= set(dir(_core))


def test_an_unknown_variant_is_refused_in_one_sentence() -> None:
    outcome = run("import robustmdp._core", "sse9")
    assert outcome.returncode == 1
    assert outcome.stderr.splitlines()[-1] == "ImportError: ROBUSTMDP_CORE must be 'generic' or 'avx2', got 'sse9'"


def test_a_variant_that_the_processor_cannot_run_is_refused() -> None:
    # A processor without AVX2 is simulated by replacing the generic module.
    code = (
        "import sys, types\n"
        "sys.modules['robustmdp._core_generic'] = types.SimpleNamespace(supports_avx2=lambda: False)\n"
        "import robustmdp._core"
    )
    outcome = run(code, "avx2")
    assert outcome.returncode == 1
    assert "ROBUSTMDP_CORE=avx2 needs a processor with AVX2 and FMA" in outcome.stderr.splitlines()[-1]


def test_a_missing_module_is_explained() -> None:
    outcome = run("import sys; sys.modules['robustmdp._core_generic'] = None; import robustmdp._core")
    assert outcome.returncode == 1
    assert "compiled core of robustmdp is missing" in outcome.stderr.splitlines()[-1]


def test_importing_the_package_loads_neither_numpy_nor_the_core() -> None:
    code = "import sys, robustmdp; print([name for name in sys.modules if 'numpy' in name or '_core_' in name])"
    assert run(code).stdout.strip() == "[]"


def test_doctor_shows_the_build() -> None:
    outcome = CliRunner().invoke(main, ["doctor", "--json"])
    build = json.loads(outcome.output)["build"]
    assert build["compiler"] == _core.build_info()["compiler"]
    assert {_core.variant, *build["also_available"]} == set(_core.available())
    assert build["standard"] == "C++20"
    table = CliRunner().invoke(main, ["doctor"]).output
    assert build["compiler"] in table
