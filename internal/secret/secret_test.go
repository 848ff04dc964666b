package secret

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-dev/parley/internal/errs"
)

var start = time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC)

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// newRing returns a keyring of a new file with one key.
func newRing(t *testing.T) (*Keyring, *clock) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret.key")
	if err := CreateFile(path, Keys{NewKey(start)}); err != nil {
		t.Fatal(err)
	}
	c := &clock{at: start}
	k, err := Load(path, c.now)
	if err != nil {
		t.Fatal(err)
	}
	return k, c
}

func sealed(t *testing.T, k *Keyring, purpose, plain string) string {
	t.Helper()
	s, err := k.Seal(purpose, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if err == nil || errs.As(err).Code != code {
		t.Errorf("error %v, want the code %s", err, code)
	}
}

func TestSealedValuesOpenInTheirPlaceOnly(t *testing.T) {
	t.Parallel()
	k, _ := newRing(t)
	here := Purpose("webhooks", "acme", "wh-1")
	for _, plain := range []string{"", "x", "whsec_abc", strings.Repeat("long ", 10_000)} {
		s := sealed(t, k, here, plain)
		if got, err := k.Open(here, s); err != nil || string(got) != plain {
			t.Errorf("opened %.20q, %v; want %.20q", got, err, plain)
		}
		if again := sealed(t, k, here, plain); again == s {
			t.Error("the same value is encrypted to the same text twice")
		}
		if id, ok := KeyOf(s); !ok || id != k.Current() {
			t.Errorf("KeyOf = %q, %v; want %q", id, ok, k.Current())
		}
	}
	s := sealed(t, k, here, "hello")
	for _, elsewhere := range []string{Purpose("webhooks", "acme", "wh-2"), Purpose("relays", "acme", "wh-1"), ""} {
		_, err := k.Open(elsewhere, s)
		wantCode(t, err, CodeDamaged)
	}
	for i := len(version) + 1 + 2*idSize + 1; i < len(s); i++ {
		changed := []byte(s)
		if changed[i] = 'A'; s[i] == 'A' {
			changed[i] = 'B'
		}
		if got, err := k.Open(here, string(changed)); err == nil {
			t.Errorf("opened %q after a change of byte %d", got, i)
		}
	}
}

func TestPurposesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range []string{
		Purpose("a", "b", "c"), Purpose("a", "b/c"), Purpose("a", "b", "", "c"), Purpose("a", "b%2Fc"), Purpose("a", "c", "b"),
	} {
		if seen[p] {
			t.Errorf("%q names two places", p)
		}
		seen[p] = true
	}
}

func TestOtherTextIsNotSealed(t *testing.T) {
	t.Parallel()
	k, _ := newRing(t)
	for _, s := range []string{"", "whsec_abc", "s1.", "s1.12345678.", "s1.12345678.AAAA", "s1.1234567.", "s2.12345678." +
		strings.Repeat("A", 40), "s1.ABCDEF01." + strings.Repeat("A", 40), "s1.12345678." + strings.Repeat("=", 40)} {
		if id, ok := KeyOf(s); ok {
			t.Errorf("KeyOf(%q) = %q", s, id)
		}
		_, err := k.Open("x", s)
		wantCode(t, err, CodeDamaged)
	}
}

func TestWithoutKeysNothingIsSealed(t *testing.T) {
	t.Parallel()
	ring, _ := newRing(t)
	var none *Keyring
	_, err := none.Seal("x", []byte("y"))
	wantCode(t, err, CodeNoKey)
	if !strings.Contains(err.Error(), "--secret-key-file") {
		t.Errorf("error %q does not say what to do", err)
	}
	_, err = none.Open("x", sealed(t, ring, "x", "y"))
	wantCode(t, err, CodeUnknownKey)
	if none.Current() != "" || none.Path() != "" || none.Keys() != nil {
		t.Error("a nil keyring has keys")
	}
}

