package sim

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestManualNamesAll: docs/simulate.md has a row for every check, scenario and algorithm.
func TestManualNamesAll(t *testing.T) {
	page, err := os.ReadFile("../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	has := func(row string) {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/simulate.md lacks: %s", row)
		}
	}
	for _, c := range checks {
		has(fmt.Sprintf("| `%s` | %s |", c.Name, c.Means))
	}
	for _, sc := range scenarios() {
		has(fmt.Sprintf("| `%s` | %s |", sc.Name, sc.About))
	}
	for _, a := range Algorithms {
		has("`" + a + "`")
	}
}
