// On pages beside the waiting page, links and forms to the address at which the visitor waits keep its fragment, which no server sees. Other
// tabs of a visitor who leaves, which page.js keeps up to date, hear that the place is gone. Without them nothing is lost.
{
const {host, pathname, hash} = location
for (const a of document.links) if (a.host == host && a.pathname == pathname) {
const shown = a.textContent == a.href
a.hash = hash
if (shown) a.textContent = a.href
}
const [form] = document.forms
if (form) form.onsubmit = () => {
const {ref} = form.dataset
form.action = form.action.split('#')[0] + hash
if (ref && window.BroadcastChannel) new BroadcastChannel('anteroom-' + ref).postMessage({reason: 'left'})
}
}
