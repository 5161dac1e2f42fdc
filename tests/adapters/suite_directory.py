"""What a Directory has to do, whoever it is. Subclasses give one, and a way to say who is in it."""

from __future__ import annotations

from typing import Protocol

import pytest

from portal.ports import Directory, RetryableError

ADA = "user:default/ada"


class Town(Protocol):
    """People and groups to be put into a directory."""

    down: bool

    def user(self, ref: str, uid: str, *groups: str) -> None: ...

    def group(self, ref: str, *above: str) -> None: ...


class DirectorySuite:
    """Every directory passes these."""

    @pytest.fixture
    def town(self) -> Town:
        raise NotImplementedError

    @pytest.fixture
    def directory(self, town: Town) -> Directory:
        raise NotImplementedError

    def test_a_person_with_all_groups_above(self, town: Town, directory: Directory) -> None:
        town.user(ADA, "u-1", "group:default/search")
        town.group("group:default/search", "group:default/acme")
        town.group("group:default/acme", "group:default/world")
        town.group("group:default/world")
        found = directory.person(ADA)
        assert found is not None
        assert (found.ref, found.person_id, found.name, found.email) == (ADA, "u-1", "Ada", "ada@example.org")
        assert found.groups == ("group:default/acme", "group:default/search", "group:default/world")

    def test_groups_in_a_circle_end(self, town: Town, directory: Directory) -> None:
        town.user(ADA, "u-1", "group:default/a")
        town.group("group:default/a", "group:default/b")
        town.group("group:default/b", "group:default/a")
        found = directory.person(ADA)
        assert found is not None and found.groups == ("group:default/a", "group:default/b")

    def test_a_group_that_is_only_named_counts(self, town: Town, directory: Directory) -> None:
        town.user(ADA, "u-1", "group:default/gone")
        found = directory.person(ADA)
        assert found is not None and found.groups == ("group:default/gone",)

    def test_nobody(self, town: Town, directory: Directory) -> None:
        assert directory.person("user:default/nobody") is None

    def test_one_that_does_not_answer(self, town: Town, directory: Directory) -> None:
        town.user(ADA, "u-1")
        town.down = True
        with pytest.raises(RetryableError):
            directory.person(ADA)
