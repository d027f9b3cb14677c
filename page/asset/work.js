// The challenge of an installation without a third party: find numbers whose SHA-256 begins with zero bits. It is computed
// here and not by WebCrypto, which is missing on plain HTTP and makes a promise of each of the thousands of hashes. Slices
// keep the page alive. The answer goes into a cookie, which the next request brings: the page asks at once, as after a sleep.
(() => {
const me = document.currentScript.dataset, bits = 32 - me.bits
// Of 32 bits with a sign: numbers beyond that are slow.
const start = new Int32Array(8), rounds = new Int32Array(64), w = new Int32Array(64), from = new Int32Array(8)
for (let n = 2, i = 0; i < 64; n++) {
let d = 2
while (n % d) d++
if (d < n) continue
const part = x => (x - Math.floor(x)) * 2 ** 32 | 0
if (i < 8) start[i] = part(n ** .5)
rounds[i++] = part(n ** (1 / 3))
}
const turn = (x, n) => x >>> n | x << 32 - n
// The first word of the hash of challenge, number of the part, and nonce: one block.
const first = (part, nonce) => {
for (let i = 0; i < 8; i++) w[i] = from[i]
w[8] = part
w[9] = nonce
w[10] = 1 << 31
for (let i = 11; i < 15; i++) w[i] = 0
w[15] = 320
for (let i = 16; i < 64; i++) {
const a = w[i - 15], b = w[i - 2]
w[i] = w[i - 16] + w[i - 7] + (turn(a, 7) ^ turn(a, 18) ^ a >>> 3) + (turn(b, 17) ^ turn(b, 19) ^ b >>> 10)
}
let a = start[0], b = start[1], c = start[2], d = start[3], e = start[4], f = start[5], g = start[6], h = start[7]
for (let i = 0; i < 64; i++) {
const x = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + rounds[i] + w[i] | 0
const y = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c) | 0
h = g; g = f; f = e; e = d + x | 0; d = c; c = b; b = a; a = x + y | 0
}
return a + start[0] >>> 0
}
for (let i = 0; i < 32; i++) from[i >> 2] |= me.work.charCodeAt(i) << 24 - i % 4 * 8
const found = []
let nonce = 0, part = 0
const slice = () => {
for (const end = performance.now() + 40; performance.now() < end;) {
for (let i = 0; i < 200; i++, nonce++) {
if (first(part, nonce) >>> bits) continue
found.push(nonce)
nonce = -1
if (++part < me.parts) continue
document.cookie = me.cookie + '=' + me.work + '.' + found.join('.') + ';path=/' + (self != top && location.protocol == 'https:' ? ';SameSite=None;Secure;Partitioned' : ';SameSite=Lax')
dispatchEvent(Object.assign(new Event('pageshow'), {persisted: 1}))
return
}
}
setTimeout(slice)
}
setTimeout(slice)
})()
