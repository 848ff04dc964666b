package rest

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/parley-dev/parley/internal/httpx"
)

// responseNames are the names of the refusals that operations share.
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

// errorResponse refers to the refusal that has the status.
func errorResponse(code int) *huma.Response {
	return &huma.Response{Ref: responsesPrefix + responseNames[code]}
}

// errorResponses are the refusals that operations refer to.
func errorResponses() map[string]*huma.Response {
	out := map[string]*huma.Response{}
	for code, name := range responseNames {
		out[name] = problemResponse(code)
	}
	// net/http itself refuses such a request, before anything here sees it.
	out[responseNames[http.StatusRequestHeaderFieldsTooLarge]].Content = nil
	return out
}

// resolveResponse finds what a response refers to.
func resolveResponse(doc *huma.OpenAPI, res *huma.Response) *huma.Response {
	if name, ok := strings.CutPrefix(res.Ref, responsesPrefix); ok {
		return doc.Components.Responses[name]
	}
	return res
}

func problemResponse(code int) *huma.Response {
	res := &huma.Response{
		Description: errorDocs[code],
		Content:     map[string]*huma.MediaType{httpx.ProblemType: {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}}},
	}
	header := func(doc string) *huma.Param {
		return &huma.Param{Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
	}
	switch code {
	case http.StatusUnauthorized:
		res.Headers = map[string]*huma.Param{"WWW-Authenticate": header("How to authenticate.")}
	case http.StatusMethodNotAllowed:
		res.Headers = map[string]*huma.Param{"Allow": header("The methods of the path.")}
	case http.StatusTooManyRequests:
		res.Headers = map[string]*huma.Param{
			"Retry-After": header("Seconds to wait."), "RateLimit": header("What is left."), "RateLimit-Policy": header("The limit."),
		}
	case http.StatusServiceUnavailable:
		res.Headers = map[string]*huma.Param{"Retry-After": header("Seconds to wait.")}
	}
	return res
}
