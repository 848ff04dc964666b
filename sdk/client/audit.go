package client

import (
	"context"
	"iter"
	"time"
)

// AuditService reads the audit log.
type AuditService struct{ service }

// AuditEntry is one entry of the audit log.
type AuditEntry struct {
	ID        string    `json:"id"`
	At        time.Time `json:"at"`
	Actor     string    `json:"actor"`
	KeyID     string    `json:"key_id"`
	Action    string    `json:"action"`
	Target    string    `json:"target"`
	Detail    string    `json:"detail"`
	Outcome   string    `json:"outcome"` // done or refused
	Code      string    `json:"code"`    // of a refusal
	RequestID string    `json:"request_id"`
	Address   string    `json:"address"`
}

// AuditListParams filters the audit log. Zero fields do not filter.
type AuditListParams struct {
	Actor  string    `url:"actor"`
	Action string    `url:"action"` // such as key.create
	Target string    `url:"target"`
	From   time.Time `url:"from"`
	To     time.Time `url:"to"` // exclusive
	Cursor string    `url:"cursor"`
	Limit  int       `url:"limit"`
}

func (s *AuditService) list(p AuditListParams) listing[AuditEntry] {
	r := read("audit")
	r.query = values(p)
	return listing[AuditEntry]{c: s.c, call: r, member: "entries"}
}

// List returns one page of entries, newest first.
func (s *AuditService) List(ctx context.Context, p AuditListParams, opts ...Option) (*Page[AuditEntry], error) {
	return s.list(p).page(ctx, opts)
}

// All iterates over the entries of all pages.
func (s *AuditService) All(ctx context.Context, p AuditListParams, opts ...Option) iter.Seq2[AuditEntry, error] {
	return s.list(p).all(ctx, opts)
}
