// What the page needs while an event is active. It stands before page.js, which hands it what
// is told and reads aloud what it gets back. The countdown runs by the server's number of
// seconds, whatever the clock of the device says.
(() => {
const doc = document, $ = id => doc.getElementById(id), lang = doc.documentElement.lang
const num = n => n.toLocaleString(lang), two = n => num(n / 10 | 0) + num(n % 10)
let zero, timer
window.during = (s, span, title, here) => {
// Times in the visitor's own time zone; the page that checks a shuffle needs the address at which the visitor waits.
for (const e of doc.querySelectorAll('.at time')) e.textContent = new Date(e.dateTime).toLocaleString(lang, {dateStyle: 'medium', timeStyle: 'short'})
if ($('check')) $('check').hash = here().split('#')[0]
if (!s.start || !$('prequeueTime')) return
zero = Date.now() + s.start * 1e3
const tick = () => {
const left = Math.max(0, Math.ceil((zero - Date.now()) / 1e3)), hours = left / 3600 | 0, minutes = left / 60 | 0
const now = left ? (hours ? num(hours) + ':' + two(minutes % 60) : num(minutes)) + ':' + two(left % 60) : JSON.parse($('words').textContent).soon
if ($('prequeueTime').textContent != now) $('prequeueTime').textContent = now
if (doc.title[0] != '✓') doc.title = (left && left <= 86400 ? '(' + span(Math.ceil(left / 60)) + ') ' : '') + title
}
tick()
clearInterval(timer)
timer = setInterval(tick, 1e3)
// Aloud it is told less often, the farther it is.
const m = s.start / 60, step = m > 60 ? 60 : m > 20 ? 10 : m > 4 ? 5 : 1
return $('wait-label').textContent + ': ' + span(Math.ceil(m / step) * step)
}
})()
