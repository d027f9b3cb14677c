import { forecast, newcomer, trend, waitUnder } from '../core/forecast'
import { ago, compact, count, decimal, duration, near, number, percent } from '../core/format'
import { arrivals } from '../core/history'
import { nextEvent, urgency } from '../core/room'
import type { Room, Sample } from '../core/live'
import { inMinutes, stacked, typical } from '../pages/model/series'
import { check } from './check'

const now = Date.parse('2026-03-01T12:00:00Z') / 1000
const room = (waiting: number, more: object = {}, controls: object = {}) =>
  ({ name: 'r', controls: { paused: false, draining: false, ...controls }, status: { waiting, dormant: 0, offered: 0, active_users: 10, total_active_users: 10, new_users_per_minute: 5, admitted_last_minute: 5, wait_of_newcomer_seconds: 60, in_force: null, ...more } }) as unknown as Room
// The line at each of the last seconds.
const samples = (seconds: number, waiting: (ago: number) => number): Sample[] =>
  Array.from({ length: seconds }, (_, i) => ({ at: now - (seconds - 1 - i), active: 10, limit: 10, waiting: Math.round(waiting(seconds - 1 - i)), admitted: 0, pace: 5 }))
const head = (r: Room, list: Sample[]) => forecast(r, list, now).head
const event = (prequeue: string | null, at: string) => {
  const e = nextEvent({ next_event: { id: '1', name: 'sale', prequeue, start: '2026-03-01T13:00:00Z', end: '2026-03-01T15:00:00Z' } } as unknown as Room, Date.parse(at) / 1000)!
  return [e.on, ...e.words]
}

const order = (...rooms: [string, Room][]) => rooms.sort((a, b) => urgency(b[1]) - urgency(a[1])).map(([name]) => name)
const minutes = (...waiting: number[]): Sample[] => waiting.map((n, i) => ({ at: now - 30 - 60 * (waiting.length - 1 - i), active: 10, limit: 10, waiting: n, admitted: 5, pace: 5 }))

