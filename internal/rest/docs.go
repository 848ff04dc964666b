package rest

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

func docsPage(_ *huma.OpenAPI, _ Options) http.Handler { return http.NotFoundHandler() }
