import { expressionOf, formOf, requestOf, warnings } from '../pages/model/rule'
import { check, type Case } from './check'

const c = (field: string, op: string, value = '', key = '') => ({ field, key, op, value })
const path = 'http.request.uri.path'

// Each is written and read again.
const forms: [string, string, ReturnType<typeof c>[][]][] = [
  ['equal', 'http.request.uri.path eq "/a"', [[c(path, 'eq', '/a')]]],
  ['quotes and backslashes', 'http.user_agent eq "a \\"b\\" \\\\ c"', [[c('http.user_agent', 'eq', 'a "b" \\ c')]]],
  ['a regular expression', 'http.request.uri.path matches "^/a\\.(b|c)$"', [[c(path, 'matches', '^/a\\.(b|c)$')]]],
  ['a regular expression with a quote', 'http.request.uri.path matches "a\\"b\\d"', [[c(path, 'matches', 'a"b\\d')]]],
  ['starts with', 'starts_with(http.request.uri.path, "/a")', [[c(path, 'starts_with', '/a')]]],
  ['does not start with', 'not starts_with(http.request.uri.path, "/a")', [[c(path, 'not starts_with', '/a')]]],
  ['a set of texts', 'http.host in {"a" "b"}', [[c('http.host', 'in', 'a b')]]],
  ['networks', 'ip.src in {192.0.2.0/24 2001:db8::/32}', [[c('ip.src', 'in', '192.0.2.0/24 2001:db8::/32')]]],
  ['a list', 'ip.src in $office', [[c('ip.src', 'in', '$office')]]],
  ['a number', 'ip.src.asnum ge 64496', [[c('ip.src.asnum', 'ge', '64496')]]],
  ['a switch', 'not ssl', [[c('ssl', 'is not')]]],
  ['a header', 'any(http.request.headers["x-key"][*] eq "a")', [[c('http.request.headers', 'eq', 'a', 'x-key')]]],
  ['a cookie that is there', 'len(http.request.cookies["a\\"b"]) >= 0', [[c('http.request.cookies', 'exists', '', 'a"b')]]],
  ['groups', '(http.host eq "a" and ssl) or ip.src eq 192.0.2.1', [[c('http.host', 'eq', 'a'), c('ssl', 'is')], [c('ip.src', 'eq', '192.0.2.1')]]],
]

export const rule = [
  check('a rule as text', forms.map(([name, text, form]): Case => [name, () => expressionOf(form), text])),
  check('a rule as a form', forms.map(([name, text, form]): Case => [name, () => formOf(text), form])),
  check('text that is no form', ['http.host eq "a" and (ssl or http.host eq "b")', 'http.host eq', 'http.host eq "a', 'lower(http.host) eq "a"', 'nothing eq "a"', 'http.host eq "a\\n"'].map((text): Case => [text, () => formOf(text), null])),
  check('warnings', [
    ['a narrow rule', () => warnings('http.request.uri.path eq "/health"'), []],
    ['everything', () => warnings('http.request.uri.path contains "/"').length, 1],
    ['all but one path', () => warnings('http.request.uri.path ne "/a"').length, 1],
    ['a header alone', () => warnings('any(http.request.headers["x-key"][*] eq "a")').length, 1],
    ['a header and an address', () => warnings('any(http.request.headers["x-key"][*] eq "a") and ip.src in {192.0.2.0/24}'), []],
    ['a large network', () => warnings('ip.src in {0.0.0.0/0}').length, 1],
  ]),
  check('a pasted request', [
    ['curl', () => requestOf(`curl -X post 'https://a.example/x?y=1' -H 'X-Key: it'\\''s' \\\n -A "b \\"c\\""`), { method: 'POST', url: 'https://a.example/x?y=1', headers: { 'x-key': "it's", 'user-agent': 'b "c"' }, ip: '' }],
    ['raw', () => requestOf('GET /x HTTP/1.1\nHost: a.example\nCookie: a=b'), { method: 'GET', url: 'https://a.example/x', headers: { host: 'a.example', cookie: 'a=b' }, ip: '' }],
    ['an address', () => requestOf('a.example/x').url, 'https://a.example/x'],
  ]),
]
