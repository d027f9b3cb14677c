// Verifies passes of a room whose pass_edge has a secret of its own (HS256), in njs 0.7.9 or later. The file holds secrets:
// only nginx may read it. When the key was rotated, write it again and reload; until then all requests go to Anteroom.
import crypto from 'crypto';

// What "anteroom key pass --edge NAME" shows, by KID.
const secrets = {'nginx-1a2b3c4d': 'the-secret-of-43-characters'};
const zone = 'shop.example.com', room = '0123456789abcdef0123456789abcdef';
const options = {
    issuer: 'anteroom',
    suffix: '',
    ends: ['/checkout/done'],         // paths at which the application ends sessions
};

const name = '__anteroom_pass' + (options.suffix && '_' + options.suffix);

// The encoded headers of passes. Others are refused unread, so that no pass chooses its algorithm.
const keys = {};
Object.keys(secrets).forEach(kid => {
    keys[Buffer.from(`{"alg":"HS256","typ":"JWT","kid":"${kid}"}`).toString('base64url')] = secrets[kid];
});

function pairs(r) {
    return (r.headersIn.Cookie || '').split(';').map(pair => pair.trim());
}

// verified returns what the pass of a request says, or null.
function verified(r, now) {
    const found = pairs(r).filter(pair => pair.startsWith(name + '='));
    const pass = found.length === 1 ? found[0].slice(name.length + 1) : '';
    const parts = pass.split('.');
    if (pass.length > 1024 || parts.length !== 3 || !keys.hasOwnProperty(parts[0])) return null;
    const mac = crypto.createHmac('sha256', keys[parts[0]]).update(parts[0] + '.' + parts[1]).digest('base64url');
    // The time that a comparison takes tells nothing: what is compared are MACs of these again.
    const again = text => crypto.createHmac('sha256', keys[parts[0]]).update(text).digest('hex');
    if (again(mac) !== again(parts[2])) return null;
    const c = JSON.parse(Buffer.from(parts[1], 'base64url').toString());
    return c.use === 'pass' && c.iss === options.issuer && c.aud === zone && c.room === room && c.sid && c.nbf <= now && now < c.exp ? c : null;
}

// good is 1 if a request goes straight to the application. Every doubt leads to Anteroom.
function good(r) {
    try {
        if (r.headersIn.Upgrade || r.uri.startsWith('/.well-known/anteroom/') || '__anteroom' in r.args ||
            options.ends.some(end => r.uri === end || r.uri.startsWith(end + '/'))) return '0';
        const now = Math.floor(Date.now() / 1000);
        const c = verified(r, now);
        // Pages are loaded through Anteroom when half of a pass is over, so that there is always a good one.
        return c && !(r.headersIn['Sec-Fetch-Mode'] === 'navigate' && now >= (c.iat + c.exp) / 2) ? '1' : '0';
    } catch (e) {
        return '0';
    }
}

// cookies are those for the application, which has no use for passes and tickets, or all of them for Anteroom.
function cookies(r) {
    if (r.variables.anteroom_good !== '1') return r.headersIn.Cookie || '';
    return pairs(r).filter(pair => !pair.startsWith('__anteroom_pass') && !pair.startsWith('__cfwaitingroom')).join('; ');
}

export default {good, cookies};
