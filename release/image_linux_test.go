package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// unpack writes the files of an archive below a folder. Owners are set only by root, who may.
func unpack(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		mode := fs.FileMode(h.Mode).Perm()
		if h.Mode&0o1000 != 0 {
			mode |= fs.ModeSticky
		}
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, 0o755)
		} else {
			err = writeFile(name, func(w io.Writer) error { _, err := io.Copy(w, tr); return err })
		}
		if err == nil {
			err = os.Chmod(name, mode)
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(name, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readImage reads the image for this machine back from the OCI archive.
func readImage(t *testing.T) v1.Image {
	t.Helper()
	f, err := os.Open(theRelease(t).path("oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	dir := t.TempDir()
	unpack(t, f, dir)
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(top); err != nil {
		t.Fatal(err)
	}
	m, err := top.IndexManifest()
	if err != nil || len(m.Manifests) != 1 || m.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3-rc.1" {
		t.Fatalf("the archive has %+v, %v; want one index with the version", m, err)
	}
	index, err := top.ImageIndex(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = index.IndexManifest(); err != nil || len(m.Manifests) != 1 {
		t.Fatalf("the index has %+v, %v; want one platform", m, err)
	}
	if p := m.Manifests[0].Platform; p == nil || p.OS != "linux" || p.Architecture != runtime.GOARCH {
		t.Errorf("platform = %v", p)
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// checkDocker compares the archive for docker load with the image.
func checkDocker(t *testing.T, img v1.Image) {
	t.Helper()
	docker, err := tarball.ImageFromPath(theRelease(t).path("docker_"+runtime.GOARCH+".tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(docker); err != nil {
		t.Error(err)
	}
	want, err := img.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := docker.ConfigName(); err != nil || got != want {
		t.Errorf("the image for docker load has the id %s, %v; want %s, as in the OCI archive", got, err, want)
	}
}

// TestImageServes runs the image as a container runtime does: its layers are the root, and its
// configuration says what runs, as whom and with which environment.
func TestImageServes(t *testing.T) {
	t.Parallel()
	img := readImage(t)
	checkDocker(t, img)
	cfg, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := cfg.Config
	if _, ok := c.ExposedPorts["8080/tcp"]; !ok || c.User != "65532:65532" || cfg.Architecture != runtime.GOARCH {
		t.Errorf("config = %+v", cfg)
	}
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { // the user of the image must get in
		t.Fatal(err)
	}
	layers := mutate.Extract(img)
	unpack(t, layers, root)
	_ = layers.Close()

	s := startInside(t, root, c.User, c.Env, append(slices.Clone(c.Entrypoint), c.Cmd...)...)
	health := append(slices.Clone(c.Healthcheck.Test[1:]), "--json")
	out := ""
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if out, err = s.inside(health...); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("health: %v\n%s", err, out)
		}
	}
	if !strings.Contains(out, `"ready": true`) {
		t.Errorf("health = %s", out)
	}
	if !strings.Contains(s.words(), "This is the first key") {
		t.Error("no first key was printed")
	}
	entries, err := os.ReadDir(filepath.Join(root, "data"))
	if err != nil || len(entries) == 0 {
		t.Errorf("/data has %v, %v; want a store", entries, err)
	}
	if err := s.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}

	// Without a server, the health check fails.
	s = startInside(t, root, c.User, c.Env, c.Healthcheck.Test[1:]...)
	select {
	case err := <-s.done:
		if err == nil || !strings.Contains(s.words(), "http://127.0.0.1:8080 is not ready: ") {
			t.Errorf("health: %v\n%s", err, s.words())
		}
	case <-time.After(time.Minute):
		t.Error("the health check does not end")
	}
}
