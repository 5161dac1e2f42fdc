"""What the wire may bring: answers, streams and ends of a scripted API server (cases 16 and 17)."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.kubernetes import KubernetesControlPlane, client, streams
from portal.ports import ClaimRef, PortError, RetryableError, TerminalError
from tests.adapters.fake_api_server import Events, FakeApiServer, Object, Reply, status
from tests.adapters.widgets import API_VERSION, KINDS, ref, widget

Plane = KubernetesControlPlane
WIDGETS = "/apis/test.example.org/v1/widgets"
ONE = "/apis/test.example.org/v1/namespaces/search-dev/widgets/one"
OBJECTS = "/apis/kubernetes.m.crossplane.io/v1alpha1/objects"
DISCOVERY = Reply(body={"kind": "APIResourceList", "resources": [{"name": "widgets", "kind": "Widget"}]})
ABSENT = Reply(404, status(404, "NotFound", 'widgets "one" not found', kind="widgets", name="one"))
CURSOR = "widgets.test.example.org=10"


@pytest.fixture
def fake() -> Iterator[FakeApiServer]:
    with FakeApiServer().running() as server:
        server.answers("/apis/test.example.org/v1", DISCOVERY)
        server.answers(OBJECTS, Reply(404, "404 page not found"))
        yield server


@pytest.fixture
def plane(fake: FakeApiServer, tmp_path: Path) -> Plane:
    return KubernetesControlPlane("fake", fake.kubeconfig(tmp_path, "good"))


def manifest(version: int, name: str = "one", **spec: Any) -> Object:
    claim = widget(name, **spec)
    metadata = {"uid": f"u-{name}", "resourceVersion": str(version), "generation": 1}
    return {**claim, "metadata": {**claim["metadata"], **metadata, "creationTimestamp": "2026-12-01T10:00:00Z"}}


def event(version: int, kind: str = "MODIFIED", name: str = "one", **spec: Any) -> Object:
    return {"type": kind, "object": manifest(version, name, **spec)}


def halves(version: int) -> tuple[str, str]:
    text = json.dumps(event(version)) + "\n"
    return text[:40], text[40:]


def bookmark(version: int) -> Object:
    found = {"kind": "Widget", "metadata": {"resourceVersion": str(version), "creationTimestamp": None}}
    return {"type": "BOOKMARK", "object": found}


def error_event(code: int, reason: str) -> Object:
    return {"type": "ERROR", "object": status(code, reason, reason)}


def listed(*items: Object, version: int = 10) -> Reply:
    return Reply(body={"kind": "WidgetList", "metadata": {"resourceVersion": str(version)}, "items": list(items)})


@dataclass(frozen=True)
class Watch:
    """How a watch goes: what is answered, what is seen of it, and how it ends for the caller (None: in peace)."""

    reason: str
    answer: Reply | Events
    seen: tuple[int, ...]
    error: str | None
    timeout: float = 3.0


WATCHES = [
    Watch("410 as the answer", Reply(410, status(410, "Expired", "too old")), (), "cursor-expired"),
    Watch("410 as an event", Events((event(11), error_event(410, "Expired"))), (11,), "cursor-expired"),
    Watch("another error as an event", Events((error_event(500, "InternalError"),)), (), "control-plane-down"),
    Watch("an end without one", Events((event(11),)), (11,), "stream-ended"),
    Watch("an end at once", Events(()), (), "stream-ended"),
    Watch("an end in its time", Events((event(11),), wait=1.2), (11,), None, timeout=1.0),
    Watch("cut in the middle of a chunk", Events((event(11),), end="cut"), (11,), "control-plane-down"),
    Watch("cut in the middle of a line", Events((event(11), '{"type":"MOD')), (11,), "control-plane-down"),
    Watch("an event in several chunks", Events((*halves(11), event(12)), wait=1.2), (11, 12), None, timeout=1.0),
    Watch("no JSON", Events((event(11), "<html>\n")), (11,), "watch-failed"),
    Watch("an event without an object", Events(({"type": "MODIFIED"},)), (), "watch-failed"),
    Watch("no resourceVersion", Events(({"type": "ADDED", "object": {"metadata": {}}},)), (), "watch-failed"),
    Watch(
        "a resourceVersion that is none",
        Events(({"type": "ADDED", "object": {**manifest(1), "metadata": {"resourceVersion": None}}},)),
        (),
        "watch-failed",
    ),
    Watch("empty lines", Events((event(11), "\n\n", event(12)), wait=1.2), (11, 12), None, timeout=1.0),
    Watch("bookmarks are no events", Events((bookmark(15), event(16)), wait=1.2), (16,), None, timeout=1.0),
    Watch("forbidden", Reply(403, status(403, "Forbidden", "no")), (), "forbidden"),
    Watch("throttled", Reply(429, "slow down", {"Retry-After": "1"}), (), "control-plane-busy"),
    Watch("half dead: neither bytes nor an end", Events((event(11),), end="open"), (11,), None, timeout=1.0),
]


@pytest.mark.parametrize("case", WATCHES, ids=[case.reason for case in WATCHES])
def test_a_watch(fake: FakeApiServer, plane: Plane, case: Watch) -> None:
    fake.answers(f"{WIDGETS}?watch", case.answer)
    seen: list[int] = []
    caught: PortError | None = None
    started = time.monotonic()
    try:
        for found in plane.watch(KINDS, CURSOR, case.timeout):
            seen.append(int(found.claim.resource_version))
            assert found.cursor == f"widgets.test.example.org={seen[-1]}"
    except PortError as error:
        caught = error
    assert tuple(seen) == case.seen, case.reason
    assert (caught.code if caught else None) == case.error, case.reason
    assert time.monotonic() - started < case.timeout + 2, "it ends in its time, whatever the other side does"
    (asked,) = [asked for asked in fake.asked if asked.query.get("watch")]
    assert asked.query["resourceVersion"] == "10"
    assert asked.query["allowWatchBookmarks"] == "true"
    assert int(asked.query["timeoutSeconds"]) >= 1


def test_a_dead_connection_ends_a_long_watch(
    fake: FakeApiServer, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No bookmark came when one was due: the other end is gone, although nothing said so."""
    monkeypatch.setattr(streams, "BOOKMARK_SECONDS", 0.2)
    monkeypatch.setattr(streams, "GRACE_SECONDS", 0.3)
    fake.answers(f"{WIDGETS}?watch", Events((event(11),), end="open"))
    started = time.monotonic()
    with pytest.raises(RetryableError) as ended:
        list(plane.watch(KINDS, CURSOR, 60))
    assert ended.value.code == "control-plane-timeout"
    assert time.monotonic() - started < 5


