package rest

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/httpx"
)

// responseNames are the component names of the shared error responses.
var responseNames = map[int]string{
	http.StatusBadRequest:                  "BadRequest",
	http.StatusUnauthorized:                "Unauthorized",
	http.StatusForbidden:                   "Forbidden",
	http.StatusNotFound:                    "NotFound",
	http.StatusMethodNotAllowed:            "MethodNotAllowed",
	http.StatusRequestTimeout:              "RequestTimeout",
	http.StatusConflict:                    "Conflict",
	http.StatusPreconditionFailed:          "PreconditionFailed",
	http.StatusRequestEntityTooLarge:       "ContentTooLarge",
	http.StatusUnsupportedMediaType:        "UnsupportedMediaType",
	http.StatusUnprocessableEntity:         "UnprocessableContent",
	http.StatusTooManyRequests:             "TooManyRequests",
	http.StatusRequestHeaderFieldsTooLarge: "HeadersTooLarge",
	http.StatusInternalServerError:         "InternalError",
	http.StatusServiceUnavailable:          "ServiceUnavailable",
}

const responsesPrefix = "#/components/responses/"

// errorResponse returns a reference to the error response of the status.
func errorResponse(code int) *huma.Response {
	return &huma.Response{Ref: responsesPrefix + responseNames[code]}
}

// errorResponses returns the error responses that operations refer to.
func errorResponses() map[string]*huma.Response {
	out := map[string]*huma.Response{}
	for code, name := range responseNames {
		out[name] = problemResponse(code)
	}
	// net/http rejects such a request itself, before any handler runs.
	out[responseNames[http.StatusRequestHeaderFieldsTooLarge]].Content = nil
	return out
}

// resolveResponse returns the response that a reference points to.
func resolveResponse(doc *huma.OpenAPI, res *huma.Response) *huma.Response {
	if name, ok := strings.CutPrefix(res.Ref, responsesPrefix); ok {
		return doc.Components.Responses[name]
	}
	return res
}

func problemResponse(code int) *huma.Response {
	problem := &huma.MediaType{Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}
	res := &huma.Response{
		Description: errorDocs[code], Content: map[string]*huma.MediaType{httpx.ProblemType: problem},
	}
	header := func(doc string) *huma.Param {
		return &huma.Param{Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	switch code {
	case http.StatusUnauthorized:
		res.Headers = map[string]*huma.Param{"WWW-Authenticate": header("How to authenticate.")}
	case http.StatusMethodNotAllowed:
		res.Headers = map[string]*huma.Param{"Allow": header("Methods of the path.")}
	case http.StatusTooManyRequests:
		res.Headers = map[string]*huma.Param{
			"Retry-After": header("Seconds to wait."), "RateLimit": header("Remaining requests."),
			"RateLimit-Policy": header("The limit."),
		}
	case http.StatusServiceUnavailable:
		res.Headers = map[string]*huma.Param{"Retry-After": header("Seconds to wait.")}
	}
	return res
}
