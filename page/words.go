package page

import (
	"html"
	"strconv"
	"strings"
	"time"
)

// saying is a heading and the paragraph below it.
type saying [2]string

// words are all that the built-in page says in one language: one file of lang/. They are
// worded so that no sentence depends on a number's plural form: numbers stand beside labels
// and in units' short forms. "{}" stands for a value.
type words struct {
	Name string `json:"name"` // of the language, in itself

	Line     saying `json:"line"`
	Draw     saying `json:"draw"`
	Held     saying `json:"held"`
	Long     saying `json:"long"`
	Full     saying `json:"full"`
	Closed   saying `json:"closed"`
	Rejected saying `json:"rejected"`

	Prequeue saying `json:"prequeue"`
	Shuffle  saying `json:"shuffle"`
	Drained  saying `json:"drained"`
	Sold     saying `json:"sold"`
	Origin   saying `json:"origin"`
	Lottery  saying `json:"lottery"`

	Ahead     string `json:"ahead"`     // label of the number of people ahead
	Wait      string `json:"wait"`      // label of the forecast
	Chance    string `json:"chance"`    // label of the chance in a lottery
	Choice    string `json:"selection"` // label of the moment at which it applies
	Unknown   string `json:"unknown"`   // there is no forecast
	Day       string `json:"day"`       // the forecast exceeds a day
	Available string `json:"available"` // label of how many are left
	Unlikely  string `json:"unlikely"`  // more people are ahead than are left

	Less  string `json:"less"`  // less than {}
	More  string `json:"more"`  // at least {}
	Min   string `json:"min"`   // {} minutes, short
	Hour  string `json:"hour"`  // {} hours, short
	Range string `json:"range"` // what stands between two bounds

	Start  string `json:"start"`  // label of the time until an event starts
	Begins string `json:"begins"` // the moment at which it does: {}
	Soon   string `json:"soon"`   // in the place of that time when it is over
	Ends   string `json:"ends"`   // the moment at which an event ends: {}

	Kept    string `json:"kept"` // until {}
	Auto    string `json:"auto"`
	Ref     string `json:"ref"`
	Updated string `json:"updated"`
	Cookies string `json:"cookies"`
	NoTry   string `json:"lottery_cookies"` // in its place in a lottery
	Pause   string `json:"pause"`
	Paused  string `json:"paused"`

	Leave   string `json:"leave"`   // what a visitor can do, and the button of the page that asks whether to
	Leaving saying `json:"leaving"` // that page
	Stay    string `json:"stay"`    // its other link
	Left    saying `json:"left"`    // the page that says that it is done
	Rejoin  string `json:"rejoin"`  // its link

	MovingLink string `json:"moving_link"` // its lead where the link is too long for a code
	Moving     saying `json:"moving"`      // what a visitor can do, and the page that shows a link for another device
	Arriving   saying `json:"arriving"`    // the page to which the link leads, and its button
	Replacing  string `json:"replacing"`   // on it: there is another place on this device
	Moved      saying `json:"moved"`       // the page of the device that was left
	Stale      saying `json:"stale"`       // a link that does not work

	Invitation saying `json:"invitation"` // the page that asks for an invite code
	Code       string `json:"code"`       // its field
	Enter      string `json:"enter"`      // its button
	Refused    string `json:"refused"`    // the code is none, or spent
	TryLater   string `json:"try_later"`  // nobody could say

	SignIn saying `json:"sign_in"` // the page that asks to sign in; its button has the first line

	Lost    string `json:"lost"`
	Over    saying `json:"over"` // the session; and there is a new place
	Used    string `json:"used"`
	Bound   string `json:"bound"`
	Slower  string `json:"slower"`
	Offline string `json:"offline"`

	Unsent string `json:"unsent"` // of a form
	Resend string `json:"resend"` // likewise, where the page will send it

	Turn string `json:"turn"`
	Tell string `json:"tell"`
	Told string `json:"told"`

	Sound string `json:"sound"` // a switch, beside Told
	Awake string `json:"awake"` // likewise

	Push   string `json:"push"`    // likewise
	Pushed string `json:"pushed"`  // in the place of Told, while it is on
	NoPush string `json:"no_push"` // it cannot be switched on
	Claim  string `json:"claim"`   // in the notification, below Turn: until {}

	Check string `json:"check"` // where a shuffle can be recomputed

	Group  string `json:"group"`  // between groups of digits
	Digits string `json:"digits"` // the ten digits; empty means 0 to 9
	// GroupFrom is the number of digits from which they are grouped; 0 means 4.
	GroupFrom int `json:"group_from"`
	// Lakh groups by two above the thousands.
	Lakh bool `json:"lakh"`
}

