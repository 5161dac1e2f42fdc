"""A team's slug is one in the database too: namespaces and addresses are made of it."""

import django.core.validators
from django.db import migrations, models

SLUG = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"


class Migration(migrations.Migration):
    dependencies = [("portal", "0002_append_only_audit")]

    operations = [
        migrations.AlterField(
            model_name="team",
            name="slug",
            field=models.CharField(
                max_length=63,
                unique=True,
                validators=[
                    django.core.validators.RegexValidator(
                        SLUG,
                        "Use a-z, 0-9 and '-', at most 63 characters, and neither begin nor end with '-'.",
                        "slug",
                    )
                ],
            ),
        ),
        migrations.AddConstraint(
            model_name="team",
            constraint=models.CheckConstraint(
                condition=models.Q(slug__regex=SLUG),
                name="team_slug_is_a_slug",
                violation_error_message="This is no slug: its namespaces would have no valid names.",
            ),
        ),
    ]
