// The waiting page's script. Without it, and where it does not run, the Refresh header does
// its work. Comments stand on lines of their own and are not sent.
(() => {
const doc = document, $ = id => doc.getElementById(id), lang = doc.documentElement.lang
const words = JSON.parse($('words').textContent)
let now = JSON.parse($('status').textContent)
const note = $('note'), tell = $('tell'), title = doc.title.replace(/^\(.*?\)\s/, '')
let told = note.textContent, timer, source, busy, gone, checked = Date.now(), fails = 0, said, saidAt, saidAhead, rests, notify, mute, pulse

// Words and numbers, as facts.go says them.
const put = (text, value) => text.replace('{}', value)
const num = n => n.toLocaleString(lang)
const hours = m => num(m / 60 | 0) + ':' + num(m % 60 / 10 | 0) + num(m % 10)
const many = (say, ...m) => m.map(say).join(words.range)
const span = (...m) => m[m.length - 1] < 60 ? put(words.min, many(num, ...m)) : put(words.hour, m.some(x => x % 60) ? many(hours, ...m) : many(x => num(x / 60), ...m))
const wait = s => {
const a = s.lo / 60, b = s.hi / 60
return s.next ? clock(s.next) + s.chance : s.state == 'long' || b > 1440 ? words.day : !b ? a ? put(words.more, span(a)) : words.unknown : !a ? put(words.less, span(b)) : a == b ? span(b) : span(a, b)
}
const clock = (ms, second) => new Date(ms).toLocaleTimeString(lang, {hour: 'numeric', minute: '2-digit', second}).replace(/\s/g, '\xa0')
const text = (id, value) => { const e = $(id); if (e && e.textContent != value) e.textContent = value }
const kept = () => now.kept ? put(words.kept, clock(now.kept)) : ''
const warn = value => { text('note', value); note.hidden = !value }
const store = (key, value) => { try { return value ? sessionStorage[key] = value : sessionStorage[key] } catch (e) {} }

// What few visitors need is a file of its own.
const rest = (use, otherwise = () => {}) => (rests = rests || new Promise((ok, fail) => {
const folder = '/.well-known/anteroom/page/' + words.rest + '/', e = doc.createElement('script')
e.src = folder + 'more.js'
e.integrity = 'sha256-' + words.rest + '='
e.onerror = fail
e.onload = () => ok(anteroomMore(folder, enter, store, ask))
doc.head.append(e)
})).then(use, otherwise)
const remark = reason => rest(m => warn(told = m.words.notes[reason] || m.words.slower))

const show = s => {
if (s.reason != now.reason && /lost|over|used|bound/.test(s.reason) || now.hi && s.lo > now.hi) remark(s.reason)
now = s
warn(told)
text('message', s.message)
text('waitTime', wait(s))
if (s.ahead != null && $('ahead')) {
text('ahead', num(s.ahead))
$('ahead').parentNode.hidden = 0
// The bar runs from the first place that this tab has seen.
const key = 'anteroom-' + s.ref, first = Math.max(+store(key) || 0, s.ahead)
store(key, first)
if (s.ref && first > s.ahead) { $('bar').hidden = 0; $('bar').value = 1 - s.ahead / first }
}
if (s.left) text('available', num(s.left))
if ($('unlikely')) $('unlikely').hidden = !(s.ahead > s.left)
text('kept', kept())
if ($('kept')) $('kept').hidden = !s.kept
text('ref', s.ref)
$('ref').parentNode.hidden = !s.ref
text('last-updated', clock(s.at, '2-digit'))
doc.title = (s.hi && s.hi <= 86400 ? '(' + span(s.hi / 60) + ') ' : '') + title
// A page on which nothing changes has neither.
if (!tell) return
// Read aloud: nothing at first, then changes, at most one a minute unless it moves fast.
const line = window.during && during(s, span, title, here) || (s.ahead == null ? '' : $('ahead-label').textContent + ': ' + num(s.ahead) + '. ') + $('wait-label').textContent + ': ' + wait(s), t = Date.now()
if (!saidAt || line != said && (t - saidAt > 6e4 || t - saidAt > 1e4 && Math.abs(s.ahead - saidAhead) * 10 >= saidAhead)) {
if (saidAt) text('say', line)
said = line
saidAt = t
saidAhead = s.ahead
}
}

// The URL at which the visitor waits, without our own query pairs. A question says which
// place is on the screen, if one is kept: it never gets worse.
const here = () => location.href.replace(/([?&])__anteroom=[^&#]*(&|(?=#|$))/g, (m, a, b) => b ? a : '')
const ask = what => { const u = here().split('#')[0]; return u + (u.includes('?') ? '&' : '?') + '__anteroom=' + what + (now.kept > Date.now() ? '.' + (now.ahead == null ? '' : now.ahead) : '') }
// Loads the page again, by GET and in place; a URL with a fragment has to be reloaded.
const again = () => {
if (gone) return
gone = 1
const u = here()
if (window.onward) onward(u)
else if (u == location.href && u.includes('#')) location.reload()
else location.replace(u)
}
const enter = () => {
gone = 0
doc.title = '✓ ' + words.turn
text('turn', words.turn)
if (notify) notify.turn()
again()
// Where the address shows nothing, as a download, this page stays.
setTimeout(() => rest(m => m.stays(here)), 1e4)
}
// A page in the background is offered the turn: nobody would see the session begin.
const go = s => {
if (gone) return
if (!doc.hidden || !s || !s.offer) return enter()
gone = 1
rest(m => m.offer(s.offer), enter)
}
const take = s => {
if (s.admitted) return go(s)
// In another tab.
if (s.reason == 'left') return gone || location.replace(ask('left') + location.hash, gone = 1)
// The cookie did not come along. It may have been deleted: once, the page begins anew.
if (s.reason == 'not_joining') return store('anteroom-new') || !store('anteroom-new', 1) ? remark(s.reason) : again()
if (s.state + !s.left + s.lane != now.state + !now.left + now.lane && !window.onward) return again()
fails = 0
show(s)
}

// The next check, in seconds. Hidden tabs, and those with a stream, ask less often, yet in time to keep the place: only answers renew
// the cookie.
const later = (s, slack) => {
clearTimeout(timer)
if (gone || !s) return
if (doc.hidden || source && !fails) s = Math.max(s, (Math.min(12e4, now.kept - now.at) / 2 + checked - Date.now()) / 1e3)
timer = setTimeout(check, (s + slack + Math.random() * .5) * 1e3)
}
const check = async () => {
if (busy || gone) return
busy = 1
checked = Date.now()
const abort = new AbortController()
setTimeout(() => abort.abort(), 2e4)
let after = 0
try {
const r = await fetch(ask('status'), {cache: 'no-store', redirect: 'manual', signal: abort.signal})
after = +r.headers.get('Retry-After') || 0
if (!/json/.test(r.headers.get('Content-Type'))) {
// Not our answer: the origin's, when the room is gone, or a fault on the way.
if (r.status >= 400) throw r
go()
} else {
const s = await r.json()
if (!s.state && !s.admitted) throw r
share(s)
later(Math.max(s.refresh, s.refresh && after), 0)
listen()
}
} catch (e) {
fails++
warn(words.offline + ' ' + kept())
later(Math.max(after, Math.min(120, 2 ** fails) * (.5 + Math.random())), 0)
}
busy = 0
}

// One tab asks, the others of the same ticket listen and wait a little longer than it.
const channel = now.ref && window.BroadcastChannel && new BroadcastChannel('anteroom-' + now.ref)
if (channel) channel.onmessage = e => { take(e.data); later(e.data.refresh * 1.3, 2) }
const share = s => { take(s); if (channel) channel.postMessage(s) }

// The stream, near the front, held by one tab. Where none is to be had (204), not again soon.
const listen = () => {
if (source || gone || !now.stream || !window.EventSource || Date.now() < mute) return
const open = () => new Promise(done => {
let heard
source = new EventSource(ask('stream'))
// Two silences of what the server sends every 15 seconds: the stream is dead, which the browser may not know for long.
const beat = () => { clearTimeout(pulse); pulse = setTimeout(source.onerror, 3e4) }
const hear = e => {
heard = 1
beat()
share(JSON.parse(e.data))
later(1, 0)
}
source.addEventListener('beat', beat)
source.addEventListener('place', hear)
source.addEventListener('go', hear)
source.onerror = () => {
clearTimeout(pulse)
source.close()
source = 0
if (!heard) mute = Date.now() + 6e4
done()
later(heard ? 1 : now.refresh, Math.random() * 4)
}
beat()
})
if (channel && navigator.locks) navigator.locks.request('anteroom-' + now.ref, {ifAvailable: true}, lock => lock && open()).catch(open)
else open()
}

show(now)
// Links to other questions keep the fragment, which no server sees.
for (const a of doc.querySelectorAll('[href*=__anteroom]')) a.hash = location.hash
if (!now.refresh || !window.AbortController) return
const arm = () => rest(m => (notify = m).arm())
tell.hidden = 0
// Whatever comes of it, and where there are none: the tab tells.
tell.onclick = async () => { try { await Notification.requestPermission() } catch (e) {} arm() }
// Back from sleep, another tab, another page, or without network: look at once.
const wake = () => { if (now.refresh && !doc.hidden && Date.now() - checked > (fails ? 500 : 3e3)) check() }
doc.addEventListener('visibilitychange', wake)
doc.addEventListener('resume', wake)
addEventListener('online', wake)
addEventListener('pageshow', e => { if (e.persisted) { gone = checked = 0; wake() } })

// Cancels the pending Refresh: from here on the script asks. It would cancel a stream and what is loaded, too.
addEventListener('load', () => {
stop()
if (!navigator.cookieEnabled) remark('not_joining')
if (store('anteroom-tell')) arm()
later(now.refresh, 0)
listen()
})
})()