def test_a_quiet_watch_is_resumed_from_its_bookmark(fake: FakeApiServer, plane: Plane) -> None:
    """The cursor that the caller has is of the last event; what a bookmark said since then is not asked again."""
    fake.answers(f"{WIDGETS}?watch", Events((event(11), bookmark(90)), wait=1.2), Events((), wait=1.2))
    (found,) = plane.watch(KINDS, CURSOR, 1.0)
    assert list(plane.watch(KINDS, found.cursor, 1.0)) == []
    assert list(plane.watch(KINDS, CURSOR, 1.0)) == []
    versions = [asked.query["resourceVersion"] for asked in fake.asked if asked.query.get("watch")]
    assert versions == ["10", "90", "10"], "an older cursor is resumed where it is"


def test_a_watch_that_is_left_lets_go_of_its_connections(fake: FakeApiServer, plane: Plane) -> None:
    fake.answers(f"{WIDGETS}?watch", Events((event(11),), end="open"))
    watch = plane.watch(KINDS, CURSOR, 60)
    next(watch)
    watch.close()  # type: ignore[attr-defined]  # it is a generator
    deadline = time.monotonic() + 5
    while [thread for thread in threading.enumerate() if thread.name.startswith("watch ")]:
        assert time.monotonic() < deadline, "the thread ends"
        time.sleep(0.02)


def test_a_deleted_claim_is_gone(fake: FakeApiServer, plane: Plane) -> None:
    fake.answers(f"{WIDGETS}?watch", Events((event(11, "DELETED"),), wait=1.2))
    (found,) = plane.watch(KINDS, CURSOR, 1.0)
    assert (found.gone, found.claim.uid) == (True, "u-one")


