package page

import (
	"encoding/json"
	"sync"

	"github.com/anteroom/anteroom"
)

// LivePath is the folder, on every host, of the script by which an operator's page is kept up to date: one file for each of
// [anteroom.Languages], like en-US.js.
const LivePath = "/.well-known/anteroom/live/"

// lives holds that script by the name of its file, plain and compressed. It is that of the built-in page, behind what prepares an
// operator's page for it.
var lives = sync.OnceValue(func() map[string][2][]byte {
	out := map[string][2][]byte{}
	for _, language := range anteroom.Languages {
		w := wordsOf(language)
		told := spoken(w, language, inLine)
		told["ahead"], told["wait"] = w.Ahead, w.Wait
		words, err := json.Marshal(told)
		if err != nil {
			panic(err) // strings only
		}
		// A block keeps the words from the operator's scripts.
		script := []byte("{\nconst words=" + string(words) + "\n" + bare("asset/live.js") + "}\n" + bare("asset/event.js") + ";" + bare("asset/page.js"))
		out[language+".js"] = [2][]byte{script, appendZipped(nil, script)}
	}
	return out
})

// AppendLive appends a file of [LivePath], gzip-compressed when gzip is set; false for a name that is none.
func AppendLive(dst []byte, name string, gzip bool) (script []byte, ok bool) {
	both, ok := lives()[name]
	if gzip {
		return append(dst, both[1]...), ok
	}
	return append(dst, both[0]...), ok
}
