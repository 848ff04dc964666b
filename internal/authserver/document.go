package authserver

import (
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

const (
	maxDocument     = 16 << 10 // bytes
	documentTimeout = 5 * time.Second
)

// introduce fetches and stores the metadata document of a client whose id is a URL. The
// document is fetched only for a signed-in person, and each time again, so that the consent
// page shows its current content.
func (s *server) introduce(r *http.Request, to identity.Principal) error {
	id := r.URL.Query().Get("client_id")
	if !oauth.ValidDocumentID(id) {
		return nil // the library looks up other clients
	}
	if s.documents == nil { // even if the client was stored before documents were turned off
		return unreadable("this server reads no such documents; the program must register")
	}
	if err := s.readings.Take(subject(to)); err != nil {
		return err
	}
	m, err := s.readDocument(r.Context(), id)
	if err != nil {
		return err
	}
	return s.Service.Describe(r.Context(), id, m.registration())
}

func unreadable(format string, args ...any) error {
	return errs.New(errs.Invalid, "oauth.bad_client_metadata", format, args...)
}

// readDocument fetches the metadata document of a client. Errors do not quote the response.
func (s *server) readDocument(ctx context.Context, id string) (clientMetadata, error) {
	var m clientMetadata
	if err := s.Documents.Check(id); err != nil {
		return m, unreadable("the address %v", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return m, unreadable("the address cannot be used")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Parley")
	res, err := s.documents.Do(req)
	if err != nil {
		return m, unreadable("%s", s.whyNot(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return m, unreadable(
			"the response has the status %d; it must be 200, and redirects are not followed", res.StatusCode)
	}
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" &&
		!(strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")) {
		return m, unreadable("the response is not application/json")
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil:
		return m, unreadable("%s", s.whyNot(err))
	case len(body) > maxDocument:
		return m, unreadable("it is larger than %d bytes", maxDocument)
	case json.Unmarshal(body, &m) != nil:
		return m, unreadable("it is not the JSON object that describes a client")
	case m.ClientID != id:
		return m, unreadable("its client_id is not its own URL")
	case m.ClientSecret != "":
		return m, unreadable("it contains a client_secret, which everybody can read")
	}
	return m, nil
}

// whyNot returns why a document could not be fetched, without its URL.
func (s *server) whyNot(err error) string {
	s.Logger.Debug("the document of a client cannot be read", "error", err)
	return "it could not be reached: " + s.Documents.Explain(err)
}

// unknown shows the person why the metadata document of the client cannot be used.
func (s *server) unknown(w http.ResponseWriter, r *http.Request, err error) {
	known := errs.As(err)
	switch known.Kind {
	case errs.Invalid:
		s.Pages.Problem(w, r, http.StatusBadRequest,
			"The program that sent you here is described at "+r.URL.Query().Get("client_id")+
				", and that cannot be used: "+known.Message+". Nothing was allowed.")
	case errs.RateLimited:
		s.Pages.Problem(w, r, http.StatusTooManyRequests,
			"Programs asked for your permission too often. Try again in a minute.")
	default:
		s.fail(w, r, err)
	}
}
