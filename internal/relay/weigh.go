package relay

// Decoded JSON takes more memory than its text: "{}," is three bytes, and an object of many times that
// size. Each value counts for valueSize bytes beside its text, and the map of an object with members
// for some more values: a map with one member takes 330 bytes.
const (
	valueSize = 64
	mapValues = 4
)

// scale counts the values of a JSON text that is read in pieces. Objects, lists and members count, and
// the brackets of empty ones too, so that no element of a list is missed.
type scale struct {
	values  int64
	opened  bool // after the bracket of an object
	quoted  bool // in a string
	escaped bool // after a backslash
}

// add weighs the next piece.
func (s *scale) add(p []byte) {
	for _, c := range p {
		switch {
		case s.escaped:
			s.escaped = false
		case s.quoted:
			s.escaped, s.quoted = c == '\\', c != '"'
		case c == '"':
			s.quoted = true
		case c == ',', c == '[':
			s.values++
			s.opened = false
		case c == '{':
			s.values++
			s.opened = true
		case c == ':' && s.opened:
			s.values += mapValues
			s.opened = false
		}
	}
}

// weight is how much memory the text takes beside its own bytes.
func (s *scale) weight() int64 { return s.values * valueSize }