// A server without a key file runs, until it makes one.
func TestMissingFileCanBeMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.key")
	if _, err := Load(path, time.Now); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	a, err := Find(path, time.Now)
	b, berr := Find(path, time.Now)
	if err != nil || berr != nil || a.Current() != "" {
		t.Fatalf("key %q, %v, %v", a.Current(), err, berr)
	}
	_, err = a.Seal("x", []byte("y"))
	wantCode(t, err, CodeNoKey)
	if err := errors.Join(a.Make(), b.Make()); err != nil || a.Current() == "" || a.Current() != b.Current() {
		t.Errorf("keys %q and %q, %v", a.Current(), b.Current(), err)
	}
}

// A change of the file is seen within Every, and at once if a value needs it.
func TestKeysAreReadAgain(t *testing.T) {
	t.Parallel()
	k, now := newRing(t)
	old := sealed(t, k, "x", "old")
	first := k.Current()
	second := NewKey(start.Add(time.Minute))
	after, err := EditFile(k.Path(), func(ks Keys) (Keys, error) { return ks.Rotate(second), nil })
	if err != nil || !slices.Equal(after.IDs(), []string{second.ID, first}) {
		t.Fatalf("keys %v, %v", after.IDs(), err)
	}
	if k.Current() != first {
		t.Error("the file was read within the interval")
	}
	other, err := Load(k.Path(), now.now)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := k.Open("x", sealed(t, other, "x", "new")); err != nil || string(got) != "new" {
		t.Errorf("a value of a new key: %q, %v", got, err)
	}
	if k.Current() != second.ID {
		t.Error("an unknown key did not make it read the file")
	}
	if _, err := EditFile(k.Path(), func(ks Keys) (Keys, error) { return ks.Rotate(NewKey(start.Add(time.Hour))), nil }); err != nil {
		t.Fatal(err)
	}
	now.add(Every)
	if k.Current() == second.ID {
		t.Error("the file was not read after the interval")
	}
	if got, err := k.Open("x", old); err != nil || string(got) != "old" {
		t.Errorf("a value of the first key: %q, %v", got, err)
	}
	if _, err := EditFile(k.Path(), func(ks Keys) (Keys, error) { return ks.Without([]string{first}), nil }); err != nil {
		t.Fatal(err)
	}
	now.add(Every)
	_, err = k.Open("x", old)
	wantCode(t, err, CodeUnknownKey)
}

