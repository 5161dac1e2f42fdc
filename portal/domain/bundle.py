"""Policy bundles: a YAML text, checked and compiled into rules that governance can ask.

In charge of: everything that can be wrong with a bundle before it governs: its form, the CEL of every rule against the
schema of every offering it applies to, field pointers, codes, groups. Not in charge of: what rules decide (governance),
which bundle is active, or who is in a group (services).

Each rule is compiled in one or more scopes: for the offerings it names, with `spec` typed by their schema; for kind
Quota, with `spec` {dimension, limit}; or, naming neither, without a `spec`. So a wrong path is a load error, never a
guardrail that fails open. `old`, of the type of `spec`, is what was before; a rule that reads it where there was
nothing (a creation) can't be evaluated and so denies: ask for request.kind first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from portal.domain import strict_yaml, structural
from portal.domain.approval import MAX_GROUPS
from portal.domain.bundle_form import BUNDLE_SCHEMA, KINDS, QUOTA_SPEC, REQUEST_FIELDS
from portal.domain.cel import POLICY_SCHEMAS, CelError, Environment, Program, Result
from portal.domain.decision import Effect, StageDemand, digest
from portal.domain.schema import validator_for

QUOTA_SCOPE = "kind: Quota"  # no offering's name has a blank
ANY_SCOPE = ""  # request, usage, takes and cost only
_COST = re.compile(r"\bcost\b")  # too often (in a text, say) is on the safe side

# Built into governance; a bundle's rule must not look like one of them.
BUILT_IN_CODES = frozenset(
    {
        *("within-policy", "policy-error", "price-unknown", "stage-unsatisfiable"),
        *("quota-exceeded", "quota-missing", "quota-unchanged", "quota-below-held", "quota-above-parent"),
        *("quota-change", "quota-invalid", "budget-exceeded", "budget-soft", "budget-currency"),
        "offering-moved",
    }
)


class Offering(Protocol):
    """What is read of an offering here."""

    @property
    def name(self) -> str: ...
    @property
    def spec_schema(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class BundleProblem:
    """What is wrong, at which JSON pointer into the bundle."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.reason}"


