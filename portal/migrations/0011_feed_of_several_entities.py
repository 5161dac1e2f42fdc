"""Several entities for an instance, and the Systems that they share: the feed is published anew, by the workers."""

import uuid

import django.db.models.deletion
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone


def publish_all(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """What is shown gets what now belongs to it, as by a change of its state."""
    apps.get_model("portal", "FeedHead").objects.get_or_create(pk=1)
    entities, rows = apps.get_model("portal", "FeedEntity"), apps.get_model("portal", "OutboxRow")
    for instance in entities.objects.filter(entity__isnull=False).values_list("instance_id", flat=True).iterator():
        rows.objects.create(
            lane=f"instance:{instance}:catalog",
            topic="publish",
            payload={"instance": str(instance)},
            due_at=timezone.now(),
        )


class Migration(migrations.Migration):
    dependencies = [("portal", "0010_identities")]

    operations = [
        migrations.AddField("feedhead", "feed", models.UUIDField(default=uuid.uuid4)),
        migrations.AddField(
            "feedentity",
            "part",
            models.CharField(
                choices=[("main", "Main"), ("api", "Api"), ("system", "System")],
                db_default="main",
                default="main",
                max_length=10,
            ),
        ),
        migrations.AddField(
            "feedentity",
            "team",
            models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="portal.team"
            ),
        ),
        migrations.AddField(
            "feedentity",
            "environment",
            models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="portal.environment"
            ),
        ),
        migrations.AlterField(
            "feedentity",
            "instance",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="feed_entities",
                to="portal.instance",
            ),
        ),
        migrations.AddConstraint(
            "feedentity",
            models.CheckConstraint(
                condition=models.Q(
                    ("environment__isnull", False),
                    ("instance__isnull", True),
                    ("part", "system"),
                    ("team__isnull", False),
                )
                | models.Q(("instance__isnull", False), ("part__in", ["main", "api"])),
                name="feed_entity_is_of_something",
            ),
        ),
        migrations.AddConstraint(
            "feedentity",
            models.UniqueConstraint(
                condition=models.Q(("part", "system")),
                fields=("team", "environment"),
                name="one_system_per_team_and_place",
            ),
        ),
        migrations.RunPython(publish_all, migrations.RunPython.noop),
    ]
