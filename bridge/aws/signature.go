package aws

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/anteroom/anteroom/api"
	"github.com/anteroom/anteroom/bridge"
	"github.com/anteroom/anteroom/manage"
)

// signatureScheme begins the header Authorization of a signed request (Signature Version 4).
const signatureScheme = "AWS4-HMAC-SHA256"

// signatureService is the service that requests are signed for.
const signatureService = "execute-api"

// maxSkew is how far the moment of a signature may be from now.
const maxSkew = 5 * time.Minute

const stampFormat = "20060102T150405Z"

// wrongSignature is the original's answer.
var wrongSignature = refusal(http.StatusForbidden, "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")

// signature is what the header says of one.
type signature struct {
	key, date, region, service string
	headers                    []string // signed, in order
	value                      string   // hexadecimal digits
}

// secretKey returns the secret of a token's access key.
func (b *Bridge) secretKey(id manage.TokenID) string {
	key := bridge.Derive(b.cfg.Secret, "access-key "+string(id), 0)
	return encode(key[:])
}

// signedBy returns the caller whose access key has signed a request.
func (c *call) signedBy(body []byte, authorization string) (by manage.Caller, no answer) {
	if c.room == nil { // it has the time
		return by, broken
	}
	s, ok := readSignature(authorization)
	if !ok || s.service != signatureService {
		return by, refusal(http.StatusForbidden, "Authorization header requires 'Credential', 'Signature' and 'SignedHeaders' for the service "+signatureService)
	}
	at, err := time.Parse(stampFormat, c.Header.Get("X-Amz-Date"))
	if err != nil || at.Format("20060102") != s.date {
		return by, refusal(http.StatusForbidden, "Authorization header requires existence of a 'X-Amz-Date' header of the day in 'Credential'")
	}
	if c.room.Now().Std().Sub(at).Abs() > maxSkew {
		return by, refusal(http.StatusForbidden, "Signature expired: "+at.Format(stampFormat)+" is more than "+maxSkew.String()+" from the server's time")
	}
	want, ok := s.of(c.Request, body, c.b.secretKey(manage.TokenID(s.key)))
	if !ok || !hmac.Equal([]byte(want), []byte(s.value)) {
		return by, wrongSignature
	}
	if by, err = c.b.cfg.Manager.CallerOf(manage.TokenID(s.key), api.AddressOf(c.Request)); err != nil {
		return by, invalidToken
	}
	return by, answer{}
}

func readSignature(authorization string) (s signature, ok bool) {
	rest, ok := strings.CutPrefix(authorization, signatureScheme+" ")
	if !ok {
		return s, false
	}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			scope := strings.Split(value, "/")
			if len(scope) != 5 || scope[4] != "aws4_request" {
				return s, false
			}
			s.key, s.date, s.region, s.service = scope[0], scope[1], scope[2], scope[3]
		case "SignedHeaders":
			s.headers = strings.Split(value, ";")
		case "Signature":
			s.value = value
		}
	}
	return s, s.key != "" && s.value != "" && slices.Contains(s.headers, "host") && slices.Contains(s.headers, "x-amz-date")
}

// of computes the signature of a request with a secret. False: the request says something that cannot be signed here.
func (s signature) of(r *http.Request, body []byte, secret string) (string, bool) {
	headers := ""
	for _, name := range s.headers {
		values := r.Header.Values(name)
		if name == "host" {
			values = []string{r.Host}
		}
		if name == "content-length" && len(values) == 0 { // net/http takes it off the headers
			values = []string{text(r.ContentLength)}
		}
		if len(values) == 0 || name != strings.ToLower(name) {
			return "", false
		}
		trimmed := make([]string, len(values))
		for i, v := range values {
			trimmed[i] = strings.Join(strings.Fields(v), " ")
		}
		headers += name + ":" + strings.Join(trimmed, ",") + "\n"
	}
	query, ok := canonicalQuery(r.URL.RawQuery)
	path := r.URL.EscapedPath()
	if !ok || strings.ContainsAny(path, "%") { // the paths of the API have no escapes
		return "", false
	}
	sum := sha256.Sum256(body)
	request := strings.Join([]string{r.Method, path, query, headers, strings.Join(s.headers, ";"), hex.EncodeToString(sum[:])}, "\n")
	digest := sha256.Sum256([]byte(request))
	scope := strings.Join([]string{s.date, s.region, s.service, "aws4_request"}, "/")
	key := []byte("AWS4" + secret)
	for _, part := range []string{s.date, s.region, s.service, "aws4_request",
		strings.Join([]string{signatureScheme, r.Header.Get("X-Amz-Date"), scope, hex.EncodeToString(digest[:])}, "\n")} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return hex.EncodeToString(key), true
}

// canonicalQuery sorts a query's parameters and escapes them anew.
func canonicalQuery(raw string) (string, bool) {
	q, err := url.ParseQuery(raw)
	if err != nil {
		return "", false
	}
	var pairs []string
	for name, values := range q {
		for _, v := range values {
			pairs = append(pairs, escape(name)+"="+escape(v))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&"), true
}

// escape is the one of the specification: everything but the unreserved characters of RFC 3986.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
