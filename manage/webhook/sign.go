package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Headers of deliveries.
const (
	SignatureHeader = "X-Anteroom-Signature"
	TypeHeader      = "X-Anteroom-Event"    // the message's type
	DeliveryHeader  = "X-Anteroom-Delivery" // its id, the same at every attempt
)

// DefaultTolerance is how far the time of a signature may be from the receiver's.
const DefaultTolerance = 5 * time.Minute

// maxSignature is the longest header that Verify reads, in bytes.
const maxSignature = 1024

// Sign returns the value of SignatureHeader: t=, the Unix time in seconds, and for each secret v1=,
// the HMAC-SHA256 in hexadecimal digits of that number, a dot and the body. Two secrets sign
// while one is being replaced.
func Sign(body []byte, at time.Time, secrets ...string) string {
	var b strings.Builder
	t := strconv.FormatInt(at.Unix(), 10)
	b.WriteString("t=" + t)
	for _, s := range secrets {
		b.WriteString(",v1=" + hex.EncodeToString(mac(s, t, body)))
	}
	return b.String()
}

func mac(secret, t string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(t + "."))
	h.Write(body)
	return h.Sum(nil)
}

// Errors of Verify.
var (
	ErrSignature = errors.New("webhook: no signature in the header matches this secret and body")
	ErrTime      = errors.New("webhook: the signature is too old, or from the future")
)

// Verify returns nil if a header's value is a signature of the body with the secret, made less
// than the tolerance before or after now.
func Verify(header string, body []byte, secret string, now time.Time, tolerance time.Duration) error {
	if len(header) > maxSignature {
		return fmt.Errorf("webhook: the header has %d bytes, at most %d are read", len(header), maxSignature)
	}
	var t string
	var signed [][]byte
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			if t != "" {
				return errors.New("webhook: the header has two timestamps")
			}
			t = value
		case "v1":
			if sum, err := hex.DecodeString(value); err == nil {
				signed = append(signed, sum)
			}
		}
	}
	unix, err := strconv.ParseInt(t, 10, 64)
	if err != nil || len(signed) == 0 || secret == "" {
		return fmt.Errorf("%w: expected t=1795770000,v1=…", ErrSignature)
	}
	want, found := mac(secret, t, body), false
	for _, sum := range signed {
		found = hmac.Equal(sum, want) || found
	}
	if !found {
		return ErrSignature
	}
	if off := now.Sub(time.Unix(unix, 0)); off > tolerance || off < -tolerance {
		return fmt.Errorf("%w: %v", ErrTime, off.Round(time.Second))
	}
	return nil
}