class BundleError(Exception):
    """A bundle that can't govern; `problems` has everything that was found."""

    def __init__(self, problems: Sequence[BundleProblem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Approvers:
    """Who is asked: `quorum` members of `group`, within `timeout_hours`."""

    group: str
    quorum: int
    timeout_hours: int

    def stage(self, code: str, message: str) -> StageDemand:
        """The stage that asks them."""
        return StageDemand(code, self.group, self.quorum, self.timeout_hours, message)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A rule in one scope. `message` None: the rule's own text is its message."""

    when: Program
    message: Program | None


@dataclass(frozen=True, slots=True)
class Rule:
    """A guardrail (effect deny) or an approval stage (effect approve, with `approvers`). `programs` is by scope.

    `reads_cost` and `says_cost`: the condition, or the message, needs `cost`, so neither works on an unknown price.
    """

    code: str
    effect: Effect
    kinds: frozenset[str]
    message: str
    field: str | None
    approvers: Approvers | None
    programs: Mapping[str, Compiled]
    reads_cost: bool
    says_cost: bool


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle. `environments` has one for each scope that may be decided in; it binds values for its rules."""

    digest: str
    name: str
    currency: str
    valid_days: int
    guardrails: tuple[Rule, ...]
    approvals: tuple[Rule, ...]
    budget_approvers: Approvers
    price_reviewers: Approvers
    quota_approvers: Approvers
    environments: Mapping[str, Environment]

    @property
    def groups(self) -> frozenset[str]:
        """Every approver group that a stage may ask."""
        return frozenset(approvers.group for _, approvers in _stages(self))


def parse_bundle(text: str, offerings: Iterable[Offering], partial: bool = False) -> Bundle:
    """Check and compile a bundle for these offerings. Raises BundleError with every problem.

    `partial` is for a bundle that was checked as a whole before: offerings that aren't given are left out, not unknown.
    """
    try:
        value = strict_yaml.parse(text, "bundle")
    except strict_yaml.StrictYamlError as error:
        raise BundleError([BundleProblem("", str(error))]) from error
    found = validator_for(BUNDLE_SCHEMA).validate(value)
    if found:
        raise BundleError([BundleProblem(problem.pointer, problem.message) for problem in found])
    return _Compiler({offering.name: offering.spec_schema for offering in offerings}, partial).bundle(value, text)


def check_groups(bundle: Bundle, sizes: Mapping[str, int]) -> list[BundleProblem]:
    """Stages that nobody could ever fill, by the number of members of each group (case 22, at load)."""
    return [
        BundleProblem(path, f"needs {who.quorum} of group {who.group}, which has {sizes.get(who.group, 0)} members")
        for path, who in _stages(bundle)
        if sizes.get(who.group, 0) < who.quorum
    ]


def _stages(bundle: Bundle) -> Iterator[tuple[str, Approvers]]:
    for index, rule in enumerate(bundle.approvals):
        if rule.approvers is not None:
            yield f"/spec/approvals/{index}", rule.approvers
    yield "/spec/budgetApprovers", bundle.budget_approvers
    yield "/spec/priceReviewers", bundle.price_reviewers
    yield "/spec/quotaApprovers", bundle.quota_approvers


class _Compiler:
    """One run over one bundle, collecting problems."""

    def __init__(self, schemas: Mapping[str, Mapping[str, Any]], partial: bool) -> None:
        self._schemas = {**schemas, QUOTA_SCOPE: QUOTA_SPEC}
        self._partial = partial
        self._problems: list[BundleProblem] = []
        self._environments = {
            ANY_SCOPE: Environment(POLICY_SCHEMAS),
            **{
                scope: Environment({**POLICY_SCHEMAS, "spec": schema, "old": schema}, optional={"old"})
                for scope, schema in self._schemas.items()
            },
        }

    def bundle(self, value: Mapping[str, Any], text: str) -> Bundle:
        spec = value["spec"]
        made = Bundle(
            digest=digest({"bundle.yaml": text}),
            name=value["metadata"]["name"],
            currency=spec["currency"],
            valid_days=spec["quote"]["validDays"],
            guardrails=self._rules(spec["guardrails"], "/spec/guardrails", "deny"),
            approvals=self._rules(spec["approvals"], "/spec/approvals", "approve"),
            budget_approvers=_approvers(spec["budgetApprovers"]),
            price_reviewers=_approvers(spec["priceReviewers"]),
            quota_approvers=_approvers(spec["quotaApprovers"]),
            environments=self._environments,
        )
        self._check_codes(spec)
        if len(made.groups) > MAX_GROUPS:
            self._refuse("/spec", f"{len(made.groups)} approver groups; at most {MAX_GROUPS} are accepted")
        if self._problems:
            raise BundleError(self._problems)
        return made

    def _rules(self, rules: Sequence[Mapping[str, Any]], path: str, effect: Effect) -> tuple[Rule, ...]:
        return tuple(self._rule(rule, f"{path}/{index}", effect) for index, rule in enumerate(rules))

    def _rule(self, rule: Mapping[str, Any], path: str, effect: Effect) -> Rule:
        if ("message" in rule) == ("messageExpression" in rule):
            self._refuse(path, "exactly one of message and messageExpression is wanted")
        scopes = self._scopes(rule, path)
        programs = {scope: made for scope in scopes if (made := self._compile(rule, path, scope)) is not None}
        if "field" in rule:
            self._check_field(rule["field"], f"{path}/field", scopes)
        return Rule(
            code=rule["code"],
            effect=effect,
            kinds=frozenset(_kinds(rule)),
            message=rule.get("message", ""),
            field=rule.get("field"),
            approvers=_approvers(rule) if effect == "approve" else None,
            programs=programs,
            reads_cost=_COST.search(rule["when"]) is not None,
            says_cost=_COST.search(rule.get("messageExpression", "")) is not None,
        )

    def _scopes(self, rule: Mapping[str, Any], path: str) -> list[str]:
        """Where a rule is compiled; see the module's docstring."""
        applies, kinds = rule.get("appliesTo") or {}, _kinds(rule)
        if "offerings" not in applies:
            return [QUOTA_SCOPE] if kinds == ["Quota"] else [ANY_SCOPE]
        path += "/appliesTo/offerings"
        if "Quota" in kinds:
            self._refuse(path, "a quota is of no offering; leave Quota out of kinds, or offerings out of appliesTo")
        known = [name for name in applies["offerings"] if name in self._schemas and name != QUOTA_SCOPE]
        if not self._partial:
            there = ", ".join(sorted(self._schemas.keys() - {QUOTA_SCOPE})) or "none"
            for name in sorted(set(applies["offerings"]) - set(known)):
                self._refuse(path, f"there is no offering {name!r}; there are: {there}")
        return known

    def _compile(self, rule: Mapping[str, Any], path: str, scope: str) -> Compiled | None:
        where = f" (for {scope})" if scope else " (for every offering: only request, usage, takes and cost are known)"
        environment = self._environments[scope]
        when = self._program(environment, rule["when"], Result.BOOL, f"{path}/when", where)
        message = None
        if "messageExpression" in rule:
            text = rule["messageExpression"]
            message = self._program(environment, text, Result.STRING, f"{path}/messageExpression", where)
        return Compiled(when, message) if when is not None else None

    def _program(self, environment: Environment, text: str, result: Result, path: str, where: str) -> Program | None:
        try:
            return environment.compile(text, result)
        except CelError as error:
            self._refuse(path, f"{error}{where}")
            return None

    def _check_field(self, field: str, path: str, scopes: Iterable[str]) -> None:
        steps = [step.replace("~1", "/").replace("~0", "~") for step in field.split("/")[1:]]
        if steps[:1] != ["spec"]:
            if len(steps) != 1 or steps[0] not in REQUEST_FIELDS:
                self._refuse(path, f"{field} is no field of a request; /spec/… and {', '.join(REQUEST_FIELDS)} are")
            return
        for scope in scopes:
            if scope == ANY_SCOPE:
                self._refuse(path, f"{field}: a rule for every offering can't name a field below /spec")
            elif structural.find(self._schemas[scope], steps[1:]) is None:
                self._refuse(path, f"{field} is not in the schema of {scope}")

    def _check_codes(self, spec: Mapping[str, Any]) -> None:
        seen: dict[str, str] = {}
        for part in ("guardrails", "approvals"):
            for index, rule in enumerate(spec[part]):
                path, code = f"/spec/{part}/{index}/code", rule["code"]
                if code in BUILT_IN_CODES:
                    self._refuse(path, f"{code} is a code of the portal's own rules; choose another")
                if code in seen:
                    self._refuse(path, f"{code} is the code of {seen[code]} too; codes are unique")
                seen.setdefault(code, path)

    def _refuse(self, path: str, reason: str) -> None:
        self._problems.append(BundleProblem(path, reason))


def _kinds(rule: Mapping[str, Any]) -> list[str]:
    """Absent, a rule is for every kind that its scope can have."""
    applies = rule.get("appliesTo") or {}
    every = [kind for kind in KINDS if kind != "Quota"] if "offerings" in applies else list(KINDS)
    return list(applies.get("kinds", every))


def _approvers(value: Mapping[str, Any]) -> Approvers:
    return Approvers(value["group"], value["quorum"], value["timeoutHours"])
