package rest

import (
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"

	"github.com/parley-dev/parley/internal/errs"
)

// An ETag is "v<version>-<viewer>". The viewer is included because a record shows the caller's own
// vote: two callers see different bytes at the same version. A vote changes the version, so
// version and viewer together identify the bytes.
func etag(version int64, viewer string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(viewer))
	return `"v` + strconv.FormatInt(version, 10) + "-" + strconv.FormatUint(uint64(h.Sum32()), 36) + `"`
}

// versionOf parses the version of an ETag. It ignores the viewer: If-Match checks whether the
// record has changed, for any reader.
func versionOf(tag string) (int64, bool) {
	body, ok := strings.CutPrefix(tag, `"v`)
	body, closed := strings.CutSuffix(body, `"`)
	digits, _, dashed := strings.Cut(body, "-")
	if !ok || !closed || !dashed || digits == "" || digits[0] == '+' {
		return 0, false
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	return v, err == nil && v > 0
}

// tagsOf splits the values of an If-Match or If-None-Match header.
func tagsOf(h http.Header, name string) []string {
	var tags []string
	for _, line := range h.Values(name) {
		for tag := range strings.SplitSeq(line, ",") {
			tags = append(tags, strings.TrimSpace(tag))
		}
	}
	return tags
}

// errStale is returned for ETags that no version of the record can have.
var errStale = errs.New(errs.Stale, "request.stale",
	"If-Match does not name a version of this record; fetch the record again and retry with its ETag")

// ifMatch returns the version that the request expects, or nil for any. It calls current, which
// reads the record's version, only if there are several ETags: the domain checks a single one.
func ifMatch(h http.Header, current func() (int64, error)) (*int64, error) {
	tags := tagsOf(h, "If-Match")
	if len(tags) == 0 || len(tags) == 1 && tags[0] == "*" {
		return nil, nil
	}
	var versions []int64
	for _, tag := range tags {
		// A weak ETag fails to parse, as it must: If-Match uses strong comparison.
		if v, ok := versionOf(tag); ok {
			versions = append(versions, v)
		}
	}
	switch len(versions) {
	case 0:
		return nil, errStale
	case 1:
		return &versions[0], nil
	}
	now, err := current()
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if v == now {
			return &now, nil
		}
	}
	return nil, errStale
}

// noneMatch reports whether the client already has the version that the ETag names.
func noneMatch(h http.Header, tag string) bool {
	for _, t := range tagsOf(h, "If-None-Match") {
		if t == "*" || strings.TrimPrefix(t, "W/") == tag {
			return true
		}
	}
	return false
}
