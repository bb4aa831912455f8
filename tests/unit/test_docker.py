"""docker/: what compose starts fits the profiles we ship, and the README's SQL is the SQL that is run."""

from __future__ import annotations

import re
from typing import Any

import yaml
from kit.programs import ROOT

from cdc_consumer.profile import load_consumer
from cdc_producer.profile import load_producer
from docker.local.get_mysql import IMAGE
from docker.local.mysql_servers import FOLLOWER, LEADER

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]


def test_image_tags_are_fixed() -> None:
    assert SERVICES["leader"]["image"] == SERVICES["follower"]["image"] == IMAGE
    for service in SERVICES.values():
        assert re.fullmatch(r"[a-z/]+:\d+\.\d+\.\d+", service["image"])


def test_every_service_tells_when_it_is_ready_and_is_open_to_this_machine_only() -> None:
    for service in SERVICES.values():
        assert service["healthcheck"]["test"][0] == "CMD"
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_the_servers_are_set_as_those_of_the_demo_and_the_tests() -> None:
    assert SERVICES["leader"]["command"] == ["--server-id=1", *LEADER]
    assert SERVICES["follower"]["command"] == ["--server-id=2", *FOLLOWER, "--max-allowed-packet=1073741824"]


def test_the_profiles_we_ship_fit() -> None:
    producer, consumer = (ROOT / f"profiles/{role}_profile.toml" for role in ("producer", "consumer"))
    for role, database in (
        ("leader", load_producer(producer).database),
        ("follower", load_consumer(consumer).database),
    ):
        assert SERVICES[role]["ports"] == [f"{database}:3306"]
        account = (ROOT / f"docker/{role}.sql").read_text()
        assert f"CREATE USER '{database.user}'@'%' IDENTIFIED BY '{database.secret()}'" in account
        assert f"./{role}.sql:/docker-entrypoint-initdb.d/{role}.sql:ro" in SERVICES[role]["volumes"]
    (published,) = SERVICES["fluvio-sc"]["ports"]
    for path in (producer, consumer):
        assert f'# endpoint = "{published.rpartition(":")[0]}"' in path.read_text()


def test_fluvio_clients_are_told_where_compose_publishes_the_spu() -> None:
    class Loader(yaml.SafeLoader):
        """Knows the tag of Fluvio's records."""

    Loader.add_constructor("!1.0.0", lambda loader, node: loader.construct_mapping(node, deep=True))
    spec = yaml.load((ROOT / "docker/fluvio-spu.yaml").read_text(), Loader)["spec"]
    told = f"{spec['publicEndpoint']['ingress'][0]['hostname']}:{spec['publicEndpoint']['port']}"
    assert SERVICES["fluvio-spu"]["ports"] == [f"{told}:{spec['publicEndpointLocal']['port']}"]
    assert f"--id={spec['spuId']}" in SERVICES["fluvio-spu"]["command"]
    assert f"--private-server=fluvio-spu:{spec['privateEndpoint']['port']}" in SERVICES["fluvio-spu"]["command"]


def test_the_readme_asks_for_what_is_granted() -> None:
    sql = "".join((ROOT / f"docker/{role}.sql").read_text() for role in ("leader", "follower"))
    assert _privileges(sql.replace("/*!80200 ", "").replace("*/", "")) == _privileges((ROOT / "README.md").read_text())


def _privileges(text: str) -> set[str]:
    grants = re.findall(r"GRANT ([A-Z_,\s]+) ON \*\.\* TO 'fluvio'@'%'", text)
    return {" ".join(name.split()) for names in grants for name in names.split(",")}
