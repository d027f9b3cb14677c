package gateway

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/engine"
)

// docs/shuffle.md shows what the gateway answers for the published vector, and its program
// finds the place that the receipt says.
func TestShufflePageIsTrue(t *testing.T) {
	raw, err := os.ReadFile("../docs/shuffle.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```(?:json|python)\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) != 4 {
		t.Fatalf("%d examples, want 4", len(blocks))
	}
	sh := &anteroom.Shuffle{Done: true}
	for i := range sh.Seed {
		sh.Seed[i] = byte(i)
	}
	for i := range byte(4) {
		var id anteroom.ID
		for k := range id {
			id[k] = 0x11 * (i + 1)
		}
		sh.IDs = append(sh.IDs, id)
	}
	sh.Commitment, sh.Entries = engine.Commitment(sh.Seed[:]), engine.Entries(sh.IDs)
	event := anteroom.Event{ID: "25756b2dfe6e378a06b033b670413757", Name: "sale", ShuffleAtStart: true,
		Prequeue: "2024-11-29T09:30:00Z", Start: "2024-11-29T10:00:00Z", End: "2024-11-29T12:00:00Z"}
	start, _ := event.Start.Time()
	sh.At = anteroom.TimeOf(start)
	w := newWorld(t, line, withRoom(func(r *anteroom.Room) { r.Events = []anteroom.Event{event} }))
	give := func(sh *anteroom.Shuffle) {
		w.door.mu.Lock()
		defer w.door.mu.Unlock()
		w.door.shuffle = func(anteroom.EventID, int) (*anteroom.Shuffle, bool) { return sh, true }
	}
	own := waiting()
	own.ID = sh.IDs[1]
	path := drawPath + string(w.room.ID) + "/" + string(event.ID) + "/0"

	give(&anteroom.Shuffle{Commitment: sh.Commitment})
	_, before := w.do("GET", path, nil)
	give(sh)
	_, after := w.do("GET", path, nil)
	_, mine := w.do("GET", "/?__anteroom=receipt", header("Cookie", w.seal(own)))
	for i, got := range []string{before, after, mine} {
		if got != blocks[i] {
			t.Errorf("example %d is\n%s\nand the answer is\n%s", i+1, blocks[i], got)
		}
	}

	_, list := w.do("GET", path+"/ids", nil)
	dir := t.TempDir()
	files := map[string]string{"check.py": blocks[3], "receipt.json": mine, "ids": list}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command("python3", "check.py", "receipt.json", "ids")
	run.Dir = dir
	out, err := run.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "place 3 of 4" {
		t.Errorf("%v: %s", err, out)
	}
}
