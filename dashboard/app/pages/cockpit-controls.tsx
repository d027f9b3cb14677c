import { useState } from 'preact/hooks'
import { call, del, get, patch, post, put, putBack, theirs } from '../core/api'
import { count, number } from '../core/format'
import type { Room } from '../core/live'
import { ownPath, publishedPath } from '../core/room'
import { Button, Card, confirm, done, Icon, NumberField, tell, TextArea, type IconName } from '../ui'

interface Control {
  title: string
  icon: IconName
  on: boolean
  what: string
  ask: string
  danger?: boolean
  /** Settings, which the configuration file keeps where it defines the room. */
  setting?: boolean
  start: () => Promise<unknown>
  stop: () => Promise<unknown>
}

// The operator's hand has one way back for pause and drain; what else is on by now is put on again.
async function lift(path: string, what: 'paused' | 'draining') {
  const { paused, draining } = (await get<Room>(path)).controls
  await post(path + '/resume')
  if (paused && what !== 'paused') await post(path + '/pause')
  if (draining && what !== 'draining') await post(path + '/drain')
}

/** Takes back what was set by hand; made is how that was answered. These operations have no versions. */
async function takeBack(path: string, name: 'message' | 'remaining', made: Room['controls'], back: () => Promise<unknown>) {
  if ((await get<Room>(path)).controls[name] !== made[name]) throw theirs()
  await back()
}

/** The event that is active, as the API has it. */
export const eventPath = (room: Room) => (room.status?.in_force?.event ? `${publishedPath(room)}/events/${room.status.in_force.event.id}` : null)

/**
 * Settings that an event has of its own go before the room's: changed is what is in force. Limits that are set by hand
 * end a ramp, whose steps would replace them. Returns what takes the change back.
 */
export async function change(room: Room, settings: Record<string, unknown>): Promise<() => Promise<unknown>> {
  const path = eventPath(room)
  const own = path ? await get<Record<string, any>>(path) : {}
  const ends = own.ramp?.length > 0 && 'total_active_users' in settings
  const ofEvent = Object.entries(settings).filter(([name]) => ends || own[name] != null)
  const steps: [string, Record<string, unknown>][] = []
  if (path && ofEvent.length) steps.push([path, { ...Object.fromEntries(ofEvent), ...(ends && { ramp: [] }) }])
  if (ofEvent.length < Object.keys(settings).length) steps.push([publishedPath(room), Object.fromEntries(Object.entries(settings).filter(([name]) => !ofEvent.some(([n]) => n === name)))])
  const back: (() => Promise<unknown>)[] = []
  for (const [at, part] of steps) {
    const was = at === path ? own : await get<Record<string, unknown>>(at)
    const made = await call<Record<string, unknown>>('PATCH', at, part)
    back.unshift(() => putBack(at, Object.fromEntries(Object.keys(part).map((name) => [name, was[name]])), made))
  }
  return async () => {
    for (const step of back) await step()
  }
}

/** One press each, asked once, and 30 seconds to take it back. */
export function Controls({ room }: { room: Room }) {
  const own = ownPath(room), was = room.controls, s = room.status
  const method = s?.in_force?.queueing_method ?? room.queueing_method
  const back = room.queueing_method === 'reject' ? 'fifo' : room.queueing_method
  const line = s ? s.waiting + s.dormant : 0
  const list: Control[] = [
    {
      title: 'Queue all', icon: 'hold', on: room.queue_all, setting: true, what: 'All new visitors wait',
      ask: 'Every visitor without a session waits, even if there is room. Active users stay.',
      start: () => patch(publishedPath(room), { queue_all: true }), stop: () => patch(publishedPath(room), { queue_all: false }),
    },
    {
      title: 'Pause', icon: 'pause', on: was.paused, what: 'Admit no new visitors, whatever the settings say',
      ask: 'No visitor is admitted until you resume. Active users stay, and visitors in the queue keep their places.',
      start: () => post(own + '/pause'), stop: () => lift(own, 'paused'),
    },
    {
      title: 'Drain', icon: 'drain', on: was.draining, what: 'Close the queue; admit the visitors in it',
      ask: `New visitors are turned away with a page that says so. The ${count(line, 'visitor')} in the queue ${line === 1 ? 'is' : 'are'} admitted within the limits.`,
      start: () => post(own + '/drain'), stop: () => lift(own, 'draining'),
    },
    {
      title: 'Reject', icon: 'stop', on: method === 'reject', setting: true, danger: true, what: 'Turn new visitors away when the room is full',
      ask: `There is no queue any more: when the room is full, new visitors are turned away.${line ? ` ${count(line, 'visitor is', 'visitors are')} waiting now: their pages say so, and continue when you undo this.` : ''}`,
      start: () => change(room, { queueing_method: 'reject' }), stop: () => change(room, { queueing_method: back }),
    },
  ]
  const press = async (c: Control) => {
    if (!c.on && !(await confirm({ title: `${c.title}: ${room.name}?`, body: <p>{c.ask}</p>, action: c.title, danger: c.danger }))) return
    const back = await (c.on ? c.stop() : c.start())
    done(c.on ? `${c.title} is off.` : `${c.title} is on.`, typeof back === 'function' ? back as () => Promise<unknown> : c.on ? c.start : c.stop)
  }
  const any = list.filter((c) => c.on)
  const locked = room.file && list.some((c) => c.setting)
  return (
    <Card title="Emergency" lead={any.length ? <>On now: {any.map((c) => c.title).join(', ')}</> : 'You confirm each action and can undo it for 30 seconds.'}>
      <div class="levers">
        {list.map((c) => (
          <button key={c.title} type="button" class={'lever' + (c.on ? ' on' : '') + (c.danger ? ' danger' : '')} aria-pressed={c.on} disabled={room.file && c.setting}
            onClick={() => press(c).catch((e) => tell((e as Error).message, 'bad'))}>
            <Icon name={c.on ? 'play' : c.icon} size={20} />
            <span class="title">{c.title}</span>
            <span class="what">{c.on ? 'On. Click to turn it off.' : c.what}</span>
          </button>
        ))}
      </div>
      {locked && <p class="quiet small">The configuration file sets Queue all and Reject for this room. Pause and Drain are available.</p>}
    </Card>
  )
}

