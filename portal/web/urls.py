"""Addresses of the pages."""

from __future__ import annotations

from django.urls import path

from portal.web import changes, drift, fleet, home, inbox, instances, lists, offerings, requests, signin, teams

urlpatterns = [
    path("", home.home, name="home"),
    path("login/", signin.SignIn.as_view(), name="login"),
    path("logout/", signin.SignOut.as_view(), name="logout"),
    path("offerings/", offerings.offerings, name="offerings"),
    path("offerings/<slug:name>/", offerings.offering, name="offering"),
    path("offerings/<slug:name>/request/", offerings.create, name="create"),
    path("offerings/<slug:name>/preview/", offerings.preview, name="create-preview"),
    path("offerings/<slug:name>/rehearsal/", offerings.rehearsal, name="create-rehearsal"),
    path("requests/", lists.requests, name="requests"),
    path("requests/<uuid:request_id>/", requests.request, name="request"),
    path("requests/<uuid:request_id>/rehearsal/", requests.rehearsal, name="rehearsal"),
    path("requests/<uuid:request_id>/vote/", requests.vote, name="vote"),
    path("requests/<uuid:request_id>/withdraw/", requests.withdraw, name="withdraw"),
    path("instances/", lists.instances, name="instances"),
    path("instances/<uuid:instance_id>/", instances.instance, name="instance"),
    path("instances/<uuid:instance_id>/change/", changes.change, name="change"),
    path("instances/<uuid:instance_id>/change/preview/", changes.preview, name="change-preview"),
    path("instances/<uuid:instance_id>/change/rehearsal/", changes.rehearsal, name="change-rehearsal"),
    path("instances/<uuid:instance_id>/suspend/", changes.suspend, name="suspend"),
    path("instances/<uuid:instance_id>/resume/", changes.resume, name="resume"),
    path("instances/<uuid:instance_id>/revisions/", changes.history, name="revisions"),
    path("instances/<uuid:instance_id>/delete/", instances.delete, name="delete"),
    path("instances/<uuid:instance_id>/drift/", drift.drift, name="drift"),
    path("inbox/", inbox.inbox, name="inbox"),
    path("teams/", teams.teams, name="teams"),
    path("teams/<slug:slug>/", teams.team, name="team"),
    path("quotas/raise/", teams.raise_quota, name="raise-quota"),
    path("quotas/raise/preview/", teams.quota_preview, name="quota-preview"),
    path("fleet/", fleet.clusters, name="fleet"),
    path("prices/", lists.prices, name="prices"),
    path("audit/", lists.audit, name="audit"),
]
