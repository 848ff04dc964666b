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

// mountSystem adds what needs no key: health, metrics and the documents, which
// are rendered here once.
func mountSystem(rt *httpx.Router, o Options, doc *huma.OpenAPI) {
	// Rendered when somebody asks for it: that takes as long as all the rest of a start.
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
		panic("rest: the OpenAPI document cannot be rendered: " + err.Error()) // a mistake in the code, found by the tests
	}
	return jsonDoc, buf.Bytes()
}

var patternMember = regexp.MustCompile(`"pattern":("(?:[^"\\]|\\.)*")`)

// escapePatterns writes characters above ASCII in patterns as \uXXXX. Go's own regular
// expressions do not know that form, so huma gets another; everybody else does, and
// generated code breaks at characters that nobody sees.
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

// lazy is a handler that is built when it is first needed.
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
	ok := static("application/json", []byte(`{"status":"ready"}`+"\n"))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.Ready != nil {
			if err := o.Ready(r.Context()); err != nil {
				httpx.WriteError(w, r, notReady(err))
				return
			}
		}
		ok.ServeHTTP(w, r)
	})
}

// notReady says why the server is not ready, if that is meant to be told.
func notReady(err error) error {
	if e := errs.As(err); e.Kind == errs.Unavailable {
		return e
	}
	return errs.Wrap(err, errs.Unavailable, "store.unavailable", "the server is not ready")
}

// documentSystem describes the routes of this package that huma does not serve.
func documentSystem(doc *huma.OpenAPI) {
	add := func(id, path, summary, description string, responses map[string]*huma.Response) {
		for _, code := range []int{http.StatusMethodNotAllowed, http.StatusRequestHeaderFieldsTooLarge} {
			responses[strconv.Itoa(code)] = errorResponse(code)
		}
		doc.AddOperation(&huma.Operation{
			OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{tagSystem}, Summary: summary, Description: description,
			Security: []map[string][]string{}, Responses: responses,
		})
	}
	status := func(description string) *huma.Response {
		return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{
			Ref: "#/components/schemas/ServerStatus",
		}}}}
	}
	component(doc.Components.Schemas, "ServerStatus", func(huma.Registry) *huma.Schema {
		return object([]string{"status"}, map[string]*huma.Schema{"status": described("ok, or ready.")})
	})
	add("get-health", "/healthz", "Is the server alive?", "Answers as long as the process does.",
		map[string]*huma.Response{"200": status("It is.")})
	add("get-readiness", "/readyz", "Can the server do its work?", "Looks at the store and at whether the server is about to stop.",
		map[string]*huma.Response{"200": status("It can."), "503": errorResponse(http.StatusServiceUnavailable)})
}
