package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
)

// hookQuestion is what the operator's hook is asked. docs/bots.md describes it.
type hookQuestion struct {
	Token    string `json:"token"`
	Question string `json:"question"`
	Address  string `json:"address"` // empty when a trusted proxy has not said it
	Room     string `json:"room"`
	RoomID   string `json:"room_id"`
	Zone     string `json:"zone"`
}

func hookRequest(ctx context.Context, c Challenge, t token) (*http.Request, error) {
	body, err := json.Marshal(hookQuestion{t.text, t.question, addrString(t.client), t.room.Name, string(t.room.ID), t.room.Zone})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.VerifyURL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if c.Secret != "" {
		r.Header.Set("Authorization", "Bearer "+c.Secret)
	}
	return r, nil
}

// readHook takes {"ok": true} and {"ok": false}, and nothing else: a hook that says neither is out of order.
func readHook(body []byte, _ token) (came result, why string) {
	var answer struct {
		OK *bool `json:"ok"`
	}
	switch err := json.Unmarshal(body, &answer); {
	case err != nil || answer.OK == nil:
		return unverified, `the answer does not say "ok"`
	case *answer.OK:
		return solved, ""
	}
	return failed, ""
}
