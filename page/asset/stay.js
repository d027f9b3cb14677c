// Pages beside the waiting page stay in line by a stream as well: it says when the turn has come, and ends when the place is no longer here.
// Where no stream is to be had, a page that says how to come back does so.
{
const {here, again, stream, status, refresh, pause, ends} = document.currentScript.dataset, enter = () => location.replace(here + location.hash)
// A URL with a fragment has to be reloaded.
const renew = () => !again ? listen() : location.search == again ? location.reload() : location.replace(again + location.hash)
const listen = () => {
const source = new EventSource(stream)
let heard, pulse
// As in page.js, a stream that is silent is dead.
const beat = () => { clearTimeout(pulse); pulse = setTimeout(source.onerror, 3e4) }
source.addEventListener('beat', beat)
source.addEventListener('place', () => beat(heard = 1))
// A page in the background takes a turn that it is offered when the visitor looks, or the time for that is over.
source.addEventListener('go', e => {
const {offer} = JSON.parse(e.data)
clearTimeout(pulse)
source.close()
if (!document.hidden || !offer) return enter()
document.addEventListener('visibilitychange', enter)
setTimeout(enter, offer * 1e3)
})
source.onerror = () => {
clearTimeout(pulse)
source.close()
setTimeout(renew, (heard ? 1 : refresh) * 1e3)
}
beat()
}
addEventListener('load', () => {
if (!window.EventSource) return
// Cancels the pending Refresh, which would end the stream.
stop()
listen()
// Only answers renew the cookie, and with it the place.
setInterval(() => fetch(status, {cache: 'no-store', redirect: 'manual'}).catch(() => {}), pause * 1e3)
if (ends) setTimeout(renew, ends * 1e3)
})
}