// over is both sentences of Over. Chinese and Japanese have no space between two.
func (w *words) over() string {
	if strings.HasSuffix(w.Over[0], "。") {
		return w.Over[0] + w.Over[1]
	}
	return w.Over[0] + " " + w.Over[1]
}

func (w *words) sayings() [numStates]saying {
	return [numStates]saying{w.Line, w.Draw, w.Held, w.Long, w.Full, w.Closed, w.Prequeue, w.Shuffle, w.Drained, w.Origin, w.Sold, w.Lottery, w.Rejected}
}

// around is a sentence cut at its value, escaped for HTML.
type around struct{ before, after string }

func cut(s string) around {
	before, after, _ := strings.Cut(html.EscapeString(s), "{}")
	return around{before, after}
}

// numerals writes numbers as the language does.
type numerals struct {
	group  string
	digits [10]string
	from   int
	lakh   bool
}

func (w *words) numerals() numerals {
	n := numerals{group: w.Group, from: max(w.GroupFrom, 4), lakh: w.Lakh}
	for i := range n.digits {
		n.digits[i] = strconv.Itoa(i)
	}
	if w.Digits != "" {
		i := 0
		for _, r := range w.Digits {
			n.digits[i%10] = string(r)
			i++
		}
	}
	return n
}

// append writes n, which is not negative, with its groups.
func (n *numerals) append(dst []byte, v int64) []byte {
	var buf [20]byte
	plain := strconv.AppendInt(buf[:0], max(v, 0), 10)
	for i, c := range plain {
		left := len(plain) - i
		if i > 0 && len(plain) >= n.from && (left == 3 || left > 3 && (n.lakh && left%2 == 1 || !n.lakh && left%3 == 0)) {
			dst = append(dst, n.group...)
		}
		dst = append(dst, n.digits[c-'0']...)
	}
	return dst
}

// appendPair writes 00 to 99.
func (n *numerals) appendPair(dst []byte, v int) []byte {
	dst = append(dst, n.digits[v/10%10]...)
	return append(dst, n.digits[v%10]...)
}

// appendHours writes minutes as hours and minutes, "1:15".
func (n *numerals) appendHours(dst []byte, minutes int64) []byte {
	dst = n.append(dst, minutes/60)
	dst = append(dst, ':')
	return n.appendPair(dst, int(minutes%60))
}

// appendClock writes "14:32 UTC". The page's script puts the visitor's own time there.
func (n *numerals) appendClock(dst []byte, t time.Time) []byte {
	dst = n.appendPair(dst, t.Hour())
	dst = append(dst, ':')
	dst = n.appendPair(dst, t.Minute())
	return append(dst, " UTC"...)
}

// appendMoment writes a clock time, with the date when the moment is far from another.
func (n *numerals) appendMoment(dst []byte, t, from time.Time) []byte {
	if far := t.Sub(from); far > sameDay || far < -sameDay {
		dst = n.appendPair(dst, t.Year()/100)
		dst = n.appendPair(dst, t.Year())
		dst = append(dst, '-')
		dst = n.appendPair(dst, int(t.Month()))
		dst = append(dst, '-')
		dst = n.appendPair(dst, t.Day())
		dst = append(dst, ' ')
	}
	return n.appendClock(dst, t)
}

// sameDay is how near a moment is that a clock time names without doubt.
const sameDay = 12 * time.Hour
