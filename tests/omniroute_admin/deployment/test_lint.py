"""The image and the compose file keep to the rules of their linters, and to our own."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.omniroute_admin.deployment.image import TOOLS, compose, image_environment, last, stages
from tests.shared import ROOT

OURS = ["web", "worker", "beat", "migrate"]
ALL = [*OURS, "proxy", "postgres", "redis"]
PINNED = re.compile(r"[\w./-]+:\d+\.\d+(\.\d+)?(-[\w.-]+)?")
# That a tag is pinned by its digest too is left to who deploys: none can be looked up without a registry of images.
ALLOWED = {"CL-0019"}


def tool(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(TOOLS / words[0]), *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False, **changes
    )


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    done = tool("hadolint", "--failure-threshold", "style", "--no-color", "Dockerfile")
    assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_the_linter_of_compose_files_finds_nothing() -> None:
    done = tool("compose-lint", "check", "--format", "json", "compose.yaml")
    found = json.loads(done.stdout)["findings"]
    assert [one for one in found if one["rule_id"] not in ALLOWED] == []


def test_compose_itself_takes_the_file() -> None:
    assert set(compose()["services"]) == set(ALL)


def test_caddy_itself_takes_the_proxys_configuration() -> None:
    done = tool("caddy", "validate", "--adapter", "caddyfile", "--config", "docs/operations/Caddyfile")
    assert done.returncode == 0, done.stderr
    assert "Valid configuration" in done.stderr + done.stdout


def test_each_stage_begins_from_a_version_and_the_last_runs_as_an_ordinary_user() -> None:
    for steps in stages():
        assert PINNED.fullmatch(steps[0].text.split()[0]), steps[0]
    words = [step.word for step in stages()[-1]]
    assert words.index("USER") < words.index("CMD")
    assert last("USER").text == "10001:10001"
    assert not {"ADD", "ARG"} & {step.word for steps in stages() for step in steps}


def test_the_image_ships_what_runs_and_nothing_of_the_tests_or_of_git() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    copied = {step.text.split()[0] for steps in stages() for step in steps if step.word == "COPY"} - {"--from=packages"}
    assert kept == copied
    assert copied == {
        "manage.py",
        "requirements.txt",
        "omniroute_admin",
        "ladder",
        "billing_catalog",
        "templates",
        "static",
    }


def test_no_secret_stays_in_a_layer_or_in_the_compose_file() -> None:
    assert not [name for name in image_environment() if "SECRET" in name or "PASSWORD" in name]
    text = (ROOT / "compose.yaml").read_text()
    for name, value in compose()["services"]["web"]["environment"].items():
        assert name.endswith("_FILE") or not re.search("SECRET|PASSWORD", name), name
        assert not re.search(r"//[^/@]*:[^/@]*@", value or ""), name
    assert not re.search(r"(?i)password: *\S", re.sub(r"postgres_password: *\{", "", text))


def test_the_health_check_of_the_image_asks_whether_it_lives_and_that_of_compose_whether_it_is_ready() -> None:
    assert "/healthz" in last("HEALTHCHECK").text
    assert "/readyz" in json.dumps(compose()["services"]["web"]["healthcheck"]["test"])


@pytest.mark.parametrize("name", ALL)
def test_each_service_is_bounded_confined_and_pinned(name: str) -> None:
    service = compose()["services"][name]
    limits = service["deploy"]["resources"]["limits"]
    assert {"cpus", "memory", "pids"} <= set(limits)
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert PINNED.fullmatch(service["image"])
    assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
    assert "ports" not in service or name == "proxy"


@pytest.mark.parametrize("name", OURS)
def test_our_own_services_run_as_the_images_user_and_write_into_memory_only(name: str) -> None:
    service = compose()["services"][name]
    assert service["user"] == last("USER").text
    assert "volumes" not in service
    places = [place.split(":")[0] for place in service["tmpfs"]]
    assert places == ["/tmp", image_environment()["VAR_DIR"]]


def test_web_and_worker_are_as_many_as_wanted_and_beat_is_one() -> None:
    services = compose(WEB_REPLICAS="5", WORKER_REPLICAS="3")["services"]
    assert [services[name]["deploy"]["replicas"] for name in ("web", "worker", "beat")] == [5, 3, 1]
    assert not [name for name in ("web", "worker", "beat") if "container_name" in services[name]]


def test_all_wait_for_the_migrations() -> None:
    for name in ("web", "worker", "beat"):
        needs = compose()["services"][name]["depends_on"]
        assert needs["migrate"]["condition"] == "service_completed_successfully"


def test_database_and_broker_are_reached_from_inside_only() -> None:
    told = compose()
    assert told["networks"]["inside"]["internal"] is True
    assert [list(told["services"][name]["networks"]) for name in ("postgres", "redis")] == [["inside"], ["inside"]]


def test_every_variable_that_compose_sets_is_one_that_the_product_reads_or_will() -> None:
    from omniroute_admin import settings

    told = set(compose()["services"]["web"]["environment"])
    assert told - settings.env.asked <= {"LOG_FORMAT"}


def test_a_copy_of_the_example_environment_moves_nothing_that_the_image_lays_out() -> None:
    lines = (line.partition("=") for line in (ROOT / ".env.example").read_text().splitlines())
    example = {name for name, equals, _ in lines if equals and name.isupper()}
    said = compose()["services"]["web"]["environment"]
    laid_out = image_environment()
    moved = {name: said.get(name) for name in example & set(laid_out) if said.get(name) != laid_out[name]}
    assert moved == {}
    assert said["DEBUG"] == "false"


def test_the_version_of_the_image_is_the_products() -> None:
    from omniroute_admin import VERSION

    assert compose()["services"]["web"]["image"] == f"omniroute-admin:{VERSION}"


def test_the_compose_file_is_plain_yaml_without_a_key_twice() -> None:
    class Strict(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key) for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
            assert len(keys) == len(set(keys)), keys
            return super().construct_mapping(node, deep)

    assert yaml.load(Path(ROOT / "compose.yaml").read_text(), Strict)