export const figures = [
  check('which room needs eyes', [
    ['a queue before an open room, a long one before a short one', () => order(['open', room(0)], ['short', room(3)], ['long', room(300)]), ['long', 'short', 'open']],
    ['what fails before what waits', () => order(['queue', room(300)], ['down', room(0, { pace_reason: 'origin_down' })]), ['down', 'queue']],
    ['a paused room before an open one, a suspended one last', () => order(['off', { ...room(0), suspended: true } as Room], ['open', room(0)], ['paused', room(0, {}, { paused: true })]), ['paused', 'open', 'off']],
    ['rooms do not swap places for a visitor', () => urgency(room(41)) - urgency(room(42)), 0],
  ]),
  check('arrivals', [
    ['each second, when a minute is known', () => arrivals(samples(70, (ago) => 100 - ago)).map((n) => n ?? -1).slice(58), [-1, -1, 60, 60, 60, 60, 60, 60, 60, 60, 60, 60]],
    ['of recorded minutes', () => arrivals(minutes(0, 60, 180)), [null, 65, 125]],
    ['no hole where the minutes end and the seconds begin', () => arrivals([...minutes(0, 60, 120), ...samples(25, (ago) => 150 - ago)]).slice(1).filter((n) => n === null || n < 59 || n > 66), []],
    ['not across a time that nobody knows', () => arrivals([...minutes(0), ...samples(70, () => 0)].map((s, i) => (i ? s : { ...s, at: s.at - 900 }))).slice(0, 60).every((n) => n === null), true],
  ]),
  check('numbers and durations', [
    ['durations', () => [null, 0, 45, 200, 599, 600, 7500, 90_000].map(duration), ['–', '0s', '45s', '3m 20s', '9m 59s', '10m', '2h 5m', '1d 1h']],
    ['less than nothing is none', () => duration(-3), '0s'],
    ['numbers', () => [number(12345), decimal(1.25), number(null), number(NaN), percent(0.5), percent(1 / 0)], ['12,345', '1.3', '–', '–', '50%', '–']],
    ['in short', () => [compact(9999), compact(12_345)], ['9,999', '12.3K']],
    ['counted', () => [count(1, 'room'), count(2, 'room'), count(2, 'person', 'people')], ['1 room', '2 rooms', '2 people']],
    ['ago', () => [ago(now - 90, now * 1000), ago(now + 7200, now * 1000), ago('', now)], ['1 minute ago', 'in 2 hours', '–']],
    ['near and far', () => [near(now + 3600, now), near(now + 90_000, now), near(null, now)], ['01:00 PM', 'Mar 2, 01:00 PM', '–']],
  ]),
  check('the next event', [
    ['to come', () => event('2026-03-01T12:30:00Z', '2026-03-01T12:00:00Z'), [false, '01:00 PM', 'in 1 hour', 'prequeue from 12:30 PM']],
    ['without prequeue', () => event(null, '2026-03-01T12:40:00Z'), [false, '01:00 PM', 'in 20 minutes']],
    ['gathering', () => event('2026-03-01T12:30:00Z', '2026-03-01T12:30:00Z'), [true, 'prequeue', 'starts 01:00 PM']],
    ['on', () => event('2026-03-01T12:30:00Z', '2026-03-01T13:00:00Z'), [true, 'until 03:00 PM']],
    ['none', () => nextEvent({ next_event: null } as unknown as Room, now), null],
  ]),
  check('the sentence on top', [
    ['a long line that shrinks slowly', () => head(room(10_100), samples(60, (s) => 10_100 + (s * 200) / 60)), '10,100 people are waiting. At this rate the queue is empty at 12:50 PM.'],
    ['a short line of a small room', () => head(room(4), samples(60, (s) => 4 + Math.floor(s / 30))).startsWith('4 people are waiting. At this rate the queue is empty at '), true],
    ['it turned half a minute ago', () => head(room(70), samples(300, (s) => (s < 40 ? 70 + s : 110 - (s - 40)))).includes('is empty at'), true],
    ['it grows', () => head(room(160), samples(60, (s) => 160 - s)), '160 people are waiting. The queue grows by 60 per minute.'],
    ['it stays', () => head(room(50), samples(60, (s) => 50 + (s % 2))), '50 people are waiting. The queue keeps its length.'],
    ['not known yet', () => head(room(50), samples(10, () => 50)), '50 people are waiting.'],
    ['held', () => head(room(50, {}, { paused: true }), samples(60, (s) => 50 + s)), '50 people are waiting.'],
    ['a trend needs a while', () => trend(samples(15, (s) => s)), null],
    ['a trend goes by seconds', () => Math.round(trend(samples(60, (s) => 100 + 2 * s))! * 100) / 100, -2],
  ]),
  check('the wait of newcomers', [
    ['as forecast', () => newcomer(room(50).status!), '1m'],
    ['at least', () => newcomer(room(50, { wait_of_newcomer_seconds: null, wait_of_newcomer_at_least_seconds: 120, wait_of_newcomer_at_most_seconds: null }).status!), 'at least 2m'],
    ['between', () => newcomer(room(50, { wait_of_newcomer_seconds: null, wait_of_newcomer_at_least_seconds: 120, wait_of_newcomer_at_most_seconds: 300 }).status!), '2m to 5m'],
    ['not known', () => newcomer(room(50, { wait_of_newcomer_seconds: null, wait_of_newcomer_at_least_seconds: null, wait_of_newcomer_at_most_seconds: null }).status!), '–'],
  ]),
  check('the wait under other limits', [
    ['twice the pace is half the wait', () => { const s = room(105, { active_users: 5, total_active_users: 1000, admitted_last_minute: 5 }).status!; return [5, 10].map((pace) => Math.round(waitUnder(s, { total: 1000, pace })!)); }, [1200, 570]],
    ['room for all', () => waitUnder(room(5).status!, { total: 100, pace: 50 }), 0],
    ['nobody is let in', () => waitUnder(room(5).status!, { total: 10, pace: 0 }), null],
  ]),
  check('series', [
    ['one upon the other', () => stacked([1, null, null], [2, 3, null]), [3, 3, null]],
    ['in minutes', () => inMinutes([60, null]), [1, null]],
    ['typical', () => [typical({ waited_p50: 30, waited_p75: 60 }, 'waited'), typical({ waited_p50: 30, waited_p75: 30 }, 'waited'), typical({}, 'waited')], ['30s to 1m', '30s', '–']],
  ]),
]
