package crawler

import "strings"

// engine is a search engine, as it publishes how its crawlers are told.
type engine struct {
	agents  []string // lower case; one of them stands in the User-Agent
	domains []string // reverse names of its crawlers lie below one of them
}

// engines are the search engines whose crawlers have reverse names. DuckDuckGo, which
// publishes addresses only, is not among them: a rule by address can let DuckDuckBot pass.
//
// The domains are those of the crawlers and no wider. Below google.com, for one, are proxies
// that anybody can send a request through, with any User-Agent.
var engines = []engine{
	{[]string{"googlebot", "google-inspectiontool", "storebot-google"}, []string{"googlebot.com"}},
	{[]string{"bingbot", "bingpreview"}, []string{"search.msn.com"}},
	{[]string{"applebot"}, []string{"applebot.apple.com"}},
	{[]string{"yandexbot", "yandexmobilebot", "yandeximages", "yandexrenderresourcesbot"}, []string{"yandex.ru", "yandex.net", "yandex.com"}},
	{[]string{"baiduspider"}, []string{"crawl.baidu.com", "crawl.baidu.jp"}},
	{[]string{"yahoo! slurp"}, []string{"crawl.yahoo.net"}},
	{[]string{"seznambot"}, []string{"seznam.cz"}},
	{[]string{"petalbot"}, []string{"petalsearch.com", "aspiegel.com"}},
	{[]string{"yeti/"}, []string{"naver.com"}},
	{[]string{"sogou web spider", "sogou inst spider"}, []string{"crawl.sogou.com"}},
	{[]string{"qwantbot"}, []string{"qwant.com"}},
	{[]string{"mojeekbot"}, []string{"mojeek.com"}},
	{[]string{"coccocbot"}, []string{"coccoc.com"}},
}

// maxAgent is how much of a User-Agent is read. Those of crawlers are shorter.
const maxAgent = 512

// agent is one way in which an engine names itself.
type agent struct {
	text   string
	engine *engine
}

// agents are all ways in which an engine names itself, and begins says with which pairs of
// letters: nearly no place in a browser's User-Agent begins like one.
var agents, begins = func() (all []agent, begins [1 << 10]bool) {
	for i := range engines {
		for _, text := range engines[i].agents {
			all = append(all, agent{text, &engines[i]})
			begins[pair(text[0], text[1])] = true
		}
	}
	return all, begins
}()

// pair is the same for upper and lower case, and for some other characters.
func pair(a, b byte) int { return int(a&31)<<5 | int(b&31) }

// claimed returns the engine that a User-Agent names, or nil. Upper and lower case do not
// count, as in robots.txt (RFC 9309 section 2.2.1).
func claimed(userAgent string) *engine {
	if len(userAgent) > maxAgent {
		userAgent = userAgent[:maxAgent]
	}
	for i := range len(userAgent) - 1 {
		if !begins[pair(userAgent[i], userAgent[i+1])] {
			continue
		}
		for _, a := range agents {
			if len(userAgent)-i >= len(a.text) && strings.EqualFold(userAgent[i:i+len(a.text)], a.text) {
				return a.engine
			}
		}
	}
	return nil
}

// owns returns a reverse name as it is looked up, with the dot at its end, if it lies below a
// domain of the engine. Without the dot a search list of the system could change the name.
func (e *engine) owns(name string) (string, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	for _, d := range e.domains {
		if host, ok := strings.CutSuffix(name, "."+d); ok && host != "" {
			return name + ".", true
		}
	}
	return "", false
}
