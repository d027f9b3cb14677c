// What an operator's page needs for live updates, before event.js and page.js: their words, the status that
// the tag has brought, and an element out of sight for each that they fill and the page does not have.
const doc = document, $ = id => doc.getElementById(id), me = doc.currentScript
// Without a status the page goes on by its Refresh header.
JSON.parse(me.dataset.status)
const add = (id, text, tag = 'p', parent = doc.body) => {
if ($(id)) return $(id)
const e = doc.createElement(tag)
e.id = id
e.textContent = text || ''
return parent.appendChild(e)
}
const hidden = add('anteroom-hidden', '', 'div')
hidden.hidden = true
add('words', JSON.stringify(words), 'p', hidden)
add('status', me.dataset.status, 'p', hidden)
add('ahead-label', words.ahead, 'p', hidden)
add('wait-label', words.wait, 'p', hidden)
for (const id of ['ahead', 'ref']) if (!$(id)) add(id, '', 'span', hidden.appendChild(doc.createElement('p')))
add('bar', '', 'progress', hidden)
add('tell', '', 'button', hidden)
const live = add('anteroom-live', '', 'div')
live.setAttribute('aria-live', 'polite')
add('note', '', 'p', live).hidden = true
add('turn').setAttribute('role', 'alert')
if (!$('say')) Object.assign(add('say').style, {position: 'absolute', width: '1px', height: '1px', margin: '-1px', overflow: 'hidden', clipPath: 'inset(50%)'})
$('say').setAttribute('role', 'status')
