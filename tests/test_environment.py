"""pyproject.toml, the lock file, the conda environment and the rules agree with one another."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEPENDENCIES = PROJECT["dependencies"]
DEVELOPMENT = PROJECT["optional-dependencies"]["dev"]
ENVIRONMENT = yaml.safe_load((ROOT / "envs/nplm.yaml").read_text())
LOCKED = dict(
    line.split("==") for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")
)
RULES = {
    name: text
    for path in sorted(ROOT.glob("workflow/rules/*.smk"))
    for name, text in re.findall(r"^rule (\w+):\n((?:^(?: .*)?\n)+)", path.read_text(), re.M)
}
COMMON = (ROOT / "workflow/rules/common.smk").read_text()


@pytest.mark.parametrize("requirement", [*DEPENDENCIES, *DEVELOPMENT])
def test_every_requirement_is_bounded_and_locked_within_its_bounds(requirement):
    requirement = Requirement(requirement)
    operators = {specifier.operator for specifier in requirement.specifier}
    assert "==" in operators or "<" in operators, f"{requirement} has no upper bound"
    locked = {canonicalize_name(name): version for name, version in LOCKED.items()}
    assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)], prereleases=True)


def test_the_lock_asks_for_no_build_that_only_some_machines_have():
    assert not [f"{name}=={version}" for name, version in LOCKED.items() if "+" in version]


def test_the_conda_environment_holds_the_same_versions():
    *conda, pip = ENVIRONMENT["dependencies"]
    assert sorted(pip["pip"]) == sorted(DEPENDENCIES)
    assert f"python{PROJECT['requires-python']}" in conda


def test_the_rules_are_found():
    assert {"retrieve_corpus", "fit_model", "train_network", "score", "write_report_page"} <= RULES.keys()


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_says_what_it_does_and_names_log_and_environment(rule):
    text = RULES[rule]
    assert re.match(r'    """[A-Z].*\."""\n', text), "no docstring of one line"
    assert '    conda:\n        "../../envs/nplm.yaml"\n' in text
    assert "    log:\n" in text


@pytest.mark.parametrize("rule", sorted(RULES.keys() - {"write_configuration"}))
def test_every_rule_calls_the_subcommand_of_its_name_and_carries_its_code(rule):
    assert f"nplm {rule.replace('_', '-')} " in RULES[rule].replace("{resources.launch}", "nplm")
    code = re.search(r"code=(code_of\(.*|\w+_code),$", RULES[rule], re.M)[1]
    if not code.startswith("code_of"):  # a function of the job's wildcards, in common.smk
        code = re.search(rf"^def {code}\(wildcards\):\n(?:^ .*\n)+", COMMON, re.M)[0]
    assert re.search(rf'code_of\("nplm\.cli\.\w+", "{rule}"[),]', code)


def test_no_rule_names_a_launcher():
    assert not [name for name, text in RULES.items() if re.search(r"mpiexec|mpirun|srun", text)]


def test_numba_takes_no_more_threads_than_openmp_may():
    """Snakemake tells a job's threads to OpenMP alone."""
    program = "from contextlib import suppress\nfrom nplm.cli import main\nwith suppress(SystemExit):\n    main()\n"
    program += "import numba\nprint(numba.config.NUMBA_NUM_THREADS)\n"
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_NUM_THREADS"}
    command = [sys.executable, "-c", program, "--version"]
    output = subprocess.run(command, env=environment | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True).stdout
    assert output.splitlines()[-1] == "1"
