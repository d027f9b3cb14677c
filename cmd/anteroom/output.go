package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/anteroom/anteroom/config"
)

// output is the form in which a command prints its result: "table" is for people, and a sentence
// where there is nothing to list.
type output struct{ form string }

// outputFlags adds -o, and --json for what it did before there was -o.
func outputFlags(f *pflag.FlagSet) *output {
	o := &output{"table"}
	f.VarP(o, "output", "o", "table, json (or --json) or yaml")
	f.BoolFunc("json", "print JSON, like -o json", func(text string) error {
		on, err := strconv.ParseBool(text)
		if err == nil && on {
			o.form = "json"
		}
		return err
	})
	f.MarkHidden("json") // -o says it; help is a screen long
	return o
}

func (o *output) String() string { return o.form }
func (o *output) Type() string   { return "form" }

// Set takes what -o says.
func (o *output) Set(form string) error {
	if form != "table" && form != "json" && form != "yaml" {
		return fmt.Errorf("write table, json or yaml")
	}
	o.form = form
	return nil
}

// people reports whether people read the result, and no program.
func (o *output) people() bool { return o.form == "table" }

// data prints a value for programs.
func (o *output) data(w io.Writer, v any) error {
	if o.form != "yaml" {
		return printJSON(w, v)
	}
	var text bytes.Buffer
	if err := printJSON(&text, v); err != nil {
		return err
	}
	out, err := config.YAML(text.Bytes())
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// put prints a result, as data or as show does for people.
func put[T any](o *output, w io.Writer, result T, show func(io.Writer, T) error) error {
	if o.people() {
		return show(w, result)
	}
	return o.data(w, result)
}

// printJSON prints a value as JSON.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
