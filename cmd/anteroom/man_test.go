package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

var pagesDir = flag.String("pages", "", "folder for man pages and completions, which a release packs; a temporary one by default")

// A release packs what this test writes: a man page for each command, and completions for each shell.
// A test makes them because what turns Markdown into man pages would otherwise be part of the binary.
func TestManPagesAndCompletions(t *testing.T) {
	dir := *pagesDir
	if dir == "" {
		dir = t.TempDir()
	}
	man, completions := filepath.Join(dir, "man"), filepath.Join(dir, "completions")
	for _, d := range []string{man, completions} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root := rootCommand()
	root.DisableAutoGenTag = true
	header := doc.GenManHeader{Section: "1", Source: "Anteroom", Manual: "Anteroom"} // its date is SOURCE_DATE_EPOCH's
	if err := doc.GenManTree(root, &header, man); err != nil {
		t.Fatal(err)
	}
	var shown func(*cobra.Command)
	shown = func(c *cobra.Command) {
		if !c.IsAvailableCommand() && c.HasParent() {
			return
		}
		page, err := os.ReadFile(filepath.Join(man, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		if err != nil || !strings.Contains(string(page), c.Short) && c.Long == "" {
			t.Errorf("%s: no man page that says what it does: %v", c.CommandPath(), err)
		}
		for _, sub := range c.Commands() {
			shown(sub)
		}
	}
	shown(root)
	for name, write := range map[string]func(string) error{
		"anteroom.bash": func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		"_anteroom":     root.GenZshCompletionFile,
		"anteroom.fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
		"anteroom.ps1":  root.GenPowerShellCompletionFileWithDesc,
	} {
		file := filepath.Join(completions, name)
		if err := write(file); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "anteroom") {
			t.Errorf("%s does not complete: %v", name, err)
		}
	}
}
