import { bounded, moved, queryOf, rangeOf, stamp } from '../pages/model/range'
import { check } from './check'

const now = Date.parse('2026-03-01T12:00:00Z')
const of = (q: string) => rangeOf(new URLSearchParams(q), now)
const said = (q: string) => { const r = of(q); return [stamp(r.from), stamp(r.to), r.live ?? null]; }
const day = ['2026-02-28T12:00:00Z', '2026-03-01T12:00:00Z', '24h']

export const range = [
  check('the range of an address', [
    ['none', () => said(''), day],
    ['a word', () => said('range=30m'), ['2026-03-01T11:30:00Z', '2026-03-01T12:00:00Z', '30m']],
    ['an unknown word', () => said('range=9y'), day],
    ['two moments', () => said('from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z'), ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', null]],
    ['up to now', () => said('from=2026-03-01T11:00:00Z'), ['2026-03-01T11:00:00Z', '2026-03-01T12:00:00Z', null]],
    ['unix seconds', () => said('from=1772300000&to=1772303600'), [stamp(Math.floor(1772300000 / 60) * 60000), stamp(Math.ceil(1772303600 / 60) * 60000), null]],
    ['the wrong way round', () => said('from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z'), day],
    ['nonsense', () => said('from=yesterday&to=x'), day],
    ['at least a minute', () => { const r = bounded(now, now); return r.to - r.from; }, 60_000],
    ['at most 400 days', () => { const r = bounded(0, now); return (r.to - r.from) / 86_400_000; }, 400],
  ]),
  check('the address of a range', [
    ['the usual one is not written', () => queryOf(of('')), ''],
    ['a word', () => queryOf(of('range=7d')), '?range=7d'],
    ['moments, with what else was there', () => queryOf(of('from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z'), new URLSearchParams('compare=week&range=1h')), '?compare=week&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z'],
    ['there and back', () => said(queryOf(of('from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z'))), ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', null]],
  ]),
  check('a range that is moved', [
    ['back', () => stamp(moved(of('range=1h'), 'back', now).from), '2026-03-01T10:00:00Z'],
    ['on, never after now', () => stamp(moved(of('range=1h'), 'on', now).to), '2026-03-01T12:00:00Z'],
    ['out', () => { const r = moved(of('range=1h'), 'out', now); return [(r.to - r.from) / 60_000, r.to <= now]; }, [90, true]],
  ]),
]
