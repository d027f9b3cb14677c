import { bodyOf, faults, fromLocal, gathering, gathers, lasting, phaseOf, rampText, readRamp, sideBySide, sorted, stampsAfter, startingAt, toLocal } from '../pages/model/event'
import { inForce } from '../pages/model/fields'
import { check } from './check'

const at = (s: string) => Date.parse(`2026-03-01T${s}Z`)
const e = { id: '1', name: 'sale', event_start_time: '2026-03-01T12:00:00Z', event_end_time: '2026-03-01T13:00:00Z', prequeue_start_time: '2026-03-01T11:30:00Z' }
const room = { total_active_users: 100, new_users_per_minute: 50, session_duration: 5, queueing_method: 'fifo', disable_session_renewal: true }
const row = (event: object, name: string) => {
  const { own, room: r, value } = sideBySide(room, event).find((x) => x.field.name === name)!
  return [own, r, value]
}

const step = (after: string, new_users_per_minute: number, total_active_users = 0, over = '0s') => ({ after, over, new_users_per_minute, total_active_users })

export const event = [
  check('a ramp as text', [
    ['written', () => rampText([step('0s', 100), step('10m0s', 300), step('1h0m0s', 500, 2000), step('1h30m20s', 1), step('2h0m0s', 900, 0, '15m0s')]), '0s 100, 10m 300, 1h 500/2000, 1h30m20s 1, 2h+15m 900'],
    ['none', () => rampText(null), ''],
    ['read', () => readRamp(' 0s 100,10m  300 , 1h30m 500/2000'), [step('0s', 100), step('10m', 300), step('1h30m', 500, 2000)]],
    ['along a curve', () => readRamp('0s+1m30s 100, 10m+1h 300/500'), [step('0s', 100, 0, '1m30s'), step('10m', 300, 500, '1h')]],
    ['empty', () => readRamp(' '), []],
    ['without a time', () => readRamp('0s 100, 300'), null],
    ['without a unit', () => readRamp('10 300'), null],
    ['without a length', () => readRamp('10m+ 300'), null],
    ['half written', () => readRamp('0s 100, 10m'), null],
  ]),
  check('where an event stands', [
    ['before', () => phaseOf(e, at('11:29:59')), 'upcoming'],
    ['prequeue', () => phaseOf(e, at('11:30:00')), 'prequeueing'],
    ['running', () => phaseOf(e, at('12:00:00')), 'running'],
    ['over', () => phaseOf(e, at('13:00:00')), 'over'],
    ['one that repeats is never over', () => phaseOf({ ...e, repeat: { every: 'week' } }, at('14:00:00')), 'upcoming'],
    ['suspended', () => phaseOf({ ...e, suspended: true }, at('12:10:00')), 'suspended'],
    ['what runs first, then what comes, then what was', () => sorted([{ ...e, name: 'old', event_start_time: '2026-02-01T12:00:00Z', event_end_time: '2026-02-01T13:00:00Z', prequeue_start_time: null },
      { ...e, name: 'next', event_start_time: '2026-04-01T12:00:00Z', event_end_time: '2026-04-01T13:00:00Z', prequeue_start_time: null }, e], at('12:10:00')).map((x) => x.name), ['sale', 'next', 'old']],
  ]),
  check('inheritance of an event', [
    ['null is the room\'s', () => row({ session_duration: null }, 'session_duration'), [false, 5, 5]],
    ['missing is the room\'s', () => row({}, 'queueing_method'), [false, 'fifo', 'fifo']],
    ['of its own', () => row({ session_duration: 3 }, 'session_duration'), [true, 5, 3]],
    ['false is of its own', () => row({ disable_session_renewal: false }, 'disable_session_renewal'), [true, true, false]],
    ['0 is of its own', () => row({ new_users_per_minute: 0 }, 'new_users_per_minute'), [true, 50, 0]],
    ['only what differs is sent', () => bodyOf({ ...e, session_duration: 3 }, { ...e, session_duration: null }), { session_duration: 3 }],
    ['inheriting again sends null', () => bodyOf({ ...e, session_duration: null }, { ...e, session_duration: 3 }), { session_duration: null }],
  ]),
  check('what is wrong with an event', [
    ['nothing', () => faults(e, [e]), {}],
    ['a short prequeue', () => Object.keys(faults({ ...e, prequeue_start_time: '2026-03-01T11:56:00Z' }, [])), ['prequeue_start_time']],
    ['shuffle without prequeue', () => Object.keys(faults({ ...e, prequeue_start_time: null, shuffle_at_event_start: true }, [])), ['shuffle_at_event_start']],
    ['one limit', () => Object.keys(faults({ ...e, total_active_users: 5 }, [])), ['new_users_per_minute']],
    ['the same name', () => Object.keys(faults(e, [{ ...e, id: '2', event_start_time: '2027-03-01T12:00:00Z', event_end_time: '2027-03-01T13:00:00Z', prequeue_start_time: null }])), ['name']],
    ['it overlaps', () => faults(e, [{ ...e, id: '2', name: 'other' }]), { event_start_time: 'overlaps with other' }],
  ]),
  check('presses of the form', [
    ['gathering an hour before the start', () => gathering(e, 60), { prequeue_start_time: '2026-03-01T11:00:00Z' }],
    ['without gathering nothing is shuffled', () => gathering(e, 0), { prequeue_start_time: null, shuffle_at_event_start: false }],
    ['how long it gathers', () => [gathers(e), gathers({ ...e, prequeue_start_time: null })], [30, 0]],
    ['two hours long', () => lasting(e, 120), { event_end_time: '2026-03-01T14:00:00Z' }],
    ['another start takes end and prequeue along', () => startingAt(e, '2026-03-02T10:00:00Z'), { event_start_time: '2026-03-02T10:00:00Z', event_end_time: '2026-03-02T11:00:00Z', prequeue_start_time: '2026-03-02T09:30:00Z' }],
    ['a start that is taken out takes nothing along', () => startingAt(e, null), { event_start_time: null }],
  ]),
  check('fields that do something', [
    ['bounds of a protection that is off', () => inForce('protect_errors', { protect: false }), false],
    ['bounds of one that is on', () => inForce('protect_errors', { protect: true }), true],
    ['the edge of a pass that there is not', () => inForce('pass_edge', { pass: '0s' }), false],
    ['every other field', () => inForce('name', {}), true],
  ]),
  check('moments of a form', [
    ['there and back', () => fromLocal(toLocal('2026-03-01T12:00:00Z')), '2026-03-01T12:00:00Z'],
    ['nothing', () => [toLocal(null), fromLocal('')], ['', null]],
    ['weeks later, after now', () => stampsAfter(e, Date.parse('2026-03-20T00:00:00Z')).event_start_time, '2026-03-22T12:00:00Z'],
  ]),
]
