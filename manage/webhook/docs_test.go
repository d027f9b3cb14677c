package webhook

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/anteroom/anteroom"
)

// TestThePageHasTheMessages: what docs/webhooks.md shows is what is sent, member for member, and its
// table has every type.
func TestThePageHasTheMessages(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	blocks := regexp.MustCompile("(?ms)^```json message\n(.*?)^```$").FindAllStringSubmatch(page, -1)
	if len(blocks) < 2 {
		t.Errorf("%d messages are shown", len(blocks))
	}
	for _, b := range blocks {
		var m Message
		d := json.NewDecoder(strings.NewReader(b[1]))
		d.DisallowUnknownFields()
		if err := d.Decode(&m); err != nil {
			t.Fatalf("%v in\n%s", err, b[1])
		}
		body, err := m.Body(anteroom.FormatJSON)
		var shown, sent any
		if err != nil || json.Unmarshal([]byte(b[1]), &shown) != nil || json.Unmarshal(body, &sent) != nil || !reflect.DeepEqual(shown, sent) {
			t.Errorf("shown is\n%s\nsent is\n%s", b[1], body)
		}
	}
	slack := regexp.MustCompile("(?ms)^```json slack\n(.*?)^```$").FindStringSubmatch(page)
	if slack == nil {
		t.Fatal("what Slack gets is not shown")
	}
	var m Message
	if err := json.Unmarshal([]byte(slack[1]), &m); err != nil {
		t.Fatal(err)
	}
	body, err := m.Body(anteroom.FormatSlack)
	var compact bytes.Buffer
	if err != nil || json.Compact(&compact, []byte(slack[1])) != nil || !bytes.Equal(compact.Bytes(), body) {
		t.Errorf("shown is\n%s\nsent is\n%s", slack[1], body)
	}
	for _, one := range append(anteroom.Happenings(), anteroom.WebhookTest) {
		if !strings.Contains(page, "| `"+one+"` | ") {
			t.Errorf("%s has no row", one)
		}
	}
}
