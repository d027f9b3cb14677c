package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/engine"
)

// A record and its ids are read from where everybody gets them, as they are there.
func TestVerifyFromAURL(t *testing.T) {
	t.Setenv("ANTEROOM_API_TOKEN", adminToken)
	ids := make([]anteroom.ID, 1000)
	for i := range ids {
		ids[i] = anteroom.ID{byte(i >> 8), byte(i), 7}
	}
	seed := [32]byte{1, 2, 3}
	commitment, entries := engine.Commitment(seed[:]), engine.Entries(ids)
	hexSeed, hexEntries, count := hex.EncodeToString(seed[:]), hex.EncodeToString(entries[:]), len(ids)
	rec := shuffleRecord{Shuffle: schema.Shuffle{Commitment: hex.EncodeToString(commitment[:]), Done: true, Seed: &hexSeed, Entries: &hexEntries, Count: &count}}
	// Whoever alters the record cannot send us elsewhere.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer elsewhere.Close()
	rec.IDs = schema.Optional(elsewhere.URL + "/ids")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token of the API was sent to another site")
		}
		switch r.URL.Path {
		case "/draw/0":
			json.NewEncoder(w).Encode(rec)
		case "/draw/0/ids":
			for _, id := range ids {
				w.Write(id[:])
			}
		case "/endless":
			io.Copy(w, strings.NewReader(strings.Repeat(" ", 2<<20)))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	run := func(args ...string) (string, error) {
		cmd := verifyCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	first := ids[engine.Order(engine.ShuffleKey(seed[:], entries), ids)[0]]
	if out, err := run(s.URL+"/draw/0", hex.EncodeToString(first[:])); err != nil || !strings.Contains(out, "has place 1 of 1000") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := run(s.URL + "/endless"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a record that is too long: %v", err)
	}
	if _, err := run(s.URL + "/nothing"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a record that is not there: %v", err)
	}
	ids = ids[1:]
	if out, err := run(s.URL + "/draw/0"); err == nil || !strings.Contains(out, "DO NOT HOLD") {
		t.Errorf("a list that is cut: %v\n%s", err, out)
	}
}
