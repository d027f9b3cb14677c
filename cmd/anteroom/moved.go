package main

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/api/inventory/moved"
	"github.com/anteroom/anteroom/config"
	"github.com/anteroom/anteroom/server"
)

// importFile is the command that makes a configuration file of another system's export.
func importFile(system, what, export, file string) *cobra.Command {
	example := "  anteroom config import " + system + " " + file
	if export != "" {
		example = "  " + export + "\n" + example
	}
	cmd := &cobra.Command{
		Use:   system + " FILE",
		Short: "Make a configuration file from " + what,
		Long: "Read " + what + ", and write the closest configuration file,\n" +
			`with a report: what each value became, what the export does not contain, and what has no counterpart
and why. Values marked "choose" are guesses. FILE may be - for standard input.`,
		Example: example,
		Args:    names("FILE"),
	}
	out := cmd.Flags().String("out", "anteroom.yaml", "`file` to write; - is standard output, and the report goes to standard error")
	form := outputFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return moveFile(cmd, form, system, args[0], *out) }
	return cmd
}

// movedResult is what an import from a file came to.
type movedResult struct {
	File  string       `json:"file"`
	Notes []moved.Note `json:"notes"`
	// Problems are what keeps the file from loading as it is.
	Problems string `json:"problems,omitempty"`
}

func moveFile(cmd *cobra.Command, form *output, system, name, out string) error {
	data, err := readInput(name, cmd.InOrStdin(), moved.MaxBytes)
	if err != nil {
		return err
	}
	cfg, err := moved.Systems[system](data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var text bytes.Buffer
	if err := cfg.YAML(&text); err != nil {
		return err
	}
	if err := writeTo(cmd, out, func(w io.Writer) error { _, err := w.Write(text.Bytes()); return err }); err != nil {
		return err
	}
	result := movedResult{File: out, Notes: cfg.Notes}
	_, err = config.Load(config.LoadOptions{File: out, Check: server.Check, CheckSecret: server.CheckSecret, Open: func(file string) (io.ReadCloser, error) {
		if file == out {
			return io.NopCloser(bytes.NewReader(text.Bytes())), nil
		}
		return os.Open(file)
	}})
	if err != nil {
		result.Problems = err.Error()
	}
	report := cmd.OutOrStdout()
	if out == "-" {
		report = cmd.ErrOrStderr()
	}
	return put(form, report, result, showMoved)
}

func showMoved(w io.Writer, r movedResult) error {
	for _, part := range []struct {
		outcome moved.Outcome
		title   string
	}{{moved.Mapped, "Mapped"}, {moved.Choose, "Choose: not in the export; the file has a guess"}, {moved.Left, "Left out"}} {
		title := part.title + "\n"
		for _, n := range r.Notes {
			if n.Outcome != part.outcome {
				continue
			}
			text := n.Theirs
			if text != "" && n.Ours != "" {
				text += " -> "
			}
			if text += n.Ours; n.Why != "" {
				text += " (" + n.Why + ")"
			}
			if _, err := fmt.Fprintf(w, "%s  %s\n", title, harmless(text, "")); err != nil {
				return err
			}
			title = ""
		}
	}
	if r.Problems != "" {
		if _, err := fmt.Fprintf(w, "Fix before the start\n%s\n", harmless(r.Problems, "\n")); err != nil {
			return err
		}
	}
	if r.File == "-" {
		return nil
	}
	_, err := fmt.Fprintf(w, "Wrote %s.\n", harmless(r.File, ""))
	return err
}
