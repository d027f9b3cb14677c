package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/anteroom/anteroom/config"
)

func TestLogSettings(t *testing.T) {
	for _, c := range []struct {
		log  config.Log
		want string
	}{
		{config.Log{Level: "info", Format: "json"}, `{"time":`},
		{config.Log{Level: "info", Format: "text"}, "time="},
		{config.Log{Level: "error", Format: "text"}, ""},
	} {
		out, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr := os.Stderr
		os.Stderr = in
		newLog(c.log).Info("hello")
		os.Stderr = stderr
		in.Close()
		got, err := io.ReadAll(out)
		if err != nil || !strings.HasPrefix(string(got), c.want) || (c.want == "") != (len(got) == 0) {
			t.Errorf("%+v: %q, %v", c.log, got, err)
		}
		out.Close()
	}
}
