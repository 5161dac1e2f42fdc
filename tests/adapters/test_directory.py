"""The directory of Backstage's catalog, and a fake one for tests of services, under one suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.adapters.backstage.directory import BackstageDirectory
from portal.ports import Directory, DirectoryPerson, RetryableError
from tests.adapters.suite_directory import ADA, DirectorySuite
from tests.backstage_keys import Stand, standing


class FakeDirectory:
    """People and groups in memory."""

    def __init__(self) -> None:
        self.people: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.above: dict[str, tuple[str, ...]] = {}
        self.down = False

    def user(self, ref: str, uid: str, *groups: str) -> None:
        self.people[ref] = (uid, groups)

    def group(self, ref: str, *above: str) -> None:
        self.above[ref] = above

    def person(self, ref: str) -> DirectoryPerson | None:
        if self.down:
            raise RetryableError("backstage-unavailable", "it can't be reached")
        if ref not in self.people:
            return None
        uid, groups = self.people[ref]
        found, new = set(groups), set(groups)
        while new:
            new = {parent for group in new for parent in self.above.get(group, ())} - found
            found |= new
        name = ref.rpartition("/")[2]
        return DirectoryPerson(ref, uid, name.title(), f"{name}@example.org", tuple(sorted(found)))


class TestFake(DirectorySuite):
    @pytest.fixture
    def town(self) -> FakeDirectory:  # type: ignore[override]
        return FakeDirectory()

    @pytest.fixture
    def directory(self, town: FakeDirectory) -> Directory:  # type: ignore[override]
        return town


class TestBackstage(DirectorySuite):
    @pytest.fixture
    def town(self) -> Iterator[Stand]:  # type: ignore[override]
        with standing() as found:
            yield found

    @pytest.fixture
    def directory(self, town: Stand) -> Directory:  # type: ignore[override]
        return BackstageDirectory(town.url, "a-static-token-of-tests")

    def test_an_annotation_may_say_who_it_is(self, town: Stand) -> None:
        town.user(ADA, "u-1")
        town.entities[ADA]["metadata"]["annotations"] = {"example.org/id": "e-42"}
        found = BackstageDirectory(town.url, "t", "example.org/id").person(ADA)
        assert found is not None and found.person_id == "e-42"

    def test_without_it_nobody_is_known(self, town: Stand) -> None:
        town.user(ADA, "u-1")
        with pytest.raises(RetryableError, match="has no annotation"):
            BackstageDirectory(town.url, "t", "example.org/id").person(ADA)

    def test_nobody_listens(self) -> None:
        with pytest.raises(RetryableError, match="can't be reached"):
            BackstageDirectory("http://127.0.0.1:1", "t").person(ADA)
