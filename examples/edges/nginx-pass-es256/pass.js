// Verifies passes with Anteroom's public keys, in njs 0.7.9 or later. Write pass.pem again when the key was rotated; an edge without the
// key sends all requests to Anteroom.
import fs from 'fs';

const zone = 'shop.example.com', room = '0123456789abcdef0123456789abcdef';
const options = {
    issuer: 'anteroom',
    suffix: '',
    ends: ['/checkout/done'],         // paths at which the application ends sessions
};
const pem = '/etc/nginx/pass.pem';    // what "anteroom key pass --pem" prints

const name = '__anteroom_pass' + (options.suffix && '_' + options.suffix);
const how = {name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256'};

// The keys by the encoded headers of their passes. Others are refused unread, so that no pass chooses its algorithm.
const keys = {};
fs.readFileSync(pem).toString().split('kid: ').slice(1).forEach(part => {
    const lines = part.split('\n').map(line => line.trim());
    const head = Buffer.from(`{"alg":"ES256","typ":"JWT","kid":"${lines[0]}"}`).toString('base64url');
    keys[head] = lines.slice(lines.indexOf('-----BEGIN PUBLIC KEY-----') + 1, lines.indexOf('-----END PUBLIC KEY-----')).join('');
});

function pairs(r) {
    return (r.headersIn.Cookie || '').split(';').map(pair => pair.trim());
}

// verified returns what the pass of a request says, or null.
async function verified(r, now) {
    const found = pairs(r).filter(pair => pair.startsWith(name + '='));
    const pass = found.length === 1 ? found[0].slice(name.length + 1) : '';
    const parts = pass.split('.');
    if (pass.length > 1024 || parts.length !== 3 || !keys.hasOwnProperty(parts[0])) return null;
    const key = await crypto.subtle.importKey('spki', Buffer.from(keys[parts[0]], 'base64'), how, false, ['verify']);
    if (!await crypto.subtle.verify(how, key, Buffer.from(parts[2], 'base64url'), Buffer.from(parts[0] + '.' + parts[1]))) return null;
    const c = JSON.parse(Buffer.from(parts[1], 'base64url').toString());
    return c.use === 'pass' && c.iss === options.issuer && c.aud === zone && c.room === room && c.sid && c.nbf <= now && now < c.exp ? c : null;
}

// check answers 204 if a request goes straight to the application, and 401 otherwise. Every doubt leads to Anteroom.
async function check(r) {
    let straight = false;
    try {
        const path = r.variables.anteroom_path;
        if (!r.headersIn.Upgrade && !path.startsWith('/.well-known/anteroom/') && !/(^|&)__anteroom(=|&|$)/.test(r.variables.anteroom_query) &&
            !options.ends.some(end => path === end || path.startsWith(end + '/'))) {
            const now = Math.floor(Date.now() / 1000);
            const c = await verified(r, now);
            // Pages are loaded through Anteroom when half of a pass is over, so that there is always a good one.
            straight = c !== null && !(r.headersIn['Sec-Fetch-Mode'] === 'navigate' && now >= (c.iat + c.exp) / 2);
        }
    } catch (e) {
        straight = false;
    }
    r.return(straight ? 204 : 401);
}

// cookies are those for the application, which has no use for passes and tickets.
function cookies(r) {
    return pairs(r).filter(pair => !pair.startsWith('__anteroom_pass') && !pair.startsWith('__cfwaitingroom')).join('; ');
}

export default {check, cookies};