class TestLists:
    def test_begins_with_what_the_server_has_in_memory(self, fake: FakeApiServer, plane: Plane) -> None:
        fake.answers(WIDGETS, listed(manifest(5), version=10), listed(manifest(5), version=11))
        assert plane.list(KINDS)[1] == CURSOR
        plane.list(KINDS)
        queries = [asked.query for asked in fake.asked if asked.path == WIDGETS]
        assert queries[0] == {"resourceVersion": "0"}
        assert queries[1] == {"resourceVersion": "10", "resourceVersionMatch": "NotOlderThan"}, "never back in time"

    def test_a_control_plane_that_was_restored(self, fake: FakeApiServer, plane: Plane) -> None:
        cause = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        future = Reply(504, status(504, "Timeout", "Too large resource version", cause))
        fake.answers(WIDGETS, listed(version=1000), future, listed(manifest(3), version=4))
        plane.list(KINDS)
        claims, cursor = plane.list(KINDS)
        assert ([claim.ref.name for claim in claims], cursor) == (["one"], "widgets.test.example.org=4")

    @pytest.mark.parametrize(
        ("reply", "code"),
        [
            (Reply(500, status(500, "InternalError", "etcd")), "control-plane-down"),
            (Reply(403, status(403, "Forbidden", "no")), "forbidden"),
            (Reply(200, "[]"), "control-plane-down"),
            (Reply(200, "<html>sign in</html>"), "control-plane-down"),
            (Reply(401, status(401, "Unauthorized", "no")), "credentials-refused"),
        ],
    )
    def test_one_that_fails_raises(self, fake: FakeApiServer, plane: Plane, reply: Reply, code: str) -> None:
        """Also when only one of the kinds fails: never less than all."""
        other = ClaimRef(API_VERSION, "Gadget", "gadgets", "", "")
        fake.answers("/apis/test.example.org/v1/gadgets", listed(manifest(5)))
        fake.answers(WIDGETS, reply)
        with pytest.raises(PortError) as refused:
            plane.list([other, *KINDS])
        assert refused.value.code == code

    def test_objects_come_in_pages_of_one_state(self, fake: FakeApiServer, plane: Plane) -> None:
        fake.answers(WIDGETS, listed())
        first = {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": []}
        expired = Reply(410, status(410, "Expired", "the continue token is too old"))
        last = {"metadata": {"resourceVersion": "8"}, "items": []}
        fake.answers(OBJECTS, Reply(body=first), expired, Reply(body=first), Reply(body=last))
        plane.list(KINDS)
        asked = [asked.query.get("continue", "") for asked in fake.asked if asked.path == OBJECTS]
        assert asked == ["", "more", "", "more"], "begun anew once the state that was read is compacted"

    def test_the_newest_revision_of_all_pages(self, fake: FakeApiServer, plane: Plane) -> None:
        def page(*numbers: int, more: str = "") -> Reply:
            items = [{"metadata": {"name": f"widgets-{n}"}, "spec": {"revision": n}} for n in numbers]
            return Reply(body={"metadata": {"continue": more}, "items": items})

        expired = Reply(410, status(410, "Expired", "the continue token is too old"))
        path = "/apis/apiextensions.crossplane.io/v1/compositionrevisions"
        fake.answers(path, page(1, more="a"), expired, page(1, 10, more="b"), page(2, 9))
        assert plane.composition_revision("widgets") == "widgets-10"
        assert fake.asked[0].query["labelSelector"] == "crossplane.io/composition-name=widgets"

    def test_a_page_that_expires_again_and_again_ends(self, fake: FakeApiServer, plane: Plane) -> None:
        fake.answers(OBJECTS, Reply(410, status(410, "Expired", "too old")))
        with pytest.raises(RetryableError):
            plane.list(KINDS)
        assert len([asked for asked in fake.asked if asked.path == OBJECTS]) == 3


class TestRequests:
    def test_credentials_are_read_again_once(self, fake: FakeApiServer, tmp_path: Path) -> None:
        path = fake.kubeconfig(tmp_path, "old")
        plane = KubernetesControlPlane("fake", path)
        fake.answers(ONE, ABSENT)
        assert plane.get(ref()) is None
        fake.kubeconfig(tmp_path, "new")
        fake.answers(ONE, Reply(401, status(401, "Unauthorized", "x")), ABSENT)
        assert plane.get(ref()) is None
        tokens = [asked.headers["authorization"] for asked in fake.asked]
        assert tokens == ["Bearer old", "Bearer old", "Bearer new"]

    def test_credentials_that_stay_wrong(self, fake: FakeApiServer, plane: Plane) -> None:
        fake.answers(ONE, Reply(401, status(401, "Unauthorized", "x")))
        with pytest.raises(RetryableError) as refused:
            plane.get(ref())
        assert refused.value.code == "credentials-refused"
        assert len(fake.asked) == 2, "tried again once, and no more"

    def test_a_kubeconfig_that_is_missing_or_wrong(self, tmp_path: Path) -> None:
        (tmp_path / "wrong").write_text("{")
        for path in (tmp_path / "missing", tmp_path / "wrong"):
            with pytest.raises(RetryableError) as refused:
                KubernetesControlPlane("prod", path).get(ref())
            assert refused.value.code == "control-plane-misconfigured"
            assert str(path) in refused.value.message

    def test_a_program_for_credentials_that_hangs(
        self, tmp_path: Path, fake: FakeApiServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from portal.adapters.kubernetes import access

        monkeypatch.setattr(access, "LOAD_SECONDS", 0.5)
        path = fake.kubeconfig(tmp_path, "x")
        run = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["5"]}
        text = path.read_text().replace('{"token": "x"}', json.dumps({"exec": run}))
        path.write_text(text)
        started = time.monotonic()
        with pytest.raises(RetryableError) as refused:
            KubernetesControlPlane("prod", path).get(ref())
        assert refused.value.code == "control-plane-misconfigured"
        assert time.monotonic() - started < 3

    def test_nobody_listens(self, tmp_path: Path, fake: FakeApiServer) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            fake.url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(RetryableError) as refused:
            KubernetesControlPlane("prod", fake.kubeconfig(tmp_path, "x")).get(ref())
        assert refused.value.code == "control-plane-down"
        assert "prod can't be reached to get Widget 'one'" in refused.value.message

    def test_too_slow(self, fake: FakeApiServer, plane: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client, "READ_SECONDS", 0.3)
        fake.answers(ONE, Reply(wait=5))
        started = time.monotonic()
        with pytest.raises(RetryableError) as refused:
            plane.get(ref())
        assert refused.value.code == "control-plane-timeout"
        assert time.monotonic() - started < 3

    def test_tls_with_something_that_speaks_none(self, fake: FakeApiServer, tmp_path: Path) -> None:
        fake.url = fake.url.replace("http:", "https:")
        with pytest.raises(RetryableError) as refused:
            KubernetesControlPlane("prod", fake.kubeconfig(tmp_path, "x")).get(ref())
        assert refused.value.code == "control-plane-untrusted"
        assert "authority" in refused.value.message

    def test_a_connection_that_was_closed_meanwhile_is_made_anew(self, tmp_path: Path, fake: FakeApiServer) -> None:
        """An API server that was restarted: the first to find out tries again by itself."""
        plane = KubernetesControlPlane("fake", fake.kubeconfig(tmp_path, "x"))
        fake.answers(ONE, Reply(404, ABSENT.body, {"connection": "close", "keep-alive": "yes"}), ABSENT)
        assert plane.get(ref()) is None
        assert plane.get(ref()) is None

    def test_an_apply_says_what_it_must(self, fake: FakeApiServer, plane: Plane) -> None:
        fake.answers(ONE, ABSENT, Reply(201, manifest(12)))
        assert plane.apply(widget()).resource_version == "12"
        sent = fake.asked[-1]
        assert sent.query == {"fieldManager": "portal", "fieldValidation": "Strict", "force": "false"}
        assert {key.lower(): value for key, value in sent.headers.items()}["content-type"] == (
            "application/apply-patch+yaml"
        )

    @pytest.mark.parametrize(
        ("reply", "code"),
        [
            (Reply(500, status(500, "", ".spec.x: field not declared in schema")), "claim-invalid"),
            (Reply(429, "wait", {"Retry-After": "5"}), "control-plane-busy"),
            (Reply(410, "gone"), "cursor-expired"),
        ],
    )
    def test_an_apply_that_is_refused_is_sent_once(
        self, fake: FakeApiServer, plane: Plane, reply: Reply, code: str
    ) -> None:
        fake.answers(ONE, ABSENT, reply)
        with pytest.raises(PortError) as refused:
            plane.apply(widget())
        assert refused.value.code == code
        assert [asked.method for asked in fake.asked if asked.path == ONE] == ["GET", "PATCH"]

    @pytest.mark.parametrize(
        ("claim", "says"),
        [
            (widget(name="../pods"), "/metadata/name"),
            (widget(namespace="a/b"), "/metadata/namespace"),
            (widget(namespace=""), "/metadata/namespace"),
            ({**widget(), "metadata": {"name": "a", "namespace": "b"}}, "/metadata/labels"),
            (widget(size=float("nan")), "/spec/size"),
            (widget(size=2**70), "64-bit"),
            (widget(note="\ud800"), "/spec/note"),
            ({"kind": "Widget"}, "/apiVersion"),
        ],
    )
    def test_what_is_no_claim_is_not_sent(self, fake: FakeApiServer, plane: Plane, claim: Object, says: str) -> None:
        fake.answers("/apis/test.example.org/v1/namespaces", ABSENT)
        with pytest.raises(TerminalError) as refused:
            plane.apply(claim)
        assert refused.value.code == "claim-invalid"
        assert says in refused.value.message
        assert not [asked for asked in fake.asked if asked.method != "GET"]

    def test_only_so_many_writes_at_once(self, fake: FakeApiServer, tmp_path: Path) -> None:
        plane = KubernetesControlPlane("fake", fake.kubeconfig(tmp_path, "x"), writes=2)
        flying, most = 0, 0
        lock = threading.Lock()
        answer = fake._whole

        def counted(request: Any, reply: Reply) -> None:
            nonlocal flying, most
            if request.command != "PATCH":
                return answer(request, reply)
            with lock:
                flying += 1
                most = max(most, flying)
            time.sleep(0.05)
            with lock:
                flying -= 1
            return answer(request, reply)

        fake._whole = counted  # type: ignore[method-assign]  # the test looks over its shoulder
        fake.answers("/apis/test.example.org/v1/namespaces", ABSENT)
        fake.answers(ONE, Reply(200, manifest(12)))
        threads = [threading.Thread(target=plane.apply, args=(widget(),)) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert most == 2
