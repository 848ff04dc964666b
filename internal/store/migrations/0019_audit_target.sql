-- compatible: yes
-- Entries about one key, member, client or agent. A made-up target can be longer than
-- PostgreSQL can index; 500 is identity.MaxAuditTarget.
CREATE INDEX audit_target ON audit (org_id, target, at, id) WHERE length(target) <= 500;
