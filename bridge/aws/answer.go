package aws

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// member is one of a JSON object. The original writes its members in an order of its own, with a blank after each
// separator.
type member struct {
	name  string
	value any
}

// object writes members as Python's json.dumps does.
func object(members ...member) []byte {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = append(strconv.AppendQuote(out, m.name), ": "...)
		v, err := json.Marshal(m.value)
		if err != nil {
			panic(err) // only for a value that is no JSON, and all are ours
		}
		out = append(out, v...)
	}
	return append(out, '}')
}

// answer is what a function of the original returns.
type answer struct {
	status int
	body   []byte
	cache  string // Cache-Control; empty: no-store
}

func good(members ...member) answer { return answer{status: http.StatusOK, body: object(members...)} }

// failure is what a function says of a request that it refuses or cannot answer yet.
func failure(status int, text string) answer {
	return answer{status: status, body: object(member{"error", text})}
}

// refusal is what the gateway before the functions says.
func refusal(status int, text string) answer {
	return answer{status: status, body: []byte(`{"message": ` + strconv.Quote(text) + `}`)}
}

// Answers of the original.
var (
	noRoute        = answer{status: http.StatusForbidden, body: []byte(`{"message":"Missing Authentication Token"}`)}
	tooMany        = answer{status: http.StatusTooManyRequests, body: []byte(`{"message":"Too Many Requests"}`)}
	badBody        = refusal(http.StatusBadRequest, "Invalid request body")
	broken         = refusal(http.StatusBadGateway, "Internal server error")
	notServed      = failure(http.StatusAccepted, "Request ID not being served yet")
	badEvent       = failure(http.StatusBadRequest, "Invalid event ID")
	badEventOrID   = failure(http.StatusBadRequest, "Invalid event or request ID")
	unknownID      = failure(http.StatusBadRequest, "Invalid request ID")
	invalidToken   = refusal(http.StatusForbidden, "The security token included in the request is invalid.")
	expiredPlace   = failure(http.StatusGone, "Queue position has expired")
	expiredSession = failure(http.StatusGone, "Token corresponding to request id has expired")
	badRequest     = answer{status: http.StatusBadRequest, body: []byte("Bad Request")} // of the OpenID adapter, as text
)

// send writes an answer. Pages of every website may read it, as in the original.
func (a answer) send(w http.ResponseWriter, kind string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if a.cache != "" {
		h.Set("Cache-Control", a.cache)
	}
	w.WriteHeader(a.status)
	w.Write(a.body)
}

// sendPreflight answers OPTIONS as the original's mock does.
func sendPreflight(w http.ResponseWriter, method string) {
	h := w.Header()
	h.Set("Access-Control-Allow-Headers", "Content-Type,X-Amz-Date,Authorization,X-Api-Key,X-Amz-Security-Token")
	h.Set("Access-Control-Allow-Methods", method+",OPTIONS")
	answer{status: http.StatusOK, body: []byte("{}")}.send(w, jsonType)
}

const (
	jsonType = "application/json"
	textType = "text/plain; charset=utf-8"
)
