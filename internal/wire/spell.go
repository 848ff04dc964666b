package wire

import "github.com/parley-dev/parley/internal/errs"

// Spell converts a path of package task to the names that messages and artifacts have in JSON.
func Spell(p errs.Path) errs.Path {
	out := make(errs.Path, len(p))
	for i, step := range p {
		out[i] = step
		switch {
		case step == "id" && i > 0 && p[i-1] == "message":
			out[i] = "messageId"
		case step == "id" && i > 1 && p[i-2] == "artifacts":
			out[i] = "artifact_id"
		case step == "references":
			out[i] = "referenceTaskIds"
		case step == "media_type":
			out[i] = "mediaType"
		}
	}
	return out
}
