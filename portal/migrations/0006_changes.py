"""Changes of living instances: what each changes, and since when the control plane has it."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

CHANGES = ["Change", "Suspend", "Resume"]


def note_when_claims_were_applied(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Until now only the audit log knew."""
    requests, events = apps.get_model("portal", "Request"), apps.get_model("portal", "AuditEvent")
    for request, at in events.objects.filter(verb="claim.apply").values_list("request_id", "at").iterator():
        requests.objects.filter(pk=request).update(applied_at=at)


class Migration(migrations.Migration):
    dependencies = [("portal", "0005_control_planes")]

    operations = [
        migrations.AddField("request", "difference", models.JSONField(default=list)),
        migrations.AddField("request", "replaces", models.JSONField(null=True)),
        migrations.AddField("request", "applied_at", models.DateTimeField(null=True)),
        migrations.AddField("request", "generation", models.BigIntegerField(null=True)),
        migrations.RemoveConstraint("request", "one_open_request_per_instance_and_kind"),
        migrations.RemoveConstraint("request", "one_open_change_per_instance"),
        migrations.AddConstraint(
            "request",
            models.UniqueConstraint(
                fields=["instance", "kind"],
                condition=models.Q(
                    ("state__in", ["Approved", "Delivering", "Draft", "Waiting"]),
                    models.Q(("kind__in", CHANGES), _negated=True),
                ),
                name="one_open_request_per_instance_and_kind",
            ),
        ),
        migrations.AddConstraint(
            "request",
            models.UniqueConstraint(
                fields=["instance"],
                condition=models.Q(("kind__in", CHANGES), ("state__in", ["Approved", "Draft", "Waiting"])),
                name="one_open_change_per_instance",
            ),
        ),
        migrations.AddConstraint(
            "request",
            models.UniqueConstraint(
                fields=["instance"],
                condition=models.Q(("kind__in", CHANGES), ("state", "Delivering")),
                name="one_delivering_change_per_instance",
            ),
        ),
        migrations.AddIndex(
            "request", models.Index(fields=["instance", "applied_at"], name="portal_requ_instanc_2169c9_idx")
        ),
        migrations.RunPython(note_when_claims_were_applied, migrations.RunPython.noop),
    ]
