package strict

import (
	"strings"
	"testing"
)

// A fault of indentation is at the line that has to be changed, wherever the parser noticed it.
func TestSyntaxFaultsAreAtTheirLine(t *testing.T) {
	const indented = "(the lines above that it can belong to are indented by "
	for _, c := range []struct{ text, want string }{
		{"rate: 1\nloads:\n  - 1\n  - 2\n - 3\n", "f:5:2: file: this line is indented by 1 " + indented + "0 or 2)"},
		{"rate: 1\n# why\nloads:\n\n  - a: 1\n    b: 2\n\n  - a: 1\n   b: 2\n    c: 3\n", "f:9:4: file: this line is indented by 3 " + indented + "0, 2 or 4)"},
		{"rate: 1\nlog:\n  a: 1\n b: 2\nstep: 1m\n", "f:4:2: file: this line is indented by 1 " + indented + "0 or 2)"},
		{"rate: 1\nlog:\n  a: 1\n    b: 2\n", "f:4:5: file: this line is indented by 4 " + indented + "0 or 2)"},
		{"rate: 1\n step: 1m\n", "f:2:2: file: this line is indented by 1 " + indented + "0)"},
		{"- - 1\n  - 2\n - 3\n", "f:3:2: file: this line is indented by 1 " + indented + "0 or 2)"},
		{"rate: 1\nlog:\n\ta: 1\nstep: 1m\n", "f:3:2: file: is indented with a tab (use spaces)"},
		{"rate: 1\nloads: [1,\n  2\nstep: 1m\n", "f:2:1: file: is not YAML: did not find expected ',' or ']' (check indentation, quotes and colons on this line)"},
		{"rate: 1\nloads: [1,\n  2]\nstep: [1,\n  2\n", "f:4:1: file: is not YAML: did not find expected ',' or ']' (check indentation, quotes and colons on this line)"},
		{"rate: 1\nstep: \"1m\nshare: 1\n", "f:2:1: file: is not YAML: found unexpected end of stream (check indentation, quotes and colons on this line)"},
		{"rate: 1\nstep: '1m' long\nshare: 1\n", "f:2:1: file: is not YAML: did not find expected key (check indentation, quotes and colons on this line)"},
		{"rate: x: y\n", "f:1:1: file: is not YAML: mapping values are not allowed in this context (check indentation, quotes and colons on this line)"},
		{"rate: 1\nstep: *x\nshare: 1\n", "f:2:1: file: is not YAML: unknown anchor 'x' referenced (check indentation, quotes and colons on this line)"},
		{"rate: 1\nstep\nshare: 1\n", "f:2:1: file: is not YAML: could not find expected ':' (check indentation, quotes and colons on this line)"},
	} {
		var n numbers
		if err := read(c.text, &n).Err(); err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// The line is found in a file of the largest size, too.
func TestTheLineOfAFaultInALargeFile(t *testing.T) {
	var n numbers
	text := "loads:\n" + strings.Repeat("  - {rate: 1, share: 2}\n", 100_000) + " - x\n"
	if err := read(text, &n).Err(); err == nil || !strings.HasPrefix(err.Error(), "f:100002:2: file: this line is indented by 1 ") {
		t.Error(err)
	}
}
