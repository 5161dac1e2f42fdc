"""The database itself keeps the audit log append-only, whoever is connected through the portal's models."""

from django.db import migrations

FORWARD = """
CREATE FUNCTION portal_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Test databases are emptied between tests; nothing else sets this.
    IF TG_OP = 'TRUNCATE' AND current_setting('portal.audit_may_be_truncated', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'the audit log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME;
END $$;
CREATE TRIGGER portal_audit_no_change BEFORE UPDATE OR DELETE ON portal_auditevent
    FOR EACH ROW EXECUTE FUNCTION portal_audit_is_append_only();
CREATE TRIGGER portal_audit_no_truncate BEFORE TRUNCATE ON portal_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION portal_audit_is_append_only();
"""
BACKWARD = """
DROP TRIGGER portal_audit_no_truncate ON portal_auditevent;
DROP TRIGGER portal_audit_no_change ON portal_auditevent;
DROP FUNCTION portal_audit_is_append_only();
"""


class Migration(migrations.Migration):
    dependencies = [("portal", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
