"""The database itself keeps the memory of what was decided as it was written, whoever is connected.

Audit events, decisions, votes and documents (named by digest) are written once: UPDATE, DELETE and TRUNCATE are refused.
Only the tables' owner can take these triggers away, by name.
"""

from django.db import migrations

TABLES = ("portal_auditevent", "portal_decisionrecord", "portal_vote", "portal_document")

FUNCTION = """
CREATE FUNCTION portal_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, TG_OP;
END $$;
"""
TRIGGERS = """
CREATE TRIGGER portal_no_change BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION portal_is_append_only();
CREATE TRIGGER portal_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION portal_is_append_only();
"""
NO_TRIGGERS = """
DROP TRIGGER portal_no_truncate ON {table};
DROP TRIGGER portal_no_change ON {table};
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0001_initial")]

    operations = [
        migrations.RunSQL(
            FUNCTION + "".join(TRIGGERS.format(table=table) for table in TABLES),
            "".join(NO_TRIGGERS.format(table=table) for table in TABLES) + "DROP FUNCTION portal_is_append_only();",
        )
    ]
