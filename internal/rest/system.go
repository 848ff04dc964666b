package rest

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

// mountSystem adds what needs no key: health, metrics and the documents, which
// are rendered here once.
func mountSystem(rt *httpx.Router, o Options, doc *huma.OpenAPI) {
	jsonDoc, yamlDoc := render(doc)
	rt.HandlePublic("GET /{$}", http.RedirectHandler("/docs", http.StatusFound))
	rt.HandleHealth("GET /healthz", static("application/json", []byte(`{"status":"ok"}`+"\n")))
	rt.HandleHealth("GET /readyz", ready(o))
	rt.HandlePublic("GET /openapi.json", static("application/openapi+json", jsonDoc))
	rt.HandlePublic("GET /openapi.yaml", static("application/openapi+yaml", yamlDoc))
	rt.HandlePublic("GET /docs", docsPage(doc, o))
	if o.Metrics != nil {
		rt.HandleHealth("GET /metrics", o.Metrics)
	}
}

func render(doc *huma.OpenAPI) (jsonDoc, yamlDoc []byte) {
	jsonDoc, err := doc.MarshalJSON()
	if err == nil {
		yamlDoc, err = doc.YAML()
	}
	if err != nil {
		panic("rest: the OpenAPI document cannot be rendered: " + err.Error()) // a mistake in the code, found at the start
	}
	return jsonDoc, yamlDoc
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

// documentSystem describes the routes that huma does not serve.
func documentSystem(doc *huma.OpenAPI) {
	problem := &huma.Schema{Ref: "#/components/schemas/Problem"}
	add := func(id, path, summary string, responses map[string]*huma.Response) {
		doc.AddOperation(&huma.Operation{
			OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{tagSystem}, Summary: summary,
			Security: []map[string][]string{}, Responses: responses,
		})
	}
	status := func(description string) *huma.Response {
		return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{
			Type: huma.TypeObject, Required: []string{"status"}, Properties: map[string]*huma.Schema{"status": {Type: huma.TypeString}},
		}}}}
	}
	add("health", "/healthz", "Is the server alive?", map[string]*huma.Response{"200": status("It is.")})
	add("readiness", "/readyz", "Can the server do its work?", map[string]*huma.Response{
		"200": status("It can."), "503": problemResponse(http.StatusServiceUnavailable, problem),
	})
}
