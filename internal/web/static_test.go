package web_test

import (
	"net/http"
	"strings"
	"testing"
)

// Browsers request the icon of documents that name none.
func TestTheIconHasItsUsualURL(t *testing.T) {
	t.Parallel()
	res := newDashboard(t).visit(nil, http.MethodGet, "/favicon.ico", nil)
	if res.Code != http.StatusOK || res.Header().Get("Content-Type") != "image/svg+xml" ||
		!strings.Contains(res.Body.String(), "<svg") {
		t.Errorf("got %d %v, want the icon", res.Code, res.Header())
	}
}
