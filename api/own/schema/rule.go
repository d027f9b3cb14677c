package schema

import (
	"time"

	"github.com/anteroom/anteroom"
)

// RuleTest is an expression and a request to try it on.
type RuleTest struct {
	Expression string          `json:"expression" min:"1"`
	Action     string          `json:"action" optional:"true" enum:"bypass_waiting_room"`
	Room       anteroom.RoomID `json:"room" optional:"true" doc:"The room whose routes decide wide; the host of the request by default."`
	Request    TestRequest     `json:"request" optional:"true"`
}

// TestRequest describes a request.
type TestRequest struct {
	_         struct{}            `doc:"Members that you leave out are as in an ordinary visit to the start page."`
	Method    string              `json:"method" optional:"true" doc:"GET by default."`
	Version   string              `json:"version" optional:"true" doc:"Version of the protocol; HTTP/2.0 by default."`
	URL       string              `json:"url" optional:"true" doc:"A whole URL, like https://shop.example.com/cart?x=1."`
	Headers   map[string][]string `json:"headers" optional:"true" single:"true" max:"100" doc:"By name: a text or a list of texts."`
	IP        string              `json:"ip" optional:"true" doc:"192.0.2.1 by default."`
	Country   string              `json:"country" optional:"true" doc:"ISO 3166-1 code; overrides the location of the address."`
	Continent string              `json:"continent" optional:"true"`
	ASN       int                 `json:"asn" optional:"true" max:"4294967295"`
	Time      *time.Time          `json:"time" optional:"true" doc:"Now by default."`
	Bot       bool                `json:"bot" optional:"true" doc:"Whether the request comes from a verified crawler."`
}

// RuleResult is what an expression does with a request.
type RuleResult struct {
	Valid     bool           `json:"valid"`
	Matches   *bool          `json:"matches" doc:"null when the expression is invalid."`
	Exhausted bool           `json:"exhausted" doc:"The expression needs more steps than allowed and therefore does not match."`
	Wide      bool           `json:"wide" doc:"Anyone with an ordinary browser could bypass the room too, on any path."`
	Error     *RuleError     `json:"error"`
	Readings  []Reading      `json:"readings" doc:"The ways in which origins may read the path; the expression has to match all of them."`
	Fields    map[string]any `json:"fields" doc:"The values of the language's fields for the request, by name: texts, whole numbers, true or false."`
}

// RuleError is what is wrong with an expression.
type RuleError struct {
	Message  string `json:"message"`
	Fix      string `json:"fix"`
	Position *int   `json:"position" min:"1" doc:"Position in characters, from 1."`
}

// Reading is a way in which an origin may read the path of a request.
type Reading struct {
	Path    string `json:"path"`
	Matches bool   `json:"matches"`
}

// PageSpec is a custom page to be checked.
type PageSpec struct {
	HTML     string `json:"html" doc:"Empty means the built-in page."`
	Language string `json:"language" optional:"true" doc:"Language of the built-in page and of the previews; en-US by default."`
}

// PageResult is what is wrong with a custom page, and where to look at it.
type PageResult struct {
	Valid         bool               `json:"valid"`
	Faults        []PageFault        `json:"faults"`
	Bytes         int                `json:"bytes"`
	BytesMax      int                `json:"bytes_max" min:"1"`
	BytesGzip     *int               `json:"bytes_gzip" min:"1" doc:"Compressed size of what a waiting visitor receives; null for an invalid page."`
	Accessibility []Barrier          `json:"accessibility" doc:"Barriers for people who use a screen reader, a keyboard or magnification. They do not make a page invalid."`
	States        []string           `json:"states"`
	Languages     []string           `json:"languages"`
	Preview       *map[string]string `json:"preview" doc:"By state, the path of a preview on this listener, valid for an hour; null for an invalid page and for a token without the edit permission."`
}

// PageFault is an error in a custom page.
type PageFault struct {
	Message string `json:"message"`
	Fix     string `json:"fix"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
}

// Barrier is a part of a custom page that keeps some people from using it.
type Barrier struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	Line    int    `json:"line" min:"1"`
}

// Verified is the answer to a check of the audit log.
type Verified struct {
	Records int    `json:"records"`
	Head    string `json:"head" doc:"Hash of the newest record. Keep a copy elsewhere to detect a log that was rewritten."`
}
