package httpx

import (
	"net/http"
	"slices"
	"strings"
)

// Route says how the requests of one pattern are treated before its handler runs. The zero
// value is a route for programs.
type Route struct {
	// Refuse answers what is refused before the handler runs; nil: WriteError.
	Refuse ErrorWriter
	// Sessions takes the session of a browser instead of a key. It is for what pages call;
	// the protocols of programs take none, since a browser sends its cookies wherever it
	// is told to.
	Sessions bool
	// Worker counts the requests against the budgets of workers. A worker makes several
	// requests for each task that others were allowed to send, and must not lose its leases
	// because there are many.
	Worker bool
}

// ErrorWriter answers with an error in the form of one transport.
type ErrorWriter func(w http.ResponseWriter, r *http.Request, err error)

// Area says how requests below a path are treated whether or not a route matches them.
type Area struct {
	// Programs get problem documents, whatever they accept; no page is shown.
	Programs bool
	// CrossOrigin lets pages of the configured origins call (CORS).
	CrossOrigin bool
	// Secret keeps what follows the path out of the log.
	Secret bool
}

type area struct {
	path string // one that ends in a slash has all below it
	Area
}

func (a *area) has(path string) bool {
	return path == a.path || a.path[len(a.path)-1] == '/' && strings.HasPrefix(path, a.path)
}

// Area adds an area at each of the paths: all below one that ends in a slash, else that path
// alone. Areas may overlap. It is called before the first request.
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

// loggedPath is the path without its secret.
func (rt *Router) loggedPath(path string) string {
	for _, a := range rt.areas {
		if a.Secret && a.has(path) {
			return a.path + "…"
		}
	}
	return path
}
