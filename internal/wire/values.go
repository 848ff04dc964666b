package wire

// Values counts the values in JSON text, about: what a decoder that makes an object of
// each would allocate. The text need not be valid.
func Values(text []byte) (n int64) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[', c == ',':
			n++
		}
	}
	return n + 1
}
