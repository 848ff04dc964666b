-- compatible: yes
-- What was done to one key, member, client or agent. A target that somebody made up can be longer
-- than PostgreSQL indexes; 500 is identity.MaxAuditTarget.
CREATE INDEX audit_target ON audit (org_id, target, at, id) WHERE length(target) <= 500;
