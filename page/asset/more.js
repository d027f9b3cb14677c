// What few visitors of the waiting page need, loaded when they do. page.js calls it with the folder of its files, the way in, a store
// for the tab, and the address of a question. The session has not begun when a turn is offered here: the place is kept, and no seat.
window.anteroomMore = async (folder, enter, store, ask) => {
const doc = document, $ = id => doc.getElementById(id)
const words = await (await fetch(folder + JSON.parse($('words').textContent).lang + '.json')).json()
let audio, worker, lock, armed
const isOn = key => store('anteroom-' + key) == 1
// A checkbox below the button; start is tried at once where the tab has had it switched on before.
const option = (key, label, start) => {
const box = doc.createElement('input'), e = doc.createElement('label'), p = doc.createElement('p')
box.type = 'checkbox'
box.id = key
e.append(box, ' ' + label)
p.className = 'quiet'
p.append(e)
$('tell').after(p)
box.checked = isOn(key)
box.onchange = () => { store('anteroom-' + key, box.checked ? 1 : 2); start(box.checked) }
if (box.checked) start(true)
}
const beep = () => {
for (const [at, tone] of [[0, 660], [.25, 880], [.5, 990]]) {
const o = audio.createOscillator(), g = audio.createGain()
o.frequency.value = tone
g.gain.setValueAtTime(.2, audio.currentTime + at)
g.gain.exponentialRampToValueAtTime(.001, audio.currentTime + at + .24)
o.connect(g).connect(audio.destination)
o.start(audio.currentTime + at)
o.stop(audio.currentTime + at + .25)
}
}
// Browsers begin sound only after a click, and take the lock back from a page that is not seen.
const hear = on => {
audio = on && new AudioContext()
if (on) beep()
}
const stay = async on => {
try {
if (lock) await lock.release()
lock = on && !doc.hidden && await navigator.wakeLock.request('screen')
} catch (e) {}
}
doc.addEventListener('visibilitychange', () => { if (isOn('awake') && !doc.hidden) stay(true) })
// Tells Anteroom where this browser's push service can be reached, so that a notification comes with the page closed, too.
const post = fields => fetch(ask('push'), {method: 'POST', body: new URLSearchParams(fields)}).then(r => { if (!r.ok) throw r })
const active = async () => {
const w = worker.installing || worker.waiting
if (w && !worker.active) await new Promise(ok => { w.onstatechange = () => { if (w.state == 'activated') ok() } })
return worker.pushManager
}
const push = async on => {
const tell = $('tell'), why = $('no-push')
why.textContent = ''
try {
if (on) {
const manager = await active(), {key} = await (await fetch(ask('push'), {cache: 'no-store'})).json()
const options = {userVisibleOnly: true, applicationServerKey: key}
// A subscription of before, for another key, is in the way.
const made = await manager.subscribe(options).catch(async e => {
const old = await manager.getSubscription()
if (!old) throw e
await old.unsubscribe()
return manager.subscribe(options)
})
const {endpoint, keys} = made.toJSON()
await post({endpoint, p256dh: keys.p256dh, auth: keys.auth})
} else await post({off: 1})
tell.textContent = on ? words.pushed : words.told
// The place is kept for as long as it takes.
if ($('kept')) $('kept').style.display = on ? 'none' : ''
} catch (e) {
tell.textContent = words.told
if (!on) return
$('push').checked = false
why.textContent = words.no_push
}
}
const arm = async () => {
if (armed) return
armed = 1
$('tell').textContent = words.told
$('tell').disabled = true
store('anteroom-tell', 1)
if (navigator.wakeLock) option('awake', words.awake, stay)
if (window.AudioContext) option('sound', words.sound, hear)
// A phone shows notifications of a worker only. Its scope is a folder that has no pages.
try { worker = await navigator.serviceWorker.register(folder + '../worker.js') } catch (e) {}
if (!JSON.parse($('status').textContent).push || !worker || !worker.pushManager || Notification.permission != 'granted') return
const why = doc.createElement('p')
why.id = 'no-push'
why.className = 'quiet'
why.setAttribute('role', 'alert')
$('tell').after(why)
// On from the beginning, unless the tab has had it switched off before.
if (!store('anteroom-push')) store('anteroom-push', 1)
option('push', words.push, push)
}
// Tells about the turn in every way that the visitor has chosen, and by the tab itself.
const turn = () => {
const icon = doc.querySelector('link[rel~=icon]')
if (icon) icon.href = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16' rx='4' fill='%23187a3c'/%3E%3Cpath d='M3 8l4 4 6-8' fill='none' stroke='%23fff' stroke-width='2.5'/%3E%3C/svg%3E"
if (!armed) return
if (audio) beep()
if (navigator.vibrate) navigator.vibrate(500)
const options = {tag: 'anteroom', data: location.href, requireInteraction: true}
try {
if (worker) worker.showNotification(words.turn, options).catch(() => {})
else new Notification(words.turn, options)
} catch (e) {}
}
// Counts down until the visitor looks, or the time is over: the way in.
const offer = seconds => {
const end = Date.now() + seconds * 1e3
let timer
const done = () => {
clearInterval(timer)
doc.removeEventListener('visibilitychange', look)
enter()
}
const look = () => doc.hidden || done()
const tick = () => {
const left = Math.ceil((end - Date.now()) / 1e3)
if (left <= 0) return done()
const text = words.turn + ' (' + (left / 60 | 0) + ':' + (left % 60 + '').padStart(2, 0) + ')'
doc.title = '✓ ' + text
$('turn').textContent = text
}
doc.addEventListener('visibilitychange', look)
timer = setInterval(tick, 1e3)
turn()
tick()
look()
}
// The way in has led to a download, to nothing that a browser shows, or to an answer that takes long: the visitor may try again.
// A form is not sent twice. A page that comes back from the browser's cache may wait again.
const stays = here => {
if (window.onward || doc.title[0] != '✓') return
const a = doc.createElement('a')
a.href = here()
a.textContent = words.go
// A link to an address with a fragment, on the page at that address, loads nothing.
a.onclick = () => { if (a.hash && a.href == location.href) location.reload() }
$('turn').append(doc.createElement('br'), a)
}
return {words, arm, turn, offer, stays}
}
