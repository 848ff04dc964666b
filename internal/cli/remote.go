package cli

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/parley-dev/parley/internal/app"
	"github.com/parley-dev/parley/internal/config"
	"github.com/parley-dev/parley/sdk/client"
)

// config returns how commands call a server. Retries in a row print one line.
func (e *env) config(server, key string) client.Config {
	cfg := client.Config{URL: server, Key: key, UserAgent: "parley/" + app.Version(), Retry: e.retry}
	cfg.Retry.OnRetry = func(r client.Retrying) {
		e.lost = r.Err
		if r.Attempt > 1 {
			return
		}
		what := "trying again"
		if r.Stream {
			what = "reconnecting"
		}
		e.notice(fmt.Sprintf("%s; %s for up to %d s", reason(r.Err), what, seconds(r.Left)))
	}
	return cfg
}

// again returns the flags with these names that were given, for a command to paste.
func (e *env) again(names ...string) string {
	if e.kong == nil {
		return ""
	}
	s := ""
	for _, flag := range e.kong.Flags() {
		if slices.Contains(names, flag.Name) && config.SourceOf(e.kong, flag.Name) == config.FromFlag {
			s += fmt.Sprintf(" --%s %s", flag.Name, app.ShellQuote(fmt.Sprint(e.kong.FlagValue(flag))))
		}
	}
	return s
}

// checkOrg refuses an org that is not the caller's, for calls that are not made in an org.
func (r *remote) checkOrg(e *env) error {
	if r.named == "" || !r.credentials() {
		return nil
	}
	me, err := r.Me(e.ctx)
	if err != nil {
		return r.explain(e, aboutOrg, err)
	}
	return r.isOrg(e, me)
}

func (r *remote) isOrg(e *env, me *client.Me) error {
	if r.named == "" || r.named == me.Org {
		return nil
	}
	return errors.New(r.otherOrg(e, me))
}

// notice prints a line on stderr.
func (e *env) notice(s string) { fmt.Fprintln(e.stderr, "parley: "+clean(s)) }

// reason says in one line why a request is repeated.
func reason(err error) string {
	var refused *client.Error
	var lost *client.ConnectionError
	switch {
	case errors.As(err, &refused):
		return fmt.Sprintf("the server responded with %d %s", refused.Status, http.StatusText(refused.Status))
	case errors.As(err, &lost) && lost.NotSent():
		return lost.Server + " is not reachable"
	case errors.As(err, &lost):
		return "lost the connection to " + lost.Server
	}
	return err.Error()
}

// ask calls the server and returns the response for the caller to print. It is done if
// the call failed, or if --json has printed the response as it came. The subject is what
// the call is about; a unique prefix of its id is completed before the call.
func ask[T any](
	e *env, f *serverFlags, s subject, do func(c *client.Client, raw client.Option) (T, error),
) (v T, done bool, _ error) {
	r, err := f.client(e)
	if err != nil {
		return v, true, err
	}
	return askAt(e, r, f.JSON, s, do)
}

// askAt is ask for a server that is known already.
func askAt[T any](
	e *env, r *remote, asJSON bool, s subject, do func(c *client.Client, raw client.Option) (T, error),
) (v T, done bool, _ error) {
	if err := s.complete(e, r); err != nil {
		return v, true, err
	}
	var res client.Response
	v, err := do(r.Client, client.WithResponse(&res))
	if err == nil && isEmpty(v) {
		err = fmt.Errorf("unexpected response of %s: it is empty; is it a Parley server?", r.Server)
	}
	if err != nil || asJSON {
		return v, true, e.rawOr(res.Body, r.explain(e, s, err))
	}
	return v, false, nil
}

// isEmpty reports whether nothing was decoded, as from null or {}.
func isEmpty(v any) bool {
	p := reflect.ValueOf(v)
	return p.Kind() == reflect.Pointer && (p.IsNil() || p.Elem().IsZero())
}

// rawOr prints the server's JSON unless the call failed.
func (e *env) rawOr(raw []byte, err error) error {
	if err != nil {
		return err
	}
	return e.printRaw(raw)
}
