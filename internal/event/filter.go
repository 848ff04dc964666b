package event

// Filter selects events of an org.
type Filter struct {
	Viewer  Viewer
	Types   Types  // zero: all types
	Subject string // "": all subjects
}

// Match reports whether the filter selects the event.
func (f *Filter) Match(e *Event) bool {
	return f.Types.Has(e.Type) && (f.Subject == "" || f.Subject == e.Subject) && f.Viewer.Sees(e.Scope)
}

// Types is a set of types, as the bits of their positions in Kinds. The zero set has all types.
type Types uint64

// Bit returns the set of one type; 0 if it is unknown.
func (t Type) Bit() Types {
	i, known := positions[t]
	if !known {
		return 0
	}
	return 1 << i
}

// With returns the set with one more type.
func (s Types) With(t Type) Types { return s | t.Bit() }

// Has reports whether the set contains the type. Only the zero set has unknown types.
func (s Types) Has(t Type) bool { return s == 0 || s&t.Bit() != 0 }
