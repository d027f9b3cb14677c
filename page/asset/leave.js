// Forms keep the fragment of the address, which no server sees. Other tabs of a visitor who leaves, which page.js keeps up to date, hear that the
// place is gone. Without them nothing is lost.
document.forms[0].onsubmit = e => {
const form = e.target, {ref} = form.dataset
form.action = form.action.split('#')[0] + location.hash
if (ref && window.BroadcastChannel) new BroadcastChannel('anteroom-' + ref).postMessage({reason: 'left'})
}
