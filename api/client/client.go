// Package client calls the management API of an Anteroom, or of another server with the same envelope. The command line
// uses it, and so does the code that copies rooms from one installation to another.
//
// Answers are bounded in size and time, and the token is sent to one host only: a redirect elsewhere is an error.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/anteroom/anteroom"
)

// Bounds of one exchange.
const (
	// MaxAnswer is how much of an answer is read, in bytes.
	MaxAnswer = 64 << 20
	// MaxPages is how many pages of a list are asked for.
	MaxPages = 1000

	patience   = 30 * time.Second // for an answer
	maxRetries = 4                // of a request that was refused for being one too many
	maxPause   = time.Minute      // before such a retry
)

// Config of a client.
type Config struct {
	// URL is what paths are appended to, like http://127.0.0.1:8081. Required.
	URL string
	// Token is sent as a bearer token; empty sends none.
	Token string
	// UserAgent names the program; empty means "anteroom".
	UserAgent string
	// Patient retries requests that were refused for their rate, as often and as late as the server says, within
	// bounds.
	Patient bool
	// Transport makes the requests; nil means one of our own.
	Transport http.RoundTripper
}

// Client is safe for concurrent use.
type Client struct {
	base  *url.URL
	token string
	agent string
	tries int // after the first one
	http  *http.Client
}

// New returns a client, or an error of kind Invalid that says what a URL looks like.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, anteroom.Errorf(anteroom.Invalid, "%q is not the address of an API: write it like http://127.0.0.1:8081", c.URL)
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, anteroom.Errorf(anteroom.Invalid, "the token has characters that no token has; look for a line break or a space in it")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	cl := &Client{base: u, token: c.Token, agent: c.UserAgent}
	cl.agent = cmp.Or(cl.agent, "anteroom")
	if c.Patient {
		cl.tries = maxRetries
	}
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
		t.MaxResponseHeaderBytes = anteroom.MaxHeaderBytes
		c.Transport = t
	}
	cl.http = &http.Client{Transport: c.Transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if r.URL.Host != u.Host || r.URL.Scheme != u.Scheme {
			return fmt.Errorf("it redirects to %s://%s, and the token is sent to no other address; use that one if it is right", r.URL.Scheme, r.URL.Host)
		}
		if len(via) > 5 {
			return errors.New("it redirects in a loop")
		}
		return nil
	}}
	return cl, nil
}

// URL is what the client talks to.
func (c *Client) URL() string { return c.base.String() }

// codeElsewhere is that of an answer 403 that is not about the token.
const codeElsewhere = 10403

// Problem is one thing that an API says is wrong.
type Problem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Source  struct {
		Pointer string `json:"pointer"`
	} `json:"source"`
}

// Error is an answer that says no.
type Error struct {
	Method, Path string
	Status       int
	Problems     []Problem
	Text         string // what came instead of an envelope, its beginning
}

func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(line(strings.TrimSuffix(p.Message, ": invalid data")))
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "%s %s was answered with status %d", e.Method, e.Path, e.Status)
		if e.Text != "" {
			fmt.Fprintf(&b, " and not in the envelope of this API: %q", e.Text)
		}
	}
	return b.String()
}

// line replaces what would end a line, or what a terminal would obey.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// kind sorts an answer by what the caller can do about it.
func (e *Error) kind() anteroom.Kind {
	switch {
	case e.Status == http.StatusForbidden && len(e.Problems) > 0 && e.Problems[0].Code == codeElsewhere:
		return anteroom.Elsewhere
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return anteroom.Denied
	case e.Status == http.StatusNotFound:
		return anteroom.NotFound
	case e.Status == http.StatusConflict || e.Status == http.StatusPreconditionFailed:
		return anteroom.Conflict
	case e.Status == http.StatusTooManyRequests || e.Status >= 500:
		return anteroom.Unavailable
	}
	return anteroom.Invalid
}

type envelope struct {
	Success *bool           `json:"success"`
	Errors  []Problem       `json:"errors"`
	Result  json.RawMessage `json:"result"`
	Info    struct {
		Cursors struct {
			After string `json:"after"`
		} `json:"cursors"`
	} `json:"result_info"`
}

// Do sends a request with body as JSON (nil sends none) and decodes the result of the
// answer into result (nil ignores it). An answer that says no is an [anteroom.Error] around an [Error].
func (c *Client) Do(ctx context.Context, method, path string, query url.Values, body, result any) error {
	_, err := c.do(ctx, method, path, query, body, result)
	return err
}

// Page is Do for a part of a list that comes with cursors. It returns the cursor of the next
// part, empty after the last one.
func (c *Client) Page(ctx context.Context, path string, query url.Values, result any) (after string, err error) {
	e, err := c.do(ctx, http.MethodGet, path, query, nil, result)
	return e.Info.Cursors.After, err
}

func (c *Client) do(ctx context.Context, method, path string, query url.Values, body, result any) (e envelope, err error) {
	var sent []byte
	if body != nil {
		if sent, err = json.Marshal(body); err != nil {
			return e, err
		}
	}
	for try := 0; ; try++ {
		var wait time.Duration
		if e, wait, err = c.once(ctx, method, path, query, sent); err == nil {
			break
		}
		if wait < 0 || try >= c.tries {
			return e, err
		}
		select {
		case <-ctx.Done():
			return e, ctx.Err()
		case <-time.After(wait):
		}
	}
	return e, e.into(result, method, path)
}

