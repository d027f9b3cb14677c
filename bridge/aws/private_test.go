package aws

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/manage"
)

// token makes a token with a permission for a room.
func (w *world) token(may manage.Permission, room anteroom.RoomID) (id manage.TokenID, secret string) {
	w.Helper()
	root, err := w.manager.Authenticate(rootToken, anteroomAddress, "")
	if err != nil {
		w.Fatal(err)
	}
	t, secret, err := w.manager.CreateToken(w.Context(), root, manage.TokenSpec{Name: "t", Grants: []manage.Grant{{Permission: may, Room: room}}})
	if err != nil {
		w.Fatal(err)
	}
	return t.ID, secret
}

var anteroomAddress = api.AddressOf(httptest.NewRequest("GET", "/", nil))

// The private API tells and does what the original does, and says so where it does not.
func TestPrivateAPI(t *testing.T) {
	inWorld(t, sale, func(c *Config) { c.Custom = true }, func(w *world) {
		a, b := w.join(), w.join()
		update := func(id, status string) said {
			return w.operate("POST", "/update_session", `{"event_id":"Sample","request_id":"`+id+`","status":`+status+`}`)
		}
		w.is(w.operate("POST", "/increment_serving_counter", `{"event_id":"Sample","increment_by":1}`), 200, `{"serving_num": 1}`)
		w.is(w.operate("POST", "/increment_serving_counter", `{"event_id":"Sample","increment_by":0}`), 200, `{"serving_num": 1}`)
		w.is(w.operate("POST", "/increment_serving_counter", `{"event_id":"Sample","increment_by":-1}`), 400, `{"error": "increment_by must not be negative: the serving counter never goes down"}`)
		w.is(w.operate("POST", "/increment_serving_counter", `{"event_id":"Sample","increment_by":1000001}`), 400, `{"error": "increment_by must be at most 1000000"}`)
		w.is(w.operate("POST", "/increment_serving_counter", `{"event_id":"Sample","increment_by":1.5}`), 400, `{"message": "Invalid request body"}`)
		w.is(w.operate("POST", "/increment_serving_counter", `{"event_id":"Sample"}`), 400, `{"message": "Invalid request body"}`)
		w.is(w.operate("POST", "/increment_serving_counter", `{"event_id":"Other","increment_by":1}`), 400, `{"error": "Invalid event ID"}`)
		if s := w.serving(); s != "1" {
			t.Errorf("serving %s", s)
		}
		w.is(w.operate("GET", "/num_active_tokens?event_id=Sample", ""), 200, `{"active_tokens": 0}`)

		w.is(update(a, "1"), 404, `{"error": "Request ID doesn't exist or status already set."}`)
		one := w.operate("POST", "/generate_token", `{"event_id":"Sample","request_id":"`+a+`","issuer":"https://other.example.com/api","validity_period":60}`)
		if one.status != 200 || one.read("expires_in") != 60.0 {
			t.Fatalf("%d %s", one.status, one.body)
		}
		w.is(w.operate("POST", "/generate_token", `{"event_id":"Sample","request_id":"`+a+`","validity_period":601}`), 400,
			`{"error": "validity_period must be between 1 and the session_duration of the room in seconds"}`)
		// What one caller asks for is not what the next one gets.
		if w.claim(a).read("expires_in") != 600.0 {
			t.Error("validity_period of another call")
		}
		w.is(w.operate("GET", "/num_active_tokens?event_id=Sample", ""), 200, `{"active_tokens": 1}`)
		for _, status := range []string{"0", "2", "null", `"1"`} {
			if s := update(a, status).status; s != 400 {
				t.Errorf("status %s: %d", status, s)
			}
		}
		w.is(w.operate("POST", "/update_session", claimOf("short")), 400, `{"error": "Invalid event or request ID"}`)
		w.is(update(a, "1"), 200, `{}`)
		w.is(update(a, "1"), 404, `{"error": "Request ID doesn't exist or status already set."}`)
		w.is(update("26a07142-098a-4bea-b67d-1fe5a098bf29", "-1"), 404, `{"error": "Request ID doesn't exist or status already set."}`)
		w.is(w.claim(a), 410, `{"error": "Token corresponding to request id has expired"}`)
		w.is(w.operate("GET", "/num_active_tokens?event_id=Sample", ""), 200, `{"active_tokens": 0}`)

		// A session that has ended is listed until the application says how.
		w.operate("POST", "/increment_serving_counter", `{"event_id":"Sample","increment_by":1}`)
		w.claim(b)
		w.is(w.operate("GET", "/expired_tokens?event_id=Sample", ""), 200, `[]`)
		w.pass(11 * time.Minute)
		w.is(w.operate("GET", "/expired_tokens?event_id=Sample", ""), 200, `["`+b+`"]`)
		w.is(update(b, "-1"), 200, `{}`)
		w.is(w.operate("GET", "/expired_tokens?event_id=Sample", ""), 200, `[]`)
		w.serving()
		if n := w.bridge.line.now().Tokens; n != 2 {
			t.Errorf("%d tokens were counted", n)
		}
	})
}

