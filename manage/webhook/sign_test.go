package webhook

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// vectors are what receivers in other languages can be held against: testdata/signatures.json.
type vector struct {
	Name      string `json:"name"`
	Secret    string `json:"secret"`
	Body      string `json:"body"`
	Signature string `json:"signature"`
	Now       int64  `json:"now"` // Unix time of the receiver
	Valid     bool   `json:"valid"`
}

func TestSignatureVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/signatures.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	good := 0
	for _, v := range all {
		err := Verify(v.Signature, []byte(v.Body), v.Secret, time.Unix(v.Now, 0), DefaultTolerance)
		if (err == nil) != v.Valid {
			t.Errorf("%s: %v", v.Name, err)
		}
		if v.Valid {
			good++
		}
	}
	if good < 3 || len(all)-good < 8 {
		t.Errorf("%d good and %d bad ones", good, len(all)-good)
	}
	if got := Sign([]byte(all[0].Body), time.Unix(1_795_770_000, 0), all[0].Secret); got != all[0].Signature {
		t.Errorf("signed %s, the vector says %s", got, all[0].Signature)
	}
}

func TestSignatureOfTwoSecrets(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_795_770_000, 0)
	header := Sign([]byte("{}"), now, "new", "old")
	for _, secret := range []string{"new", "old"} {
		if err := Verify(header, []byte("{}"), secret, now, time.Minute); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
	}
	if err := Verify(header, []byte("{}"), "other", now, time.Minute); !errors.Is(err, ErrSignature) {
		t.Error(err)
	}
	if err := Verify(header, []byte("{}"), "new", now.Add(2*time.Minute), time.Minute); !errors.Is(err, ErrTime) {
		t.Error(err)
	}
	// A body whose beginning could be read as the time's end is another text.
	if err := Verify(strings.Replace(header, "t=1795770000", "t=179577000", 1), []byte("0.{}"), "new", time.Unix(179_577_000, 0), time.Minute); !errors.Is(err, ErrSignature) {
		t.Error(err)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("t=1795770000,v1=00", "{}", "s")
	f.Add(Sign([]byte("{}"), time.Unix(1_795_770_000, 0), "s"), "{}", "s")
	f.Add("t=,v1=,,=,t", "", "")
	f.Fuzz(func(t *testing.T, header, body, secret string) {
		now := time.Unix(1_795_770_000, 0)
		if Verify(header, []byte(body), secret, now, time.Minute) == nil && !strings.Contains(header, strings.TrimPrefix(Sign([]byte(body), now, secret), "t=1795770000")) {
			for off := -60; off <= 60; off++ {
				_, sum, _ := strings.Cut(Sign([]byte(body), now.Add(time.Duration(off)*time.Second), secret), "v1=")
				if strings.Contains(strings.ToLower(header), sum) {
					return
				}
			}
			t.Errorf("%q is taken", header)
		}
		if secret != "" {
			if err := Verify(Sign([]byte(body), now, secret), []byte(body), secret, now, 0); err != nil {
				t.Error(err)
			}
		}
	})
}
