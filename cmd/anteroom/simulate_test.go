package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Ctrl-C ends a run that would take hours, with its own exit code and without output.
func TestSimulateStops(t *testing.T) {
	if testing.Short() {
		t.Skip("long")
	}
	file := filepath.Join(t.TempDir(), "plan.yaml")
	plan := "{name: long, length: 168h, limits: {total_active_users: 5000, new_users_per_minute: 5000}, arrivals: [{per_minute: 450}]}"
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	cmd := simulateCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{file})
	var out bytes.Buffer
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(ctx)
	if e, ok := errors.AsType[exitError](err); !ok || e.code != exitInterrupted || out.Len() > 0 {
		t.Errorf("%v, output %q", err, out.String())
	}
}