// A reset begins anew: numbers from 1, and ids of before are unknown. The seats of sessions stay taken.
func TestReset(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		const message = `{"message": "It may take a minute or two to reset counters and recreate the database. Verify that token table is available and active in DynamoDB before using the waiting room."}`
		before := w.join()
		w.serving()
		w.claim(before)
		w.is(w.operate("POST", "/reset_initial_state", `{"event_id":"Other"}`), 200, message)
		if w.ask("GET", "/queue_num?event_id=Sample&request_id="+before, "").status != 200 {
			t.Error("a reset of another event")
		}
		w.is(w.operate("POST", "/reset_initial_state", `{"event_id":"Sample"}`), 200, message)
		w.is(w.ask("GET", "/queue_num?event_id=Sample&request_id="+before, ""), 202, `{"error": "Request ID not found"}`)
		w.is(w.claim(before), 400, `{"error": "Invalid request ID"}`)
		w.is(w.ask("GET", "/serving_num?event_id=Sample", ""), 200, `{"serving_counter": "0"}`)
		if a := w.ask("GET", "/queue_num?event_id=Sample&request_id="+w.join(), ""); a.read("queue_number") != 1.0 {
			t.Errorf("after a reset: %s", a.body)
		}
		w.is(w.operate("GET", "/num_active_tokens?event_id=Sample", ""), 200, `{"active_tokens": 1}`)
	})
}

// Who may do what follows from the token, and what changes something is in the audit log.
func TestPermissionOfThePrivateAPI(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		_, reads := w.token(manage.Read, sale.ID)
		_, edits := w.token(manage.Edit, sale.ID)
		_, elsewhere := w.token(manage.Edit, anteroom.RoomIDOf("shop.example.com", "other"))
		const increment = `{"event_id":"Sample","increment_by":1}`
		denied := `{"Message":"User is not authorized to access this resource"}`
		w.is(w.operateAs("", "POST", "/increment_serving_counter", increment), 403, `{"message":"Missing Authentication Token"}`)
		w.is(w.operateAs("wrong-0123456789-0123456789-0123456789-012345", "POST", "/increment_serving_counter", increment), 403, `{"message": "The security token included in the request is invalid."}`)
		w.is(w.operateAs(reads, "POST", "/increment_serving_counter", increment), 403, denied)
		w.is(w.operateAs(elsewhere, "POST", "/increment_serving_counter", increment), 403, denied)
		w.is(w.operateAs(elsewhere, "GET", "/num_active_tokens?event_id=Sample", ""), 403, denied)
		w.is(w.operateAs(reads, "GET", "/num_active_tokens?event_id=Sample", ""), 200, `{"active_tokens": 0}`)
		w.is(w.operateAs(edits, "POST", "/increment_serving_counter", increment), 200, `{"serving_num": 1}`)
		w.is(w.operateAs(edits, "POST", "/no_such_thing", increment), 403, `{"message":"Missing Authentication Token"}`)
		w.is(w.operateAs(edits, "DELETE", "/reset_initial_state", increment), 403, `{"message":"Missing Authentication Token"}`)
		root, _ := w.manager.Authenticate(rootToken, anteroomAddress, "")
		log, err := w.manager.Audit(context.Background(), root, 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, r := range log {
			if r.Operation == "bridge.increment" && r.Room == sale.ID {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d increments in the audit log", n)
		}
	})
}