// once is one try; after an error wait is not negative when the API asks for another one.
func (c *Client) once(ctx context.Context, method, path string, query url.Values, sent []byte) (e envelope, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var body io.Reader
	if sent != nil {
		body = bytes.NewReader(sent)
	}
	res, err := c.send(ctx, method, path, query, body, "application/json")
	if err != nil {
		return e, -1, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusTooManyRequests {
		wait = time.Second
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s >= 0 {
			wait = min(time.Duration(s)*time.Second, maxPause)
		}
		return e, wait, c.refusal(res, method, path)
	}
	e, err = c.read(res, method, path)
	return e, -1, err
}

// read reads an answer in the envelope.
func (c *Client) read(res *http.Response, method, path string) (e envelope, err error) {
	if res.StatusCode >= 300 {
		return e, c.refusal(res, method, path)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1))
	if err != nil {
		return e, anteroom.Errorf(anteroom.Unavailable, "%s %s: the answer broke off: %w", method, path, err)
	}
	if len(answer) > MaxAnswer {
		return e, anteroom.Errorf(anteroom.Unavailable, "%s %s: the answer has more than %d MiB", method, path, MaxAnswer>>20)
	}
	if err := json.Unmarshal(answer, &e); err != nil || e.Success == nil || !*e.Success {
		no := &Error{Method: method, Path: path, Status: res.StatusCode, Problems: e.Errors}
		if len(e.Errors) == 0 {
			no.Text = beginning(answer)
		}
		return e, &anteroom.Error{Kind: anteroom.Unavailable, Msg: no.Error(), Err: no}
	}
	return e, nil
}

// into decodes the result. Numbers that go into an any stay as they were written.
func (e envelope) into(result any, method, path string) error {
	if result == nil {
		return nil
	}
	if raw, ok := result.(*json.RawMessage); ok {
		*raw = e.Result
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(e.Result))
	d.UseNumber()
	if err := d.Decode(result); err != nil {
		return anteroom.Errorf(anteroom.Unavailable, "%s %s: the result is not what it should be: %w", method, path, err)
	}
	return nil
}

func beginning(b []byte) string {
	const most = 200
	return strings.ToValidUTF8(string(b[:min(len(b), most)]), "\uFFFD")
}

// refusal reads what an answer says against the request.
func (c *Client) refusal(res *http.Response, method, path string) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // what is there of it
	no := &Error{Method: method, Path: path, Status: res.StatusCode}
	var e envelope
	if err := json.Unmarshal(text, &e); err == nil {
		no.Problems = e.Errors
	}
	if len(no.Problems) == 0 {
		no.Text = beginning(text)
	}
	return &anteroom.Error{Kind: no.kind(), Msg: no.Error(), Err: no}
}

func (c *Client) send(ctx context.Context, method, path string, query url.Values, body io.Reader, contentType string) (*http.Response, error) {
	u := c.base.String() + path
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return nil, ctx.Err()
		}
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, anteroom.Errorf(anteroom.Unavailable, "%s cannot be reached: %w", c.base, err)
	}
	return res, nil
}

// All returns every item of a list that comes in pages: it asks for the next one until one
// is empty, as the published API wants.
func (c *Client) All(ctx context.Context, path string, query url.Values) ([]json.RawMessage, error) {
	var all []json.RawMessage
	var before []byte
	q := url.Values{"per_page": {"50"}}
	maps.Copy(q, query)
	size := 0
	for page := 1; page <= MaxPages; page++ {
		q.Set("page", strconv.Itoa(page))
		var raw json.RawMessage
		if err := c.Do(ctx, http.MethodGet, path, q, nil, &raw); err != nil {
			return nil, err
		}
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, anteroom.Errorf(anteroom.Unavailable, "GET %s: the result is not a list", path)
		}
		if len(items) == 0 {
			return all, nil
		}
		if bytes.Equal(raw, before) {
			return nil, anteroom.Errorf(anteroom.Unavailable, "GET %s: page %d is the same as page %d; this API has no pages", path, page, page-1)
		}
		if size += len(raw); size > 4*MaxAnswer {
			return nil, anteroom.Errorf(anteroom.Unavailable, "GET %s: the list has more than %d MiB", path, 4*MaxAnswer>>20)
		}
		before = raw
		all = append(all, items...)
	}
	return nil, anteroom.Errorf(anteroom.Unavailable, "GET %s: the list has more than %d pages", path, MaxPages)
}

// Download copies the body of an answer that is not in the envelope, at most limit bytes.
// The context bounds its time.
func (c *Client) Download(ctx context.Context, path string, query url.Values, w io.Writer, limit int64) error {
	res, err := c.send(ctx, http.MethodGet, path, query, nil, "")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return c.refusal(res, http.MethodGet, path)
	}
	n, err := io.Copy(w, io.LimitReader(res.Body, limit+1))
	if err != nil {
		return anteroom.Errorf(anteroom.Unavailable, "GET %s: the answer broke off: %w", path, err)
	}
	if n > limit {
		return anteroom.Errorf(anteroom.Unavailable, "GET %s: the answer has more than %d bytes", path, limit)
	}
	return nil
}

// Upload sends what r gives as the body of a POST, and decodes the result of the answer into
// result. The context bounds its time.
func (c *Client) Upload(ctx context.Context, path string, query url.Values, r io.Reader, contentType string, result any) error {
	res, err := c.send(ctx, http.MethodPost, path, query, r, contentType)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	e, err := c.read(res, http.MethodPost, path)
	if err != nil {
		return err
	}
	return e.into(result, http.MethodPost, path)
}

// Below returns a client whose base is further down the same API.
func (c *Client) Below(path string) *Client {
	below := *c
	base := *c.base
	base.Path += path
	below.base = &base
	return &below
}
