from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('portal', '0008_signing_keys_published'),
    ]

    operations = [
        migrations.AddField(
            model_name='embeddedobject',
            name='set_by',
            field=models.JSONField(default=dict),
        ),
    ]
