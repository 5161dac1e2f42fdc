"""The HTTP port: taken is a clear error or the next one, and a name that can't be listened on is an error."""

from __future__ import annotations

import socket

import pytest

from portal.running import doors
from portal.running.errors import PortTaken


def test_a_taken_port_is_an_error_or_the_next_one_is_taken() -> None:
    with doors.listen("127.0.0.1", 0, next_free=False) as first:
        with pytest.raises(PortTaken, match=rf"HTTP_PORT={first.port} on 127.0.0.1 is taken by another process"):
            doors.listen("127.0.0.1", first.port, next_free=False).__enter__()
        with doors.listen("127.0.0.1", first.port, next_free=True) as second:
            assert first.port < second.port <= first.port + doors.TRIED
            assert second.url == f"http://127.0.0.1:{second.port}"
            with socket.create_connection(("127.0.0.1", second.port), timeout=5):
                pass


@pytest.mark.parametrize(
    ("bind", "url"),
    [
        pytest.param("0.0.0.0", "http://127.0.0.1:", id="every interface is reached by the local one"),  # noqa: S104
        pytest.param("localhost", "http://localhost:", id="a name stays a name"),
    ],
)
def test_the_url_is_one_that_this_machine_can_reach(bind: str, url: str) -> None:
    with doors.listen(bind, 0, next_free=False) as door:
        assert door.url == f"{url}{door.port}"


def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(PortTaken, match=r"HTTP_BIND=192\.0\.2\.1 .* can't be listened on"):
        doors.listen("192.0.2.1", 8000, next_free=True).__enter__()  # RFC 5737: nobody has it