// As the API bounds it, in characters.
const longest = 280

/** What the waiting page says to everybody in line. */
export function Message({ room }: { room: Room }) {
  const now = room.controls.message ?? ''
  const [text, set] = useState<string | null>(null)
  const own = ownPath(room), path = own + '/message'
  const write = (t: string) => (t ? put<Room['controls']>(path, { text: t }) : del<Room['controls']>(path))
  const send = async (t: string) => {
    const made = await write(t)
    set(null)
    done(t ? 'Visitors will see this at their next update.' : 'Message removed.', () => takeBack(own, 'message', made, () => write(now)))
  }
  const shown = text ?? now
  const left = longest - [...shown].length
  return (
    <Card title="Message to the queue">
      <TextArea label="Message" name="message" rows={3} value={shown} onChange={set} placeholder="We are restocking. Your place is kept." error={left < 0 ? `${number(-left)} characters too many` : undefined} help={`Plain text, shown on every waiting page. ${number(Math.max(0, left))} characters left.`} />
      <div class="actions">
        <Button kind="main" icon="message" disabled={left < 0 || text === null || text.trim() === now || !text.trim()} onClick={() => send(text!.trim())}>{now ? 'Change' : 'Show'}</Button>
        {now && <Button icon="cross" onClick={() => send('')}>Remove</Button>}
      </div>
    </Card>
  )
}

/** How many are left of what visitors wait for: the waiting page says it, and at 0 that it is sold out. */
export function Remaining({ room }: { room: Room }) {
  const now = room.controls.remaining ?? null
  const [n, set] = useState<number | null | undefined>(undefined)
  const own = ownPath(room), path = own + '/remaining'
  const write = (left: number | null) => (left === null ? del<Room['controls']>(path) : put<Room['controls']>(path, { remaining: left }))
  const send = async (left: number | null) => {
    if (left === 0 && !(await confirm({ title: `Sold out: ${room.name}?`, body: <p>No visitor without a session is admitted any more. The waiting page says that nothing is left, with your message to the queue. Active users stay.</p>, action: 'Sold out', danger: true }))) return
    const made = await write(left)
    set(undefined)
    done(left === null ? 'The waiting page no longer shows how many items are left.' : left === 0 ? 'The room is sold out.' : `The waiting page now shows ${count(left, 'item')} left.`, () => takeBack(own, 'remaining', made, () => write(now)))
  }
  const shown = n === undefined ? now : n
  return (
    <Card title="Items left" lead={now === 0 ? 'Sold out: no one new is admitted.' : undefined}>
      <div class="admit">
        <NumberField label="Still available" name="remaining" value={shown} onChange={set} min={0} max={1_000_000_000} />
        <Button icon="check" disabled={n === undefined || n === null || n === now || n < 0} onClick={() => send(n!)}>{now === null ? 'Show' : 'Change'}</Button>
        {now !== 0 && <Button kind="danger" icon="stop" onClick={() => send(0)}>Sold out</Button>}
        {now !== null && <Button icon="cross" onClick={() => send(null)}>{now === 0 ? 'Open again' : 'Remove'}</Button>}
      </div>
      <p class="quiet small">The waiting page shows the number, and warns visitors who have more people ahead of them than items are left. Your shop can count down with the API.</p>
    </Card>
  )
}

/** Turns for the first of the line, at once. */
export function Admit({ room }: { room: Room }) {
  const [n, set] = useState<number | null>(10)
  const s = room.status
  const line = s ? s.waiting + s.dormant : 0
  const admit = async () => {
    if (!(await confirm({ title: `Admit ${count(n!, 'visitor')}?`, body: <p>The next visitors in the queue are admitted now, even while the room is paused, but never beyond its limits. You cannot undo this.</p>, action: 'Admit' }))) return
    const { admitted } = await post<{ admitted: number }>(ownPath(room) + '/admit', { count: n })
    tell(admitted === 0 ? 'No visitors were admitted: none are waiting, or all slots are taken.' : `It is now the turn of ${count(admitted, 'visitor')}.`, admitted ? 'ok' : 'info')
  }
  return (
    <Card title="Admit visitors now">
      <div class="admit">
        <NumberField label="How many" name="count" value={n} onChange={set} min={1} max={1_000_000} />
        <Button icon="admit" disabled={!n || n < 1 || !line} onClick={admit}>Admit</Button>
      </div>
      <p class="quiet small">Within the limits, even while the room is paused. {line ? '' : 'No visitors are waiting.'}</p>
    </Card>
  )
}
