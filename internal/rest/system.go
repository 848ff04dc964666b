package rest

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/yaml"
	"github.com/go-json-experiment/json"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// mountSystem adds the routes that need no key: health, metrics and the documentation.
func mountSystem(rt *httpx.Router, o Options, doc *huma.OpenAPI) {
	// Rendered on the first request, because it takes as long as the rest of the start.
	rendered := sync.OnceValues(func() ([]byte, []byte) { return render(doc) })
	rt.Area(httpx.Area{CrossOrigin: true}, "/openapi.json", "/openapi.yaml")
	rt.HandleHealth("GET /healthz", static("application/json", []byte(`{"status":"ok"}`+"\n")))
	rt.HandleHealth("GET /readyz", ready(o))
	rt.HandlePublic("GET /openapi.json", lazy(func() http.Handler {
		jsonDoc, _ := rendered()
		return static("application/openapi+json", jsonDoc)
	}))
	rt.HandlePublic("GET /openapi.yaml", lazy(func() http.Handler {
		_, yamlDoc := rendered()
		return static("application/openapi+yaml", yamlDoc)
	}))
	rt.HandlePublic("GET /docs", lazy(func() http.Handler { return docsPage(doc, o) }))
	if o.Metrics != nil {
		rt.HandleHealth("GET /metrics", o.Metrics)
	}
}

func render(doc *huma.OpenAPI) (jsonDoc, yamlDoc []byte) {
	jsonDoc, err := doc.MarshalJSON()
	jsonDoc = escapePatterns(jsonDoc)
	var buf bytes.Buffer
	if err == nil {
		err = yaml.Convert(&buf, bytes.NewReader(jsonDoc))
	}
	if err != nil {
		panic("rest: rendering the OpenAPI document failed: " + err.Error()) // a programming error, found by the tests
	}
	return jsonDoc, buf.Bytes()
}

var patternMember = regexp.MustCompile(`"pattern":("(?:[^"\\]|\\.)*")`)

// escapePatterns writes characters above ASCII in patterns as \uXXXX. Go's regular expressions do
// not support that form, so huma gets the characters themselves. Other tools support it, and
// generated code breaks at invisible characters.
func escapePatterns(doc []byte) []byte {
	return patternMember.ReplaceAllFunc(doc, func(member []byte) []byte {
		var pattern string
		if json.Unmarshal(patternMember.FindSubmatch(member)[1], &pattern) != nil {
			return member
		}
		var b strings.Builder
		for _, r := range pattern {
			if r < utf8.RuneSelf {
				b.WriteRune(r)
				continue
			}
			fmt.Fprintf(&b, `\u%04x`, r) // no pattern names a character above U+FFFF
		}
		text, err := json.Marshal(b.String())
		if err != nil {
			return member
		}
		return append([]byte(`"pattern":`), text...)
	})
}

// lazy returns a handler that is built on its first request.
func lazy(build func() http.Handler) http.Handler {
	once := sync.OnceValue(build)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { once().ServeHTTP(w, r) })
}

func static(contentType string, body []byte) http.Handler {
	ct, length := []string{contentType}, []string{strconv.Itoa(len(body))}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Content-Type"], h["Content-Length"], h["Cache-Control"] = ct, length, []string{"no-cache"}
		_, _ = w.Write(body)
	})
}

func ready(o Options) http.Handler {
	const fewWaiting = 2000 // there are always some
	ok := static("application/json", []byte(`{"status":"ready"}`+"\n"))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.Ready != nil {
			if err := o.Ready(r.Context()); err != nil {
				httpx.WriteError(w, r, notReady(err))
				return
			}
		}
		if o.SearchWaiting != nil {
			if n := o.SearchWaiting(); n > fewWaiting {
				static("application/json", fmt.Appendf(nil, `{"status":"ready","search_waiting":%d}`+"\n", n)).ServeHTTP(w, r)
				return
			}
		}
		ok.ServeHTTP(w, r)
	})
}

// notReady returns the reason why the server is not ready if it is public, or a generic error.
func notReady(err error) error {
	if e := errs.As(err); e.Kind == errs.Unavailable {
		return e
	}
	return errs.Wrap(err, errs.Unavailable, "store.unavailable", "the server is not ready")
}

// documentSystem adds the routes that huma does not serve to the document.
func documentSystem(doc *huma.OpenAPI) {
	add := func(id, path, summary, description string, responses map[string]*huma.Response) {
		for _, code := range []int{http.StatusMethodNotAllowed, http.StatusRequestHeaderFieldsTooLarge} {
			responses[strconv.Itoa(code)] = errorResponse(code)
		}
		doc.AddOperation(&huma.Operation{
			OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{tagSystem},
			Summary: summary, Description: description, Security: []map[string][]string{}, Responses: responses,
		})
	}
	status := func(description string) *huma.Response {
		ref := &huma.Schema{Ref: "#/components/schemas/ServerStatus"}
		return &huma.Response{
			Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: ref}},
		}
	}
	component(doc.Components.Schemas, "ServerStatus", func(huma.Registry) *huma.Schema {
		return object([]string{"status"}, map[string]*huma.Schema{
			"status": described("ok, or ready."),
			"search_waiting": {Type: huma.TypeInteger, Description: "Of /readyz: how many proposals wait to be added to the " +
				"text index. It is left out if they are few."},
		})
	})
	add("get-health", "/healthz", "Check that the server is alive", "Responds as long as the process runs.",
		map[string]*huma.Response{"200": status("The server is alive.")})
	add("get-readiness", "/readyz", "Check that the server is ready",
		"Checks the store, and whether the server is shutting down.",
		map[string]*huma.Response{
			"200": status("The server is ready."), "503": errorResponse(http.StatusServiceUnavailable),
		})
}
