// What the page needs when it answers a form. page.js, which follows, calls onward instead of loading
// the page again: to send the form, once, or to go back to the page that it stood on.
(() => {
const doc = document, form = doc.getElementById('form'), note = doc.getElementById('unsent')
let sent
if (form && window.fetch && window.AbortController) {
note.textContent = note.dataset.resend
// A visitor who follows a link comes back without the form: it opens beside the page.
doc.addEventListener('click', e => { const a = e.target.closest('a'); if (a) a.target = '_blank' })
}
window.onward = here => {
if (form && !sent) {
sent = 1
// A field may be called submit.
HTMLFormElement.prototype.submit.call(form)
} else location.replace(doc.referrer.startsWith(location.origin + '/') ? doc.referrer : here.split('#')[0])
}
})()
