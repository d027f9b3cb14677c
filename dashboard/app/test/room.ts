import type { Room } from '../core/live'
import { stateOf } from '../core/room'
import { check } from './check'

const room = (controls: object, more: object = {}) => ({ lottery_percent: 0, queueing_method: 'fifo', queue_all: false, controls: { paused: false, draining: false, remaining: null, ...controls }, status: { mode: 'queue', waiting: 1, in_force: null }, ...more }) as unknown as Room
const word = (r: Room) => stateOf(r).word

export const rooms = [
  check('what a room does', [
    ['queueing', () => word(room({})), 'Queueing'],
    ['paused', () => word(room({ paused: true })), 'Paused'],
    ['draining', () => word(room({ draining: true })), 'Draining'],
    ['both: nobody of the queue is admitted', () => word(room({ draining: true, paused: true })), 'Closed'],
    ['draining, and all wait', () => word(room({ draining: true }, { queue_all: true })), 'Closed'],
    ['sold out', () => word(room({ remaining: 0, draining: true, paused: true })), 'Sold out'],
  ]),
]
