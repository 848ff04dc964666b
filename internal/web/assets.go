package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

//go:embed static
var staticFiles embed.FS

// staticPath is the one route of style sheets, scripts and pictures. Names carry a hash of
// the content, so browsers keep what they have until it changes.
const staticPath = "/static/{file}"

// asset is one static file.
type asset struct {
	url         string
	contentType string
	plain       []byte
	compressed  []byte
}

// assets are the static files, by their names in the source and by their names in URLs.
type assets struct {
	bySource map[string]*asset
	byName   map[string]*asset
}

// loadAssets reads the embedded files.
func loadAssets() (assets, error) {
	out := assets{bySource: map[string]*asset{}, byName: map[string]*asset{}}
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		return out, err
	}
	for _, e := range entries {
		plain, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			return out, err
		}
		sum := sha256.Sum256(plain)
		ext := path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		a := &asset{url: strings.Replace(staticPath, "{file}", name, 1), contentType: mime.TypeByExtension(ext), plain: plain}
		if a.contentType == "" {
			return out, fmt.Errorf("static/%s has an unknown type", e.Name())
		}
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err == nil {
			_, err = z.Write(plain)
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			return out, err
		}
		a.compressed = b.Bytes()
		out.bySource[e.Name()], out.byName[name] = a, a
	}
	return out, nil
}

// url is the URL of a static file, for templates.
func (a assets) url(source string) (string, error) {
	if found := a.bySource[source]; found != nil {
		return found.url, nil
	}
	return "", fmt.Errorf("there is no static file %q", source)
}

// ServeHTTP serves one file.
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found := a.byName[r.PathValue("file")]
	if found == nil {
		httpx.WriteError(w, r, errs.ErrNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", found.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := found.plain
	if takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		body = found.compressed
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the browser went away
}

// takesGzip reports whether the client takes a compressed response.
func takesGzip(r *http.Request) bool {
	for _, v := range r.Header["Accept-Encoding"] {
		for coding := range strings.SplitSeq(v, ",") {
			name, quality, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
			if strings.EqualFold(name, "gzip") {
				return strings.Trim(quality, "q=0.") != "" || quality == ""
			}
		}
	}
	return false
}
