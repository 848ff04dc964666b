package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/parley-dev/parley/internal/errs"
	"github.com/parley-dev/parley/internal/httpx"
)

//go:embed static
var staticFiles embed.FS

// staticPath is the route of style sheets, scripts and images. File names contain a hash of the
// content, so that browsers can cache them forever.
const staticPath = "/static/{file}"

// asset is a static file.
type asset struct {
	url         string
	contentType string
	plain       []byte
	compressed  func() []byte // at the first request, because it takes as long as the rest of the start
}

// assets are the static files, by source name and by name in URLs.
type assets struct {
	bySource map[string]*asset
	byName   map[string]*asset
}

// loadAssets reads the embedded files. The files in static/css are concatenated to app.css, and
// those in static/js to app.js, in the order of their names.
func loadAssets() (assets, error) {
	out := assets{bySource: map[string]*asset{}, byName: map[string]*asset{}}
	files, err := staticFiles.ReadDir("static")
	if err != nil {
		return out, err
	}
	for _, f := range files {
		name, parts := f.Name(), []string{"static/" + f.Name()}
		if f.IsDir() {
			if parts, err = fs.Glob(staticFiles, "static/"+name+"/*."+name); err != nil {
				return out, err
			}
			name = "app." + name
		}
		var content []byte
		for _, part := range parts {
			text, err := staticFiles.ReadFile(part)
			if err != nil {
				return out, err
			}
			content = append(append(content, text...), '\n')
		}
		if err := out.add(name, content); err != nil {
			return out, err
		}
	}
	return out, nil
}

// add makes a file available under a name with the hash of its content.
func (a assets) add(source string, content []byte) error {
	ext := path.Ext(source)
	sum := sha256.Sum256(content)
	name := strings.TrimSuffix(source, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	file := &asset{url: strings.Replace(staticPath, "{file}", name, 1), contentType: assetTypes[ext], plain: content}
	if file.contentType == "" {
		return fmt.Errorf("static file %s has an unknown type", source)
	}
	file.compressed = sync.OnceValue(func() []byte { return compress(content) })
	a.bySource[source], a.byName[name] = file, file
	return nil
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(content)                               // a buffer takes everything
	_ = z.Close()
	return b.Bytes()
}

// assetTypes are listed here because the table of the system may lack them.
var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

// url returns the URL of a static file, for templates.
func (a assets) url(source string) (string, error) {
	if found := a.bySource[source]; found != nil {
		return found.url, nil
	}
	return "", fmt.Errorf("unknown static file %q", source)
}

// ServeHTTP serves a static file.
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
		body = found.compressed()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // an error means that the browser is gone
}

// serveIcon serves the icon under the URL that browsers request for documents without one.
func (a assets) serveIcon(w http.ResponseWriter, _ *http.Request) {
	icon := a.bySource["favicon.svg"]
	h := w.Header()
	h.Set("Content-Type", icon.contentType)
	h.Set("Cache-Control", "public, max-age=86400")
	h.Set("Content-Length", strconv.Itoa(len(icon.plain)))
	_, _ = w.Write(icon.plain) // an error means that the browser is gone
}

// takesGzip reports whether the client accepts gzip.
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
