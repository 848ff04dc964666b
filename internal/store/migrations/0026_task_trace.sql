-- compatible: yes
-- The trace that a task belongs to (W3C Trace Context: traceparent, a space and tracestate); empty if
-- its sender sent none and the server exports none. Older programs do not pass it on.
ALTER TABLE tasks ADD COLUMN trace TEXT NOT NULL DEFAULT '';
