"""Audit events of a kind are found by their time: failed sign-ins and changes of people are looked for in each attempt
and each vote."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("portal", "0003_team_slugs")]

    operations = [
        migrations.AddIndex(
            model_name="auditevent",
            index=models.Index(fields=["verb", "at"], name="portal_audi_verb_55f5cd_idx"),
        ),
    ]
