package main

import (
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imagePart is the binary for one platform of the image.
type imagePart struct {
	platform platform
	binary   string
}

// imageUser is the user "nonroot" of the distroless images, by number, so that Kubernetes can see that
// it is not root.
const imageUser = 65532

// images writes the image of all platforms as an OCI archive, and that of each one for docker load.
func (r *release) images(work string, parts []imagePart) error {
	if len(parts) == 0 {
		return nil
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, part := range parts {
		r.say("image for %s", part.platform)
		img, err := r.image(part)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: part.platform.os, Architecture: part.platform.arch},
		}})
		tag, err := name.NewTag("parley:" + imageTag(r.version))
		if err != nil {
			return err
		}
		to := r.path("docker_" + part.platform.arch + ".tar")
		if err := writeFile(to, func(w io.Writer) error { return tarball.Write(tag, img, w) }); err != nil {
			return err
		}
	}
	dir := filepath.Join(work, "oci")
	l, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := l.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": imageTag(r.version),
	})); err != nil {
		return err
	}
	files, err := readTree(dir)
	if err != nil {
		return err
	}
	return writeFile(r.path("oci.tar"), func(w io.Writer) error { return writeTar(w, files, r.when) })
}

var notInTags = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// imageTag returns a version as the tag of an image, which must not contain a plus.
func imageTag(version string) string { return notInTags.ReplaceAllString(version, "-") }

// image returns the image for one platform: a layer that changes rarely, and one with the binary.
func (r *release) image(part imagePart) (v1.Image, error) {
	binary, err := os.ReadFile(part.binary)
	if err != nil {
		return nil, err
	}
	base, err := r.layer(baseFiles())
	if err != nil {
		return nil, err
	}
	notices, err := r.notices(part.binary)
	if err != nil {
		return nil, err
	}
	dir := func(name string) file { return file{name, fs.ModeDir | 0o755, nil} }
	program, err := r.layer([]file{
		dir("usr/"), dir("usr/bin/"),
		{"usr/bin/parley", 0o755, binary},
		dir("usr/share/"), dir("usr/share/doc/"), dir("usr/share/doc/parley/"),
		{"usr/share/doc/parley/" + noticesName, 0o644, notices},
	})
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.when}
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: base, History: v1.History{Created: created, CreatedBy: "certificates, users and folders"}},
		mutate.Addendum{Layer: program, History: v1.History{Created: created, CreatedBy: "parley " + r.version}})
	if err != nil {
		return nil, err
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg = cfg.DeepCopy()
	cfg.Architecture, cfg.OS, cfg.Created, cfg.Config = part.platform.arch, part.platform.os, created, r.imageConfig()
	return mutate.ConfigFile(img, cfg)
}

// imageConfig says how a container runs.
func (r *release) imageConfig() v1.Config {
	return v1.Config{
		User: fmt.Sprintf("%d:%d", imageUser, imageUser), WorkingDir: "/data",
		Entrypoint: []string{"/usr/bin/parley"}, Cmd: []string{"serve"},
		Env:          []string{"PATH=/usr/bin", "PARLEY_LISTEN=:8080", "PARLEY_DATA=/data"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}}, Volumes: map[string]struct{}{"/data": {}},
		StopSignal: "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/usr/bin/parley", "health"}, Interval: 10 * time.Second, Timeout: 5 * time.Second,
			StartPeriod: time.Minute, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "Parley",
			"org.opencontainers.image.description": "Where agents and people improve their own work",
			"org.opencontainers.image.source":      "https://github.com/parley-dev/parley",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     r.version,
		},
	}
}

// baseFiles are what a static binary needs: certificates, names of users, a folder for data and one for
// temporary files. Parley uses no time zones.
func baseFiles() []file {
	dir := func(name string, mode fs.FileMode) file { return file{name, fs.ModeDir | mode, nil} }
	return []file{
		dir("data/", 0o700),
		dir("etc/", 0o755),
		{"etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n")},
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/data:/sbin/nologin\n")},
		dir("etc/ssl/", 0o755),
		dir("etc/ssl/certs/", 0o755),
		{"etc/ssl/certs/ca-certificates.crt", 0o644, rootCertificates()},
		dir("tmp/", fs.ModeSticky|0o777),
	}
}

// rootCertificates returns Mozilla's root certificates, of the version in go.sum. Those that Mozilla
// restricts are left out, because a file cannot express that.
func rootCertificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // to memory
		}
	}
	return b.Bytes()
}

// layer returns files as a layer. /data belongs to the user of the image.
func (r *release) layer(files []file) (v1.Layer, error) {
	var b bytes.Buffer
	if err := writeTarOwned(&b, files, r.when, func(name string) int {
		if name == "data/" {
			return imageUser
		}
		return 0
	}); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	level := gzip.BestCompression
	if r.quick {
		level = gzip.BestSpeed
	}
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(level),
		tarball.WithCompressedCaching)
}

// readTree returns all files below a folder, in order.
func readTree(dir string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			files = append(files, file{rel + "/", fs.ModeDir | 0o755, nil})
			return nil
		}
		body, err := os.ReadFile(path)
		files = append(files, file{rel, 0o644, body})
		return err
	})
	return files, err
}
