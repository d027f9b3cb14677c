package page

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/anteroom/anteroom"
)

// MorePath is the folder, on every host, of what the built-in page loads when a visitor needs it: notifications, sound, the offer of a
// turn to a tab in the background, and words that are shown seldom. The names of its files change with their content, except
// [WorkerName].
const MorePath = "/.well-known/anteroom/page/"

// BackQuery begins the query pair by which a notification leads back: a dot and a token follow.
const BackQuery = "__anteroom=back"

// WorkerName is the file of [MorePath] by which a phone shows notifications.
const WorkerName = "worker.js"

// extras are the files of [MorePath] by name, plain and compressed.
type extras struct {
	files map[string][2][]byte
	// print is the SHA-256 of the script, as base64 without its "=" and with letters and digits only: by this the page says what the
	// script is, and where all files but the worker are.
	print string
}

var more = sync.OnceValue(func() *extras {
	x := &extras{files: map[string][2][]byte{}}
	named := map[string][]byte{}
	sum := sha256.New()
	for _, language := range anteroom.Languages {
		w := wordsOf(language)
		raw, err := json.Marshal(map[string]any{
			"turn": w.Turn, "go": w.Arriving[0], "told": w.Told, "sound": w.Sound, "awake": w.Awake, "push": w.Push, "pushed": w.Pushed, "no_push": w.NoPush, "slower": w.Slower,
			"notes": map[string]string{
				anteroom.ReasonPlaceLost.String():   w.Lost,
				anteroom.ReasonSessionOver.String(): w.over(),
				anteroom.ReasonUsed.String():        w.Used,
				anteroom.ReasonBound.String():       w.Bound,
				anteroom.ReasonNotJoining.String():  w.Cookies,
			},
		})
		if err != nil {
			panic(err) // strings only
		}
		named[tagOf(language)+".json"] = raw
		sum.Write(raw)
	}
	// The words are part of the print, and a number that makes it letters and digits: every fourth try does.
	script := bare("asset/more.js") + "//" + hex.EncodeToString(sum.Sum(nil)[:8])
	for n := 0; x.print == ""; n++ {
		tried := script + " " + strconv.Itoa(n)
		if print := strings.TrimSuffix(hash(tried), "="); !strings.ContainsAny(print, "+/") {
			x.print, named["more.js"] = print, []byte(tried)
		}
	}
	for name, content := range named {
		x.files[x.print+"/"+name] = [2][]byte{content, appendZipped(nil, content)}
	}
	worker := []byte(bare("asset/" + WorkerName))
	x.files[WorkerName] = [2][]byte{worker, appendZipped(nil, worker)}
	return x
})

// Notification returns title and text of a notification by web push, in one of [anteroom.Languages], and their language's tag. The text
// holds "{}" where the time stands until which the turn is kept.
func Notification(language string) (title, text, tag string) {
	language = known(language)
	w := wordsOf(language)
	return w.Turn, w.Claim, tagOf(language)
}

// AppendMore appends a file of [MorePath], gzip-compressed when gzip is set; false for a name that is none. lasting says that the
// name stands for this content for ever.
func AppendMore(dst []byte, name string, gzip bool) (content []byte, lasting, ok bool) {
	both, ok := more().files[name]
	if gzip {
		return append(dst, both[1]...), strings.Contains(name, "/"), ok
	}
	return append(dst, both[0]...), strings.Contains(name, "/"), ok
}
