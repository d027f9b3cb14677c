// A shop behind the published connector of Queue-it. It fetches what to protect from the queue's host, and writes a line for
// each request within a session. QUEUE is the address of that host, START its clock's begin, in microseconds since 1970.
// SKEW is by how many milliseconds the connector's clock is ahead.
import { createHmac } from 'node:crypto';
import { createServer, get } from 'node:http';
import connector from '@queue-it/connector-javascript';

const { QUEUE, SECRET, START, SKEW } = process.env;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...given) { super(...(given.length ? given : [RealDate.now() + Number(SKEW)])); }
};
const page = 'text/html; charset=utf-8';

const config = await new Promise((done, failed) => {
  get(`http://${QUEUE}/status/integrationconfig/acme`, { headers: { host: 'wait.example.com' } }, (res) => {
    let text = '';
    res.on('data', (part) => { text += part; }).on('end', () => done(JSON.parse(text)));
  }).on('error', failed);
});
// The one action that a shop adds by hand: who has bought leaves.
config.Integrations.unshift({
  ...config.Integrations[0], Name: 'thanks', ActionType: 'Cancel',
  Triggers: [{ LogicalOperator: 'And', TriggerParts: [{ ValidatorType: 'UrlValidator', Operator: 'Contains', UrlPart: 'PagePath', ValueToCompare: '/checkout/thanks' }] }],
});

const log = (req, session) => console.log(JSON.stringify({
  us: Math.round((performance.timeOrigin + performance.now()) * 1000) - Number(START),
  sent: Number(req.headers['x-sent'] ?? 0), visitor: req.headers['x-visitor'], session, method: req.method, path: req.url,
}));

function context(req, res, url) {
  const cookies = new Map((req.headers.cookie ?? '').split('; ').map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
  return {
    getHttpRequest: () => ({
      getUserAgent: () => req.headers['user-agent'] ?? '',
      getHeader: (name) => req.headers[name.toLowerCase()] ?? '',
      getAbsoluteUri: () => url,
      getUserHostAddress: () => req.headers['x-forwarded-for'] ?? '',
      getCookieValue: (name) => cookies.has(name) ? decodeURIComponent(cookies.get(name)) : undefined,
      getRequestBodyAsString: () => '',
    }),
    getHttpResponse: () => ({
      setCookie: (name, value, domain, expires, httpOnly, secure) => res.appendHeader('Set-Cookie',
        `${name}=${encodeURIComponent(value)}; Path=/; Expires=${new Date(expires * 1000).toUTCString()}${httpOnly ? '; HttpOnly' : ''}${secure ? '; Secure' : ''}`),
    }),
    getCryptoProvider: () => ({ getSha256Hash: (key, text) => createHmac('sha256', key).update(text).digest('hex') }),
    getEnqueueTokenProvider: () => null,
  };
}

const server = createServer(async (req, res) => {
  const url = `https://${req.headers.host}${req.url}`;
  const token = new URL(url).searchParams.get('queueittoken') ?? '';
  const plain = url.replace(/([?&])queueittoken=[^&]*/i, '');
  try {
    const verdict = await connector.KnownUser.validateRequestByIntegrationConfig(plain, token, JSON.stringify(config), 'acme', SECRET, context(req, res, url));
    if (verdict.queueId) log(req, verdict.queueId);
    res.setHeader('Cache-Control', 'no-store');
    if (verdict.doRedirect()) {
      if (verdict.isAjaxResult) res.writeHead(200, { [verdict.getAjaxQueueRedirectHeaderKey()]: verdict.getAjaxRedirectUrl() }).end();
      else res.writeHead(302, { Location: verdict.redirectUrl }).end();
    } else if (token && verdict.actionType === 'Queue') res.writeHead(302, { Location: plain }).end();
    else res.writeHead(200, { 'Content-Type': page }).end(`${verdict.actionType} ${verdict.redirectType ?? ''} ${verdict.queueId ?? ''}`);
  } catch (e) {
    res.writeHead(500, { 'Content-Type': page }).end(e.stack);
  }
});
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port })));
process.stdin.on('close', () => process.exit(0)).resume();
