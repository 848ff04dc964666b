package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/parley-dev/parley/internal/secret"
	"github.com/parley-dev/parley/internal/store"
)

// secrets compares the key file with the keys that secrets in the store are encrypted under.
func (e *exam) secrets() {
	path := e.Config.KeyFile()
	var keys secret.Keys
	if path != "" {
		var err error
		keys, err = secret.ReadFile(path)
		switch missing := errors.Is(err, fs.ErrNotExist); {
		case missing && e.Config.SecretKeyFile != "":
			e.fail(err.Error(), "see whether --secret-key-file is right, or make the file with \"parley secrets add-key\"")
			return
		case err != nil && !missing:
			e.fail(err.Error(), "correct the file: the server does not start without it")
			return
		}
	}
	use, err := e.sealedUse()
	if err != nil {
		e.warn("it is not known what is encrypted: "+err.Error(), "solve the problem of the database first")
		return
	}
	for _, id := range use.Keys() {
		if !keys.Has(id) {
			e.fail(fmt.Sprintf("%d secrets are encrypted under the key %s, which is not in the key file", use.Count(id), id),
				"give the key file of this store with --secret-key-file; if it is lost, see \"parley secrets drop-lost --help\"")
			return
		}
	}
	switch open := use.Count(""); {
	case len(keys) == 0 && path == "":
		e.warn(fmt.Sprintf("no key file is given: %d secrets in the database are not encrypted, and relays with a credential are "+
			"refused", open), "make a file with \"parley secrets add-key\", and give it to every server with --secret-key-file")
	case len(keys) == 0:
		e.ok("there is no key file yet: the first start makes " + path)
	case open > 0:
		e.warn(fmt.Sprintf("%d secrets in the database are not encrypted", open),
			"restart the server, which encrypts them, or run \"parley secrets rotate\"")
	default:
		e.ok(fmt.Sprintf("secrets are encrypted under the key %s of %s", keys[0].ID, path))
	}
	if len(keys) > 1 {
		e.ok("the key file has older keys, too: " + strings.Join(keys.IDs()[1:], ", "))
	}
}

// sealedUse reads the store, if there is one.
func (e *exam) sealedUse() (store.SealedUse, error) {
	if e.none() || e.facts != nil && e.facts.Schema == 0 {
		return store.SealedUse{}, nil
	}
	ctx, cancel := context.WithTimeout(e.ctx, within)
	defer cancel()
	s, err := store.OpenSnapshot(ctx, e.Store)
	if err != nil {
		return nil, err
	}
	use, err := s.SealedUse(ctx)
	return use, errors.Join(err, s.Close())
}
