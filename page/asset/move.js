// The page with a link for another device stays in line by a stream, like the waiting page: it says when the turn has come, and ends when
// the place is at the other device. Where no stream is to be had, the page comes back as without script.
{
const {here, again, stream, refresh} = document.currentScript.dataset, enter = () => location.replace(here)
addEventListener('load', () => {
if (!window.EventSource) return
// Cancels the pending Refresh, which would end the stream.
stop()
const source = new EventSource(stream)
let heard
source.addEventListener('place', () => heard = 1)
// A page in the background takes a turn that it is offered when the visitor looks, or the time for that is over.
source.addEventListener('go', e => {
const {offer} = JSON.parse(e.data)
source.close()
if (!document.hidden || !offer) return enter()
document.addEventListener('visibilitychange', enter)
setTimeout(enter, offer * 1e3)
})
source.onerror = () => {
source.close()
setTimeout(() => location.replace(again), (heard ? 1 : refresh) * 1e3)
}
})
}
