// Package rest is the Proposals API and task management over HTTP: the
// operations under /api/v1, their OpenAPI document and its page.
//
// An operation decodes, calls one service method and encodes; every rule lives
// in the domain packages. The package knows no SQL and no other transport.
package rest

import (
	"context"
	"net/http"

	"github.com/parley-dev/parley/internal/followup"
	"github.com/parley-dev/parley/internal/httpx"
	"github.com/parley-dev/parley/internal/proposal"
)

// Options are what the API needs.
type Options struct {
	Proposals *proposal.Proposals
	Followups *followup.Followups

	Version   string // of the build, shown in the OpenAPI document
	PublicURL string // without a trailing slash; empty: links are relative

	// Ready says whether the server can do its work; nil: always.
	Ready func(ctx context.Context) error
	// Metrics serves /metrics; nil: there is none.
	Metrics http.Handler
	// PageCacheBytes bounds the memory for encoded list pages. 0: 64 MiB;
	// negative: no cache.
	PageCacheBytes int64
}

// Mount adds every route of the API to the router.
func Mount(rt *httpx.Router, o Options) {}
