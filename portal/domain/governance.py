"""The decision: what quota, budget and policies say of a request, from its inputs alone.

In charge of: asking every rule, and making one Decision of all answers, so that the same inputs give the same decision
in a year (explain) and a decision made again at delivery can be compared with what people voted on. Not in charge of:
gathering inputs or storing decisions (services), the arithmetic (quota, budget, pricing), or votes (approval).

It fails closed. A rule that can't be evaluated denies (`policy-error`); a condition that needs a price nobody knows is
taken as met (an approval is asked for, a guardrail denies).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from portal.domain import approval, budget, notes, pricing, quota
from portal.domain.bundle import ANY_SCOPE, QUOTA_SCOPE, Bundle, Compiled, Rule
from portal.domain.cel import Bindings, CelError, Environment
from portal.domain.decision import (
    BudgetLine,
    Decision,
    Inputs,
    Outcome,
    Quote,
    Reason,
    StageDemand,
    UsageLine,
)
from portal.domain.offerings import Offering


@dataclass(frozen=True, slots=True)
class _Figures:
    """What a request takes and costs, and what arithmetic alone says of that."""

    usage: tuple[UsageLine, ...] = ()
    takes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    quote: Quote | None = None
    budgets: tuple[BudgetLine, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def price_unknown(self) -> bool:
        return self.quote is not None and self.quote.monthly is None


@dataclass(slots=True)
class _Verdicts:
    """Reasons and stages as they are found."""

    reasons: list[Reason] = field(default_factory=list)
    stages: list[StageDemand] = field(default_factory=list)

    def denied(self) -> bool:
        return any(reason.effect == "deny" for reason in self.reasons)


def decide(inputs: Inputs, offering: Offering | None, bundle: Bundle) -> Decision:
    """What all rules together say.

    `offering` is the one of inputs.offering_digest, None for kind Quota; `bundle` the one of inputs.bundle_digest,
    compiled for that offering (ValueError when it isn't).

    Every failing line and every matching rule is named. A decision has at least one reason. Stages are there whenever
    they are demanded and nothing but a lack of approvers denies.
    """
    scope = _scope(inputs, offering, bundle)
    found = _Verdicts()
    try:
        figures = _figures(inputs, offering, bundle)
    except CelError as error:
        message = f"what this request takes can't be computed, so it can't be allowed: {error}"
        return Decision("Denied", (Reason("policy-error", "deny", message),), (), (), None, ())
    found.reasons += figures.reasons
    _ask_rules(inputs, figures, bundle, scope, found)
    _add_built_in_stages(inputs, figures, bundle, found)
    found.reasons += notes.moved(inputs)
    stages = () if found.denied() else _one_per_group(found.stages)
    found.reasons += approval.unsatisfiable(stages, inputs.approvers, inputs.shared_approvers)
    outcome: Outcome = "Denied" if found.denied() else "NeedsApproval" if stages else "Allowed"
    if outcome == "Allowed":
        found.reasons.append(notes.within(inputs, figures.usage, figures.quote))
    return Decision(outcome, tuple(found.reasons), stages, figures.usage, figures.quote, figures.budgets)


def denials_after_votes(now: Decision, previous: Decision | None = None) -> list[Reason]:
    """What denies a request whose stages were passed already.

    That a stage couldn't be filled any more doesn't: those who voted did so before they left the group. It does when
    `previous`, what they voted on, shows that they have to be asked again, which would wait for nobody.
    """
    asks_again = previous is not None and bool(delivery_check(previous, now))
    denials = [reason for reason in now.reasons if reason.effect == "deny"]
    return [reason for reason in denials if asks_again or reason.code != "stage-unsatisfiable"]


def delivery_check(previous: Decision, now: Decision) -> list[Reason]:
    """What has changed since `previous` was voted on (or allowed) so that the votes don't stand; empty: they do.

    They stand while nothing is demanded that wasn't, of no other group and no more people, and the cost is within the
    quote. Where the policies ask nobody now, there is nobody to ask again. Denials are denials_after_votes.
    """
    if not now.stages:
        return []
    seen = {reason.code for reason in previous.reasons if reason.effect == "approve"}
    new = [reason for reason in now.reasons if reason.effect == "approve" and reason.code not in seen]
    changed = [Reason("new-stage", "approve", f"{r.code} asks for approval now: {r.message}", r.field) for r in new]
    quorums = {stage.group: stage.quorum for stage in previous.stages}
    for stage in now.stages:
        if stage.quorum > quorums.get(stage.group, 0) and stage.code in seen:
            asked = f"{stage.code} needs {stage.quorum} of {stage.group} now"
            changed.append(Reason("new-stage", "approve", f"{asked}; there were {quorums.get(stage.group, 0)}"))
    if rise := _rise(previous.quote, now.quote):
        changed.append(Reason("cost-above-quote", "approve", rise))
    return changed


def _one_per_group(demands: list[StageDemand]) -> tuple[StageDemand, ...]:
    """What several rules ask of one group becomes one stage, with the code of the first: its members look once, at all
    of it, and don't need to be more people than the largest quorum."""
    merged: dict[str, StageDemand] = {}
    for demand in demands:
        first = merged.setdefault(demand.group, demand)
        if first is not demand:
            merged[demand.group] = StageDemand(
                code=first.code,
                group=first.group,
                quorum=max(first.quorum, demand.quorum),
                timeout_hours=min(first.timeout_hours, demand.timeout_hours),
                message=f"{first.message}; {demand.message}",
            )
    return tuple(merged.values())


def _rise(old: Quote | None, new: Quote | None) -> str | None:
    """A quote whose price was unknown was accepted as that, so a known price is no rise."""
    if old is None or new is None or old.monthly is None:
        return None
    before = budget.money(old.monthly, old.currency)
    if new.monthly is None:
        return f"the price is unknown now; {before} a month was quoted"
    if new.currency != old.currency or new.monthly > old.monthly:
        return f"it costs up to {budget.money(new.monthly, new.currency)} a month now; {before} was quoted"
    return None


def _scope(inputs: Inputs, offering: Offering | None, bundle: Bundle) -> str:
    if inputs.request.kind == "Quota":
        return QUOTA_SCOPE
    if offering is None:
        raise ValueError(f"a request of kind {inputs.request.kind} is decided with its offering")
    if offering.name not in bundle.environments:
        raise ValueError(f"the bundle was not compiled for offering {offering.name}")
    return offering.name


def _figures(inputs: Inputs, offering: Offering | None, bundle: Bundle) -> _Figures:
    kind, team = inputs.request.kind, inputs.request.team
    if kind == "Quota":
        return _quota_figures(inputs)
    if kind == "Delete" or offering is None:
        return _Figures()
    # Of a change all is said of the difference: what it takes, in place of what its instance holds already.
    amounts = offering.measure(inputs.spec)
    usage = quota.usage_lines(team, amounts, inputs.held)
    keys, regions = offering.price_keys(inputs.spec), offering.regions(inputs.spec)
    quote = pricing.quote(keys, regions, inputs.prices, inputs.at, bundle.currency, bundle.valid_days)
    budgets = budget.budget_lines(inputs.budgets, quote, inputs.committed)
    reasons = [*quota.check_usage(team, usage), *budget.check_budgets(budgets, quote)]
    if quote.monthly is None:
        problems = dict.fromkeys(line.problem for line in quote.lines if line.problem)
        told = "; ".join(problem.removeprefix("needs review: ") for problem in problems)
        message = f"its cost is unknown, and so has to be reviewed: {told}"
        reasons.append(Reason("price-unknown", "approve", message))
    return _Figures(usage, _takes(offering, inputs.old, amounts), quote, budgets, tuple(reasons))


def _takes(offering: Offering, old: Mapping[str, Any] | None, after: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """An old spec that doesn't fit the offering as it is now took nothing that can be told: then a rule about growth
    sees all of it, and asks."""
    try:
        before = offering.measure(old) if old is not None else {}
    except CelError:
        before = {}
    return {each: {"before": before.get(each, 0), "after": after.get(each, 0)} for each in {**before, **after}}


def _quota_figures(inputs: Inputs) -> _Figures:
    dimension, limit = inputs.spec.get("dimension"), inputs.spec.get("limit")
    if not isinstance(dimension, str) or not isinstance(limit, int) or isinstance(limit, bool) or limit < 0:
        message = "a quota change names a dimension, a text, and a limit, an integer of 0 or more"
        return _Figures(reasons=(Reason("quota-invalid", "deny", message, "/spec"),))
    old = (inputs.old or {}).get("limit")
    reasons = quota.check_change(inputs.request.team, dimension, old, limit, inputs.held)
    lines = [UsageLine(h.team, h.dimension, h.held, h.held, h.limit) for h in inputs.held if h.dimension == dimension]
    return _Figures(usage=tuple(lines), reasons=reasons)


def _ask_rules(inputs: Inputs, figures: _Figures, bundle: Bundle, scope: str, found: _Verdicts) -> None:
    try:
        bindings = _bind(inputs, figures, bundle, scope)
    except CelError as error:
        message = f"the policies can't be asked about this request, so it can't be allowed: {error}"
        found.reasons.append(Reason("policy-error", "deny", message))
        return
    for rule, compiled, values in _applicable(inputs, bundle, scope, bindings):
        reason = _ask(rule, compiled, values, figures)
        if reason is None:
            continue
        found.reasons.append(reason)
        if reason.effect == "approve" and rule.approvers is not None:
            found.stages.append(rule.approvers.stage(rule.code, reason.message))


def _bind(inputs: Inputs, figures: _Figures, bundle: Bundle, scope: str) -> dict[str, Bindings]:
    shared: dict[str, Any] = {
        "request": {
            "kind": inputs.request.kind,
            "requester": inputs.request.requester,
            "groups": list(inputs.request.groups),
            "team": inputs.request.team,
            "environment": inputs.request.environment,
            "labels": inputs.request.labels,
            "reason": inputs.request.reason,
        },
        "usage": {line.dimension: _usage_value(line) for line in quota.tightest(figures.usage).values()},
        "takes": figures.takes,
        "cost": _cost_value(inputs, figures),
    }
    environment, values = bundle.environments[scope], {**shared, "spec": inputs.spec}
    return {
        ANY_SCOPE: bundle.environments[ANY_SCOPE].bind(shared),
        scope: _with_old(environment, values, inputs.old) or environment.bind(values),
    }


def _with_old(environment: Environment, values: Mapping[str, Any], old: Mapping[str, Any] | None) -> Bindings | None:
    """None where there is no `old`, or it doesn't fit the offering as it is now: a rule that reaches it denies then."""
    try:
        return None if old is None else environment.bind({**values, "old": old})
    except CelError:
        return None


def _usage_value(line: UsageLine) -> dict[str, int]:
    value = {"before": line.before, "after": line.after}
    return value if line.limit is None else {**value, "limit": line.limit}


def _cost_value(inputs: Inputs, figures: _Figures) -> dict[str, int]:
    own = inputs.committed or Decimal(0)
    team = [b.committed for b in inputs.budgets if b.team == inputs.request.team]
    before = _cents(team[0] + own) if team else _cents(own)
    monthly = figures.quote.monthly if figures.quote else None
    delta = _cents(monthly) - _cents(own) if monthly is not None else 0
    return {"before": before, "after": before + delta, "delta": delta, "monthly": _cents(monthly or Decimal(0))}


def _cents(amount: Decimal) -> int:
    return int((amount * 100).to_integral_value(ROUND_HALF_UP))


def _applicable(
    inputs: Inputs, bundle: Bundle, scope: str, bindings: Mapping[str, Bindings]
) -> Iterator[tuple[Rule, Compiled, Bindings]]:
    for rule in (*bundle.guardrails, *bundle.approvals):
        if inputs.request.kind in rule.kinds:
            for where in (ANY_SCOPE, scope):
                if compiled := rule.programs.get(where):
                    yield rule, compiled, bindings[where]


def _ask(rule: Rule, compiled: Compiled, values: Bindings, figures: _Figures) -> Reason | None:
    """The rule's reason when it matches, `policy-error` when it can't be evaluated, else None."""
    if figures.price_unknown and rule.reads_cost:
        return Reason(rule.code, rule.effect, f"{rule.code} depends on the cost, which is unknown", rule.field)
    try:
        if not compiled.when.evaluate(values):
            return None
        if compiled.message is None:
            return Reason(rule.code, rule.effect, rule.message, rule.field)
        if figures.price_unknown and rule.says_cost:
            return Reason(rule.code, rule.effect, f"{rule.code} applies; the cost is unknown", rule.field)
        return Reason(rule.code, rule.effect, compiled.message.evaluate(values) or rule.code, rule.field)
    except CelError as error:
        message = f"policy rule {rule.code} can't be evaluated, so the request can't be allowed: {error}"
        return Reason("policy-error", "deny", message, rule.field)


def _add_built_in_stages(inputs: Inputs, figures: _Figures, bundle: Bundle, found: _Verdicts) -> None:
    """Stages without a rule: over a soft line, an unknown price, and a quota change that no rule has a stage for."""
    if inputs.request.kind == "Quota" and not found.stages:
        dimension, old, new = inputs.spec.get("dimension"), (inputs.old or {}).get("limit"), inputs.spec.get("limit")
        was = "none" if old is None else old
        message = f"the quota of {inputs.request.team} for {dimension} would go from {was} to {new}"
        found.reasons.append(Reason("quota-change", "approve", message, "/spec/limit"))
        found.stages.append(bundle.quota_approvers.stage("quota-change", message))
    for code, who in (("budget-soft", bundle.budget_approvers), ("price-unknown", bundle.price_reviewers)):
        messages = [reason.message for reason in figures.reasons if reason.code == code]
        if messages:
            found.stages.append(who.stage(code, "; ".join(messages)))


__all__ = ["decide", "delivery_check", "denials_after_votes"]