// A file that becomes unreadable takes no key away from a running server, and is reported.
func TestKeysStayWhenTheFileIsBad(t *testing.T) {
	t.Parallel()
	k, now := newRing(t)
	s := sealed(t, k, "x", "y")
	good, err := os.ReadFile(k.Path())
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"removed":  func() error { return os.Remove(k.Path()) },
		"garbage":  func() error { return os.WriteFile(k.Path(), []byte("garbage\n"), 0o600) },
		"empty":    func() error { return os.WriteFile(k.Path(), nil, 0o600) },
		"readable": func() error { return errors.Join(os.WriteFile(k.Path(), good, 0o600), os.Chmod(k.Path(), 0o644)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		now.add(Every)
		if got, err := k.Open("x", s); err != nil || string(got) != "y" {
			t.Errorf("%s: opened %q, %v", name, got, err)
		}
		if err := k.Refresh(); err == nil {
			t.Errorf("%s: no problem is reported", name)
		}
		if _, err := Load(k.Path(), now.now); err == nil {
			t.Errorf("%s: the file can be loaded", name)
		}
	}
	if err := errors.Join(os.WriteFile(k.Path(), good, 0o600), os.Chmod(k.Path(), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := k.Refresh(); err != nil {
		t.Errorf("the file is good again, but: %v", err)
	}
}

func TestKeyFilesAreParsedStrictly(t *testing.T) {
	t.Parallel()
	a, b := NewKey(start), NewKey(start.Add(time.Second))
	text := Keys{a, b}.Format()
	got, err := Parse(append([]byte("\n# mine\n\n"), text...))
	if err != nil || !slices.Equal(got, Keys{a, b}) {
		t.Fatalf("parsed %v, %v", got, err)
	}
	line := strings.TrimSpace(string(text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:]))
	fields := strings.Fields(line)
	for name, bad := range map[string]string{
		"no key": "# nothing\n", "twice": line + "\n" + line, "a field more": line + " x", "a field less": fields[0] + " " + fields[1],
		"id": "x" + line, "short": fields[0] + " AAAA " + fields[2], "time": fields[0] + " " + fields[1] + " today",
		"base64": fields[0] + " !" + fields[1][1:] + " " + fields[2],
	} {
		keys, err := Parse([]byte(bad))
		if err == nil {
			t.Errorf("%s: parsed %v", name, keys)
		} else if strings.Contains(err.Error(), fields[1]) {
			t.Errorf("%s: the error repeats the key: %v", name, err)
		}
	}
	if s := a.String(); strings.Contains(s, fields[1]) || s != "key "+a.ID {
		t.Errorf("a key prints as %q", s)
	}
}

func TestRotationOrder(t *testing.T) {
	t.Parallel()
	a, b, c := NewKey(start), NewKey(start.Add(time.Hour)), NewKey(start.Add(2*time.Hour))
	added := Keys{a}.Add(b)
	if k, ok := added.Pending(); !ok || k.ID != b.ID {
		t.Errorf("pending %v, %v", k, ok)
	}
	rotated := added.Rotate(c)
	if !slices.Equal(rotated.IDs(), []string{b.ID, a.ID}) {
		t.Errorf("the pending key is not current: %v", rotated.IDs())
	}
	if k, ok := rotated.Pending(); ok {
		t.Errorf("%v is pending after the rotation", k)
	}
	again := rotated.Rotate(c)
	if !slices.Equal(again.IDs(), []string{c.ID, b.ID, a.ID}) {
		t.Errorf("the fresh key is not current: %v", again.IDs())
	}
	if left := again.Without([]string{a.ID, c.ID}); !slices.Equal(left.IDs(), []string{c.ID, b.ID}) {
		t.Errorf("left %v; the current key must stay", left.IDs())
	}
}

func TestFilesAreCreatedOnceAndPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secret.key")
	var won sync.Map
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			k := NewKey(start)
			if err := CreateFile(path, Keys{k}); err == nil {
				won.Store(k.ID, true)
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	keys, err := ReadFile(path)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	n := 0
	won.Range(func(id, _ any) bool { n++; return id == keys[0].ID })
	if n != 1 {
		t.Errorf("%d processes made the file", n)
	}
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	onlyFile(t, path)
}

// Edits at the same time lose no key, keep the mode, and leave a link in place.
func TestEditsAreAtomic(t *testing.T) {
	t.Parallel()
	k, _ := newRing(t)
	link := filepath.Join(t.TempDir(), "link.key")
	if err := errors.Join(os.Symlink(k.Path(), link), os.Chmod(k.Path(), 0o400)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := EditFile(link, func(ks Keys) (Keys, error) { return ks.Add(NewKey(start.Add(time.Duration(i)))), nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	keys, err := ReadFile(k.Path())
	if err != nil || len(keys) != 21 {
		t.Errorf("%d keys, %v; want 21", len(keys), err)
	}
	if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", st, err)
	}
	if st, err := os.Stat(k.Path()); err != nil || st.Mode().Perm() != 0o400 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	onlyFile(t, k.Path())
}

func onlyFile(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v remain, %v", entries, err)
	}
}

func BenchmarkSeal(b *testing.B) {
	path := filepath.Join(b.TempDir(), "secret.key")
	if err := CreateFile(path, Keys{NewKey(start)}); err != nil {
		b.Fatal(err)
	}
	k, err := Load(path, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := k.Seal("push_configs/acme/1/2", []byte("a token of a usual length"))
		if err == nil {
			_, err = k.Open("push_configs/acme/1/2", s)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
