package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is an entry of an archive. A folder has a name that ends with a slash.
type file struct {
	name string
	mode fs.FileMode
	body []byte
}

// archive writes the archive for a platform.
func (r *release) archive(p platform, binary string, x extras) error {
	body, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	files := []file{
		{p.program(), 0o755, body},
		{"completions/_parley", 0o644, x.completions["zsh"]},
		{"completions/parley.bash", 0o644, x.completions["bash"]},
		{"completions/parley.fish", 0o644, x.completions["fish"]},
	}
	for _, page := range x.man {
		files = append(files, file{"man/man1/" + page.name, page.mode, page.body})
	}
	for _, name := range []string{"CHANGELOG.md", "LICENSE", "README.md"} {
		text, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		files = append(files, file{name, 0o644, text})
	}
	notices, err := r.notices(binary)
	if err != nil {
		return err
	}
	files = append(files, file{noticesName, 0o644, notices})
	write, suffix := r.writeTarGz, p.name()+".tar.gz"
	if p.os == "windows" {
		write, suffix = writeZip, p.name()+".zip"
	}
	to := r.path(suffix)
	folder := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(to), ".tar.gz"), ".zip")
	return writeFile(to, func(w io.Writer) error { return write(w, inFolder(folder, files), r.when) })
}

// inFolder moves files into a folder, sorts them and adds their folders.
func inFolder(folder string, files []file) []file {
	out := []file{{folder + "/", fs.ModeDir | 0o755, nil}}
	seen := map[string]bool{}
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "." && !seen[dir]; dir = path.Dir(dir) {
			seen[dir] = true
			out = append(out, file{folder + "/" + dir + "/", fs.ModeDir | 0o755, nil})
		}
		out = append(out, file{folder + "/" + f.name, f.mode, f.body})
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return out
}

// writeTarGz writes a compressed archive without anything of this machine: no owner, and one time.
func (r *release) writeTarGz(w io.Writer, files []file, when time.Time) error {
	level := gzip.BestCompression
	if r.quick {
		level = gzip.BestSpeed
	}
	z, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return err
	}
	if err := writeTar(z, files, when); err != nil {
		return err
	}
	return z.Close()
}

func writeTar(w io.Writer, files []file, when time.Time) error {
	return writeTarOwned(w, files, when, func(string) int { return 0 })
}

// writeTarOwned is writeTar for files that do not all belong to root.
func writeTarOwned(w io.Writer, files []file, when time.Time, owner func(name string) int) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		h := tarHeader(f, when)
		h.Uid, h.Gid = owner(f.name), owner(f.name)
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.body); err != nil {
			return err
		}
	}
	return t.Close()
}

func tarHeader(f file, when time.Time) *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.body)), ModTime: when,
		Format: tar.FormatUSTAR,
	}
	if f.mode.IsDir() {
		h.Typeflag = tar.TypeDir
	}
	if f.mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	return h
}

func writeZip(w io.Writer, files []file, when time.Time) error {
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
		if f.mode.IsDir() {
			h.Method = zip.Store
		}
		h.SetMode(f.mode)
		e, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := e.Write(f.body); err != nil && len(f.body) > 0 {
			return err
		}
	}
	return z.Close()
}

// gzipped compresses like gzip -9n.
func gzipped(body []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(body)                                  // to memory
	_ = z.Close()
	return b.Bytes()
}

// writeFile creates a file, or nothing if write fails.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(name) // the first error is returned
	}
	return err
}

// sums writes SHA256SUMS, which "sha256sum -c" reads.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, e := range entries {
		f, err := os.Open(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", h.Sum(nil), e.Name())
	}
	r.say("SHA256SUMS of %d files", len(entries))
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(list.String()), 0o644)
}
