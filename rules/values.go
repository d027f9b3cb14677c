package rules

// Values returns what the fields of the language are for the request that have one value, by
// their names: true or false, numbers and texts. A field whose value is missing is left out,
// and so are those of raw., which differ only where the path was rewritten.
func (r *Request) Values() map[string]any {
	out := map[string]any{}
	for name, f := range fields {
		if len(name) > 4 && name[:4] == "raw." {
			continue
		}
		switch f.kind {
		case boolKind:
			r.work = maxWork
			out[name] = f.b.truth(r, 0)
		case intKind:
			if n, ok := f.n.get(r, 0); ok {
				out[name] = n
			}
		case strKind:
			if s, ok := f.s.get(r, 0); ok {
				out[name] = s
			}
		case ipKind:
			if a, ok := f.ip.get(r, 0); ok {
				out[name] = a.String()
			}
		}
	}
	return out
}
