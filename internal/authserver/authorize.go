package authserver

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/luikyv/go-oidc/pkg/goidc"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/identity"
	"github.com/parley-dev/parley/internal/oauth"
)

// authorize is the authorization endpoint. Nothing is stored before the person is signed in.
func (s *server) authorize(w http.ResponseWriter, r *http.Request) {
	address := s.router.ClientAddr(r).String()
	if err := s.limits.addresses.Take(address); err != nil {
		s.refusePage(w, r, err)
		return
	}
	member, err := s.Pages.SignedIn(r)
	switch {
	case err != nil:
		s.fail(w, r, err)
		return
	case member == nil:
		s.Pages.SignIn(w, r, r.URL.RequestURI())
		return
	}
	// The limit is per person and client: anyone can send a client's id, and must not use up
	// the budget of others.
	if err := s.limits.clients.Take(subject(member.Principal) + " " + r.URL.Query().Get("client_id")); err != nil {
		s.refusePage(w, r, err)
		return
	}
	done, err := s.limits.questions.reserve(address)
	if err != nil {
		s.refusePage(w, r, err)
		return
	}
	defer done()
	if err := s.introduce(r, member.Principal); err != nil {
		s.unknown(w, r, err)
		return
	}
	switch r.URL.Query().Get("response_mode") {
	case "", "query", "fragment":
	default:
		// The library would respond in any requested mode, at least with an error.
		s.Pages.Problem(w, r, http.StatusBadRequest,
			"The program that sent you here made a mistake: response_mode must be query or fragment. Nothing was allowed.")
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	ctx := context.WithValue(r.Context(), redirectKey{}, r.URL.Query().Get("redirect_uri"))
	ctx = context.WithValue(ctx, orgKey{}, member.Org)
	ctx = context.WithValue(ctx, addressKey{}, address)
	s.unlessUndecided(w, r.WithContext(ctx), func() (bool, error) {
		return s.Service.Vouched(r.Context(), member.Principal, r.URL.Query().Get("client_id"))
	})
}

// decidedKey is the context key of a *bool that is true once the person has decided.
type decidedKey struct{}

// unlessUndecided runs the protocol. If it would redirect the person to the client with an
// error before the person has decided, it shows a page instead. Anyone can register a client,
// so otherwise the server would be an open redirector. Errors are redirected to a client that
// is vouched for.
func (s *server) unlessUndecided(w http.ResponseWriter, r *http.Request, vouched func() (bool, error)) {
	decided := new(bool)
	b := &buffer{header: w.Header(), status: http.StatusOK}
	s.protocol.ServeHTTP(b, r.WithContext(context.WithValue(r.Context(), decidedKey{}, decided)))
	if to := w.Header().Get("Location"); to != "" && !*decided {
		ok, err := vouched()
		if err != nil {
			w.Header().Del("Location")
			s.fail(w, r, err)
			return
		}
		if !ok {
			w.Header().Del("Location")
			s.Pages.Problem(w, r, http.StatusBadRequest,
				"The program that sent you here made a mistake: "+mistake(to)+
					". Nothing was allowed, and nothing was sent to the program.")
			return
		}
	}
	w.WriteHeader(b.status)
	_, _ = w.Write(b.body.Bytes()) // the browser went away
}

// mistake returns the error description in a redirect URL.
func mistake(to string) string {
	u, err := url.Parse(to)
	if err != nil {
		return "the authorization request is invalid"
	}
	q := u.Query()
	if u.Fragment != "" {
		if f, err := url.ParseQuery(u.Fragment); err == nil {
			q = f
		}
	}
	if said := cmp.Or(q.Get("error_description"), q.Get("error")); said != "" {
		return said
	}
	return "the authorization request is invalid"
}

// answer handles the form of the consent page.
func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	address := s.router.ClientAddr(r).String()
	if err := s.limits.addresses.Take(address); err != nil {
		s.refusePage(w, r, err)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	w.Header().Set("Cache-Control", "no-store")
	ctx := context.WithValue(r.Context(), addressKey{}, address)
	s.unlessUndecided(w, r.WithContext(ctx), func() (bool, error) { return false, nil })
}

// decide shows the consent page, or handles its form if the method is POST.
func (s *server) decide(
	w http.ResponseWriter, r *http.Request, as *goidc.AuthnSession, _ *goidc.Client,
) (goidc.Status, error) {
	member, err := s.Pages.SignedIn(r)
	if err != nil {
		return goidc.StatusFailure, err
	}
	if member == nil || as.Subject != "" && as.Subject != subject(member.Principal) {
		return goidc.StatusFailure, goidc.NewError(goidc.ErrorCodeAccessDenied,
			"a different user is signed in; start again")
	}
	as.Subject, as.Username = subject(member.Principal), member.ID
	as.Store = map[string]any{storedOrg: member.Org, storedUser: member.ID}
	client, _, err := s.Service.ClientFor(r.Context(), member.Org, as.ClientID)
	if err != nil {
		if errs.KindOf(err) == errs.NotFound {
			err = goidc.NewError(goidc.ErrorCodeAccessDenied, "the client was deleted")
		}
		return goidc.StatusFailure, err
	}
	if !oauth.MatchRedirect(client.RedirectURIs, as.RedirectURI) {
		// The client was edited since the page was shown. Nothing is sent to the old URI.
		s.Pages.Problem(w, r, http.StatusBadRequest, "The program that sent you here is not at its address any more. "+
			"Nothing was allowed; start again from the program.")
		return goidc.StatusPending, nil
	}
	wanted, err := oauth.ParseScopes(as.Scopes)
	if err != nil {
		return goidc.StatusFailure, goidc.NewError(goidc.ErrorCodeInvalidScope, errs.As(err).Message)
	}
	offer, err := s.Service.Offer(r.Context(), *member, client, wanted)
	switch {
	case err != nil:
		return goidc.StatusFailure, err
	case len(offer) == 0:
		return goidc.StatusFailure, goidc.NewError(goidc.ErrorCodeInvalidScope,
			"none of the scopes can be given by this user to this client")
	}
	q := oauth.Question{
		Client: client, Member: *member, Scopes: offer, Audience: s.audience(as.Resources),
		RedirectURI: as.RedirectURI, Answer: AuthorizePath + "/" + as.ID,
	}
	if r.Method == http.MethodPost {
		decided, _ := r.Context().Value(decidedKey{}).(*bool)
		switch r.PostFormValue("decision") {
		case "refuse":
			*decided = true
			return goidc.StatusFailure, goidc.NewError(goidc.ErrorCodeAccessDenied, "the user refused")
		case "allow":
			var chosen identity.Scopes
			for _, scope := range r.PostForm["scope"] {
				chosen = append(chosen, identity.Scope(scope))
			}
			granted, err := oauth.Chosen(offer, chosen)
			if err == nil {
				*decided = true
				as.GrantedScopes, as.GrantedResources = granted.String(), as.Resources
				return goidc.StatusSuccess, nil
			}
			q.Problem = errs.As(err).Message
		}
	}
	s.Pages.Consent(w, r, q)
	return goidc.StatusPending, nil
}

// renderError shows an error that cannot be redirected to the client.
func (s *server) renderError(w http.ResponseWriter, r *http.Request, err error) error {
	var known goidc.Error
	if errors.As(err, &known) && known.StatusCode() < http.StatusInternalServerError {
		s.Pages.Problem(w, r, http.StatusBadRequest,
			"The program that sent you here made a mistake: "+known.Description+". Nothing was allowed.")
		return nil
	}
	if errors.Is(err, goidc.ErrNotFound) { // the client was deleted while the page was shown
		s.Pages.Problem(w, r, http.StatusBadRequest,
			"The program that sent you here is not known any more. Nothing was allowed.")
		return nil
	}
	s.fail(w, r, err)
	return nil
}

func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.Logger.ErrorContext(r.Context(), "a page of the authorization server failed", "error", err)
	s.Pages.Problem(w, r, http.StatusInternalServerError, "Something went wrong here. Try again in a moment.")
}

// logError is called for every error of the library. It logs only internal errors.
func (s *server) logError(ctx context.Context, err error) {
	var known goidc.Error
	if errors.Is(err, goidc.ErrNotFound) {
		return
	}
	if !errors.As(err, &known) || known.StatusCode() >= http.StatusInternalServerError {
		s.Logger.ErrorContext(ctx, "the authorization server failed", "error", err)
	}
}
