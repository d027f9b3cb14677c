import { around, changes, inWords, lines, patchOf } from '../pages/model/diff'
import { fieldOf, groups, roomFields, typed, valueOf, withValue } from '../pages/model/fields'
import { check } from './check'

const before = { name: 'a', total_active_users: 5, cookie_attributes: { samesite: 'auto', secure: 'auto' }, additional_routes: [], description: null }
const after = { ...before, total_active_users: 7, cookie_attributes: { samesite: 'lax', secure: 'auto' }, description: undefined }

export const change = [
  check('changes of a room', [
    ['nothing', () => changes(roomFields, before, before), []],
    ['a member, and one within another', () => changes(roomFields, before, after), [
      { name: 'total_active_users', before: 5, after: 7 }, { name: 'cookie_attributes.samesite', before: 'auto', after: 'lax' },
    ]],
    ['the body of a PATCH', () => patchOf(changes(roomFields, before, after)), { total_active_users: 7, cookie_attributes: { samesite: 'lax' } }],
    ['what goes is null', () => patchOf([{ name: 'description', before: 'a', after: undefined }]), { description: null }],
    ['an order that differs is a change', () => changes(roomFields, { enabled_origin_commands: ['a', 'b'] }, { enabled_origin_commands: ['b', 'a'] }).length, 1],
    ['in words', () => [null, '', true, false, [], ['a', 'b'], [{ host: 'h', path: '/p' }], 3].map(inWords), ['not set', 'empty', 'on', 'off', 'none', 'a, b', 'h/p', '3']],
  ]),
  check('lines of a text', [
    ['the same', () => lines('a\nb', 'a\nb').map((l) => l.sign).join(''), '  '],
    ['one in the middle', () => lines('a\nb\nc', 'a\nx\nc').map((l) => l.sign + l.text), [' a', '-b', '+x', ' c']],
    ['all new', () => lines('', 'a\nb').map((l) => l.sign + l.text), ['+a', '+b']],
    ['all gone', () => lines('a\nb', '').map((l) => l.sign + l.text), ['-a', '-b']],
    ['what both have stays', () => lines('a\nb\nc\nd', 'b\nd\ne').map((l) => l.sign + l.text), ['-a', ' b', '-c', ' d', '+e']],
    ['far from a change is counted', () => around(lines('1\n2\n3\n4\n5\n6\n7', '1\n2\n3\n4\n5\n6\nx'), 1).map((l) => (typeof l === 'number' ? l : l.sign + l.text)), [5, ' 6', '-7', '+x']],
  ]),
  check('fields', [
    ['groups in the order of the form', () => groups, ['Room', 'Limits', 'Queue', 'Lanes', 'Lottery', 'Accounts', 'Origin', 'Waiting page', 'Cookie', 'Other']],
    ['every field has a group and a name of its own', () => new Set(roomFields.map((f) => f.name)).size === roomFields.length && roomFields.every((f) => groups.includes(f.group)), true],
    ['a value within', () => valueOf({ a: { b: 1 } }, 'a.b'), 1],
    ['a value of nothing', () => valueOf(null, 'a.b') === undefined, true],
    ['another value leaves what is given', () => { const v = { a: { b: 1, c: 2 } }; return [withValue(v, 'a.b', 9), v]; }, [{ a: { b: 9, c: 2 } }, { a: { b: 1, c: 2 } }]],
    ['a number that is typed', () => typed(fieldOf('total_active_users')!, ' 12 '), 12],
    ['no number stays text', () => typed(fieldOf('total_active_users')!, '1e3'), '1e3'],
  ]),
]
