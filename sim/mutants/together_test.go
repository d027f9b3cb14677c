package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const before = `package main

import "fmt"

const most = 3

type box[T any] struct{ v T }

func (b *box[T]) put(_ int, all ...T) { b.v = all[0] }

func (b box[T]) get() (v T, ok bool) { return b.v, true }

func add(a, b int) int { return a + b }

func first[T any](all ...T) T { return all[0] }

func main() {
	b := &box[int]{}
	b.put(1, 2, 3)
	v, ok := b.get()
	fmt.Println(add(v, 1), ok, first(most, 4))
}
`

// A binary with several mutants is each of them, and the code without a defect.
func TestTogether(t *testing.T) {
	t.Parallel()
	mutant := func(pairs ...string) map[string]string {
		return map[string]string{"x/main.go": strings.NewReplacer(pairs...).Replace(before)}
	}
	mutants := []map[string]string{
		mutant("a + b", "a - b"),
		mutant("most = 3", "most = 5"), // a constant
		mutant("_ int, all", "n int, all", "[0] }\n\nfunc (b box", "[n] }\n\nfunc (b box"),
		mutant("a + b", "a * b", "b.v, true", "b.v, false"), // two functions, one of which another mutant changes
		mutant("return all[0]", "return all[1]"),            // of any type
	}
	files, alone, err := together(map[string]string{"x/main.go": before}, mutants)
	if err != nil {
		t.Fatal(err)
	}
	if len(alone) != 2 || !alone[1] || !alone[4] {
		t.Errorf("alone: %v", alone)
	}
	dir := t.TempDir()
	for file, text := range map[string]string{"go.mod": "module x\n\ngo 1.25\n", "main.go": files["x/main.go"], "number.go": files["x/mutant_number.go"]} {
		if err := os.WriteFile(dir+"/"+file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "x", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", out, files["x/main.go"])
	}
	for number, want := range map[string]string{"0": "3 true 3", "1": "1 true 3", "3": "4 true 3", "4": "2 false 3"} {
		cmd := exec.Command(dir + "/x")
		cmd.Env = append(os.Environ(), numberVariable+"="+number)
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("mutant %s: %s, want %s (%v)", number, out, want, err)
		}
	}
}