// Vectors of the published test suite of Signature Version 4 that paths and headers of the API can have.
func TestSignatureVectors(t *testing.T) {
	for _, c := range []struct {
		name, method, target string
		headers              []string
		body, signed, want   string
	}{
		{"get-vanilla", "GET", "/", nil, "", "host;x-amz-date", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"post-vanilla", "POST", "/", nil, "", "host;x-amz-date", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"get-vanilla-query-order-key-case", "GET", "/?Param2=value2&Param1=value1", nil, "", "host;x-amz-date", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"get-unreserved", "GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", nil, "", "host;x-amz-date", "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		{"get-header-value-trim", "GET", "/", []string{"My-Header1", " value1", "My-Header2", ` "a   b   c"`}, "", "host;my-header1;my-header2;x-amz-date", "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		{"post-x-www-form-urlencoded", "POST", "/", []string{"Content-Type", "application/x-www-form-urlencoded"}, "Param1=value1", "content-type;host;x-amz-date", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		r := httptest.NewRequest(c.method, "http://example.amazonaws.com"+c.target, nil)
		r.Header.Set("X-Amz-Date", "20150830T123600Z")
		for i := 0; i+1 < len(c.headers); i += 2 {
			r.Header.Set(c.headers[i], c.headers[i+1])
		}
		s, ok := readSignature("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=" + c.signed + ", Signature=" + c.want)
		got, signed := s.of(r, []byte(c.body), "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
		if !ok || !signed || got != s.value {
			t.Errorf("%s: %v %v %s, want %s", c.name, ok, signed, got, c.want)
		}
	}
}

// sign signs a request as clients do.
func sign(r *http.Request, body, key, secret, service string, at time.Time) {
	r.Header.Set("X-Amz-Date", at.UTC().Format(stampFormat))
	date := at.UTC().Format("20060102")
	s := signature{key: key, date: date, region: "eu-west-1", service: service, headers: []string{"host", "x-amz-date"}}
	value, _ := s.of(r, []byte(body), secret)
	r.Header.Set("Authorization", signatureScheme+" Credential="+key+"/"+date+"/eu-west-1/"+service+"/aws4_request, SignedHeaders=host;x-amz-date, Signature="+value)
}

// A signature by the access key of a token is as good as the token, and nothing else is.
func TestSignedRequests(t *testing.T) {
	inWorld(t, sale, nil, func(w *world) {
		id, secret := w.token(manage.Edit, sale.ID)
		a := w.operateAs(secret, "POST", "/access_key", "")
		key, _ := a.read("access_key_id").(string)
		private, _ := a.read("secret_access_key").(string)
		if a.status != 200 || key != string(id) || len(private) < 40 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if a := w.operate("POST", "/access_key", "{}"); a.status != 400 {
			t.Errorf("a token of the environment: %d %s", a.status, a.body)
		}
		const body = `{"event_id": "Sample", "increment_by": 1}`
		for _, c := range []struct {
			name   string
			change func(*http.Request)
			key    string
			secret string
			of     string
			off    time.Duration
			status int
			body   string
		}{
			{"good", nil, key, private, signatureService, 0, 200, ""},
			{"slow clock", nil, key, private, signatureService, -4 * time.Minute, 200, ""},
			{"clock too slow", nil, key, private, signatureService, -6 * time.Minute, 403, "expired"},
			{"clock too fast", nil, key, private, signatureService, 6 * time.Minute, 403, "expired"},
			{"another service", nil, key, private, "s3", 0, 403, "Credential"},
			{"another secret", nil, key, private + "x", signatureService, 0, 403, "does not match"},
			{"another key", nil, strings.Repeat("0", 32), private, signatureService, 0, 403, "does not match"},
			{"another host", func(r *http.Request) { r.Host = "other.example.com" }, key, private, signatureService, 0, 403, "does not match"},
			{"another query", func(r *http.Request) { r.URL.RawQuery = "x=1" }, key, private, signatureService, 0, 403, "does not match"},
			{"another day", func(r *http.Request) { r.Header.Set("X-Amz-Date", "19991231T000000Z") }, key, private, signatureService, 0, 403, "X-Amz-Date"},
			{"host not signed", func(r *http.Request) {
				r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), "host;", "", 1))
			}, key, private, signatureService, 0, 403, "SignedHeaders"},
			{"nothing in it", func(r *http.Request) { r.Header.Set("Authorization", signatureScheme) }, key, private, signatureService, 0, 403, "Credential"},
		} {
			r := httptest.NewRequest("POST", "http://127.0.0.1:8081"+Prefix+"/Sample/increment_serving_counter", strings.NewReader(body))
			sign(r, body, c.key, c.secret, c.of, time.Now().Add(c.off))
			if c.change != nil {
				c.change(r)
			}
			if a := w.private(r); a.status != c.status || !strings.Contains(a.body, c.body) {
				t.Errorf("%s: %d %s, want %d with %q", c.name, a.status, a.body, c.status, c.body)
			}
		}
		r := httptest.NewRequest("POST", "http://127.0.0.1:8081"+Prefix+"/Sample/increment_serving_counter", strings.NewReader(strings.Replace(body, "1", "9", 1)))
		sign(r, body, key, private, signatureService, time.Now())
		if a := w.private(r); a.status != 403 {
			t.Errorf("another body: %d %s", a.status, a.body)
		}
		// The key is the token's: with it, the key ends.
		root, _ := w.manager.Authenticate(rootToken, anteroomAddress, "")
		if err := w.manager.DeleteToken(w.Context(), root, id); err != nil {
			t.Fatal(err)
		}
		r = httptest.NewRequest("POST", "http://127.0.0.1:8081"+Prefix+"/Sample/increment_serving_counter", strings.NewReader(body))
		sign(r, body, key, private, signatureService, time.Now())
		w.is(w.private(r), 403, `{"message": "The security token included in the request is invalid."}`)
	})
}

func FuzzSignature(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=A/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=00", "a=b&a=%zz", []byte("{}"))
	f.Add("AWS4-HMAC-SHA256 Credential=////aws4_request,SignedHeaders=;host;x-amz-date;X,Signature=", "", []byte{})
	f.Fuzz(func(t *testing.T, authorization, query string, body []byte) {
		s, ok := readSignature(authorization)
		if !ok {
			return
		}
		r := httptest.NewRequest("POST", "/x", bytes.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("X-Amz-Date", "20150830T123600Z")
		if value, ok := s.of(r, body, "secret"); ok && len(value) != hex.EncodedLen(sha256.Size) {
			t.Errorf("a signature of %d digits", len(value))
		}
	})
}
