// Recomputes a shuffle in the visitor's browser. Comments stand on lines of their own and are
// not sent.
(() => {
const $ = id => document.getElementById(id)
const hex = bytes => Array.from(bytes, b => b.toString(16).padStart(2, '0')).join('')
const unhex = (text, bytes, name) => {
if (typeof text != 'string' || !/^([0-9a-f]{2})*$/.test(text) || text.length != 2 * bytes) throw Error('The receipt has no ' + name + ' of ' + bytes + ' bytes.')
return Uint8Array.from(text.match(/../g) || [], x => parseInt(x, 16))
}
const join = (a, b) => { const c = new Uint8Array(a.length + b.length); c.set(a); c.set(b, a.length); return c }
const sha = async bytes => new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
const keyed = bytes => crypto.subtle.importKey('raw', bytes, {name: 'HMAC', hash: 'SHA-256'}, false, ['sign'])
const mac = async (key, bytes) => new Uint8Array(await crypto.subtle.sign('HMAC', key, bytes))
const compare = (a, b) => { for (let i = 0; i < a.length; i++) if (a[i] != b[i]) return a[i] - b[i]; return 0 }

let good
const step = (ok, text) => {
const li = document.createElement('li')
li.textContent = (ok ? '✓ ' : '✗ ') + text
$('steps').append(li)
good = good && ok
}
const read = async (url, what) => {
const u = new URL(url, location.href)
if (u.origin != location.origin) throw Error('The ' + what + ' is on another website; load it as a file.')
const r = await fetch(u, {credentials: 'same-origin', redirect: 'error'})
if (!r.ok) throw Error('The ' + what + ' cannot be loaded: ' + (await r.text()).slice(0, 200))
return r
}

// The place of an id: how many go before it.
const placeOf = async (seed, entries, ids, id) => {
const key = await keyed(await mac(await keyed(seed), join(new TextEncoder().encode('wr-shuffle-v1'), entries)))
const own = (await mac(key, id)).subarray(0, 8), batch = 4096
let before = 0
for (let i = 0; i < ids.length; i += batch * 16) {
const all = []
for (let k = i; k < Math.min(ids.length, i + batch * 16); k += 16) {
const other = ids.subarray(k, k + 16)
all.push(mac(key, other).then(m => { const c = compare(m.subarray(0, 8), own) || compare(other, id); if (c < 0) before++ }))
}
await Promise.all(all)
$('bar').value = i / ids.length
}
return before + 1
}

const check = async () => {
$('steps').textContent = $('result').textContent = ''
good = true
if (!window.crypto || !crypto.subtle) throw Error('Browsers compute hashes on secure pages only: open this page with https.')
let r
try { r = JSON.parse($('receipt').value) } catch (e) { throw Error('This is not a receipt: ' + e.message) }
if (!r || typeof r != 'object') throw Error('This is not a receipt.')
const commitment = unhex(r.commitment, 32, 'commitment')
if (!r.done) {
$('result').textContent = 'The shuffle has not happened yet. Save this receipt and come back after the start: the commitment must still be the same.'
return
}
const seed = unhex(r.seed, 32, 'seed'), entries = unhex(r.entries, 32, 'entries'), id = unhex(r.id, 16, 'id')
step(!compare(await sha(seed), commitment), 'The seed matches the commitment: its SHA-256 is ' + hex(await sha(seed)))
const file = $('list').files[0]
const ids = new Uint8Array(await (file || await read(r.ids, 'list of ids')).arrayBuffer())
const count = ids.length / 16
step(count == r.count, 'The list has ' + count + ' ids; the receipt says ' + r.count)
step(!compare(await sha(ids), entries), 'The list matches the record: its SHA-256 is ' + hex(await sha(ids)))
let sorted = count % 1 == 0, found = false
for (let i = 0; i < ids.length; i += 16) {
const one = ids.subarray(i, i + 16)
if (i && compare(ids.subarray(i - 16, i), one) >= 0) sorted = false
if (!compare(one, id)) found = true
}
step(sorted, 'Every id is in the list once, in order')
if (!found) {
step(r.took_part === false, 'Your id is not in the list' + (r.took_part === false ? ', as the receipt says: you arrived after the start' : ''))
} else {
$('bar').hidden = false
const place = await placeOf(seed, entries, ids, id)
step(place == r.place, 'Your place in the shuffle is ' + place + '; the receipt says ' + r.place)
}
$('result').textContent = good ? 'Everything is correct.' : 'Something is not correct: see below.'
}
const run = () => {
$('check').disabled = true
return check().catch(e => { $('result').textContent = e.message }).then(() => { $('check').disabled = false; $('bar').hidden = true })
}
$('check').onclick = run
$('save').onclick = () => {
const a = document.createElement('a')
a.href = URL.createObjectURL(new Blob([$('receipt').value], {type: 'application/json'}))
a.download = 'receipt.json'
a.click()
setTimeout(() => URL.revokeObjectURL(a.href), 1e4)
}

// The waiting page says behind the # where the visitor waits: the receipt is there.
const load = async () => {
const here = decodeURI(location.hash.slice(1)).split('#')[0]
if (!here) return
const r = await read(here + (here.includes('?') ? '&' : '?') + '__anteroom=receipt', 'receipt')
$('receipt').value = JSON.stringify(await r.json(), null, 2)
await run()
}
load().catch(e => { $('result').textContent = e.message })
})()
