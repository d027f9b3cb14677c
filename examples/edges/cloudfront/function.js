// A CloudFront Function for viewer requests (runtime 2.0): requests with a good pass go to the origin of the behavior, which is the
// application, all others to Anteroom. For a room with a pass_edge, because functions know HS256 only. The file holds secrets. When the
// key was rotated, publish it again; until then all requests go to Anteroom.
import cf from 'cloudfront';
const crypto = require('crypto');

// What "anteroom key pass --edge NAME" shows, by KID.
const secrets = {'nginx-1a2b3c4d': 'the-secret-of-43-characters'};
const zone = 'shop.example.com', room = '0123456789abcdef0123456789abcdef';
const options = {
    issuer: 'anteroom',
    suffix: '',
    ends: ['/checkout/done'],         // paths at which the application ends sessions
};
// A name of Anteroom. It has the port, the protocol and the certificate for the visitors' host that the behavior's origin has.
const anteroom = {domainName: 'anteroom.shop.example.com'};

const name = '__anteroom_pass' + (options.suffix && '_' + options.suffix);

// The encoded headers of passes. Others are refused unread, so that no pass chooses its algorithm.
const keys = {};
Object.keys(secrets).forEach(kid => {
    keys[Buffer.from(`{"alg":"HS256","typ":"JWT","kid":"${kid}"}`).toString('base64url')] = secrets[kid];
});

// verified returns what the pass of a request says, or null.
function verified(request, now) {
    const found = request.cookies[name];
    const pass = found && !found.multiValue ? found.value : '';
    const parts = pass.split('.');
    if (pass.length > 1024 || parts.length !== 3 || !keys.hasOwnProperty(parts[0])) return null;
    // The time that a comparison takes tells nothing: what is compared are MACs of the signatures.
    const mac = text => crypto.createHmac('sha256', keys[parts[0]]).update(text).digest('base64url');
    if (mac(mac(parts[0] + '.' + parts[1])) !== mac(parts[2])) return null;
    const c = JSON.parse(Buffer.from(parts[1], 'base64url').toString());
    return c.use === 'pass' && c.iss === options.issuer && c.aud === zone && c.room === room && c.sid && c.nbf <= now && now < c.exp ? c : null;
}

// good reports whether a request goes straight to the application. Every doubt leads to Anteroom.
function good(request) {
    try {
        if (request.headers.upgrade || request.uri.startsWith('/.well-known/anteroom/') || request.querystring.__anteroom ||
            options.ends.some(end => request.uri === end || request.uri.startsWith(end + '/'))) return false;
        const now = Math.floor(Date.now() / 1000);
        const c = verified(request, now);
        const mode = request.headers['sec-fetch-mode'];
        // Pages are loaded through Anteroom when half of a pass is over, so that there is always a good one.
        return c !== null && !(mode && mode.value === 'navigate' && now >= (c.iat + c.exp) / 2);
    } catch (e) {
        return false;
    }
}

function handler(event) {
    const request = event.request;
    Object.keys(request.headers).forEach(header => {
        if (/^x[-_.]anteroom[-_.]/.test(header)) delete request.headers[header];
    });
    if (!good(request)) {
        cf.updateRequestOrigin(anteroom);
        return request;
    }
    Object.keys(request.cookies).forEach(cookie => { // the application has no use for passes and tickets
        if (cookie.startsWith('__anteroom_pass') || cookie.startsWith('__cfwaitingroom')) delete request.cookies[cookie];
    });
    return request;
}
