package wire

// Values estimates the number of values in JSON text: what a decoder with one object per value
// would allocate. The text need not be valid.
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
