package httpx

import (
	"net/http"
	"slices"
	"strings"
)

// Route configures how requests of one pattern are treated before the handler runs. The zero value
// is a route for API clients.
type Route struct {
	// Refuse writes the responses of requests that are refused before the handler runs; nil:
	// WriteError.
	Refuse ErrorWriter
	// Sessions accepts a browser session instead of a key. It is for routes that pages call; API
	// protocols do not accept sessions, since other sites can make a browser send its cookies.
	Sessions bool
	// Worker counts the requests against the budgets of workers. A worker makes several requests
	// for each task that others were allowed to send, and must not lose its leases because there
	// are many.
	Worker bool
}

// ErrorWriter writes an error in the format of one transport.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, err error)

// Area configures how requests below a path are treated, whether or not a route matches them.
type Area struct {
	// Programs gets problem documents for every Accept header, never HTML pages.
	Programs bool
	// CrossOrigin lets pages of the configured origins call (CORS).
	CrossOrigin bool
	// Secret keeps the rest of the path out of the log.
	Secret bool
}

type area struct {
	path string // if it ends in a slash, it includes all paths below
	Area
}

func (a *area) has(path string) bool {
	return path == a.path || a.path[len(a.path)-1] == '/' && strings.HasPrefix(path, a.path)
}

// Area adds an area at each of the paths. A path that ends in a slash includes all paths below it.
// Areas may overlap. Call Area before the first request.
func (rt *Router) Area(a Area, paths ...string) {
	for _, path := range paths {
		rt.areas = append(rt.areas, area{path, a})
	}
}

func (rt *Router) forPrograms(path string) bool {
	return slices.ContainsFunc(rt.areas, func(a area) bool { return a.Programs && a.has(path) })
}

func (rt *Router) crossOrigin(path string) bool {
	return slices.ContainsFunc(rt.areas, func(a area) bool { return a.CrossOrigin && a.has(path) })
}

// loggedPath returns the path without its secret part.
func (rt *Router) loggedPath(path string) string {
	for _, a := range rt.areas {
		if a.Secret && a.has(path) {
			return a.path + "…"
		}
	}
	return path
}
