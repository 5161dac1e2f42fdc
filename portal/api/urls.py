"""Which endpoint answers which path of /api/."""

from __future__ import annotations

from django.urls import include, path, re_path

from portal.api import audit, catalog, documentation, drift, fleet, governed, instances, offerings, requests, revisions
from portal.api.door import NothingHere
from portal.api.root import Me, Root

V1 = [
    path("", Root.as_view(), name="root"),
    path("me/", Me.as_view(), name="me"),
    path("requests/", requests.RequestList.as_view(), name="requests"),
    path("requests/preview/", requests.RequestPreview.as_view(), name="request-preview"),
    path("requests/<uuid:request_id>/", requests.RequestDetail.as_view(), name="request"),
    path("requests/<uuid:request_id>/rehearsal/", requests.RequestRehearsal.as_view(), name="request-rehearsal"),
    path("requests/<uuid:request_id>/timeline/", requests.RequestTimeline.as_view(), name="request-timeline"),
    path("requests/<uuid:request_id>/approve/", requests.RequestApprove.as_view(), name="request-approve"),
    path("requests/<uuid:request_id>/reject/", requests.RequestReject.as_view(), name="request-reject"),
    path("requests/<uuid:request_id>/withdraw/", requests.RequestWithdraw.as_view(), name="request-withdraw"),
    path("instances/", instances.InstanceList.as_view(), name="instances"),
    path("instances/<uuid:instance_id>/", instances.InstanceDetail.as_view(), name="instance"),
    path("instances/<uuid:instance_id>/revisions/", revisions.InstanceRevisions.as_view(), name="instance-revisions"),
    path("instances/<uuid:instance_id>/take-back/", drift.InstanceTakeBack.as_view(), name="instance-take-back"),
    path("instances/<uuid:instance_id>/ask-for-drift/", drift.InstanceAskForDrift.as_view(), name="instance-ask"),
    path("offerings/", offerings.OfferingList.as_view(), name="offerings"),
    re_path(r"^offerings/(?P<name>[a-z0-9][a-z0-9.-]{0,99})/$", offerings.OfferingDetail.as_view(), name="offering"),
    path("teams/", governed.TeamList.as_view(), name="teams"),
    path("quotas/", governed.QuotaList.as_view(), name="quotas"),
    path("budgets/", governed.BudgetList.as_view(), name="budgets"),
    path("prices/", governed.PriceList.as_view(), name="prices"),
    path("fleet/", fleet.FleetList.as_view(), name="fleet"),
    path("environments/", governed.EnvironmentList.as_view(), name="environments"),
    path("audit/", audit.AuditLog.as_view(), name="audit"),
    path("catalog/entities/", catalog.CatalogEntities.as_view(), name="catalog-entities"),
    path("catalog/changes/", catalog.CatalogChanges.as_view(), name="catalog-changes"),
    path("schema/", documentation.Schema.as_view(), name="schema"),
    path("docs/", documentation.Docs.as_view(), name="docs"),
]

app_name = "api"
urlpatterns = [
    path("v1/", include(V1)),
    re_path(r"", NothingHere.as_view()),
]
