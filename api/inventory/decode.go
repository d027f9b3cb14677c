package inventory

import (
	"bytes"
	"encoding/json"

	"github.com/anteroom/anteroom"
)

// decode reads JSON with numbers as they are written.
func decode(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return anteroom.Errorf(anteroom.Unavailable, "the API returned an unexpected shape: %w", err)
	}
	return nil
}
