import { useState } from 'preact/hooks'
import { Problem, useAsk } from '../core/api'
import { waitUnder } from '../core/forecast'
import { clock, duration, number } from '../core/format'
import { live, type Room } from '../core/live'
import { Button, Card, done, NumberField } from '../ui'
import { change, eventPath } from './cockpit-controls'

/** The two limits, with what another value would mean for the wait. */
export function Limits({ room }: { room: Room }) {
  const s = room.status
  const now = { total: s?.total_active_users ?? room.total_active_users, pace: s?.new_users_per_minute ?? room.new_users_per_minute }
  const [draft, set] = useState<{ total: number | null; pace: number | null } | null>(null)
  const [error, fail] = useState<Problem | null>(null)
  const own = useAsk<{ ramp: unknown[] | null }>(eventPath(room))
  const d = draft ?? now
  const changed = draft != null && (d.total !== now.total || d.pace !== now.pace)
  const event = s?.in_force?.event
  const put = (part: Partial<typeof d>) => {
    fail(null)
    set({ ...d, ...part })
  }
  const apply = async () => {
    let back
    try {
      back = await change(room, { total_active_users: d.total, new_users_per_minute: d.pace })
    } catch (e) {
      if (e instanceof Problem && (e.fields.total_active_users || e.fields.new_users_per_minute)) return fail(e)
      throw e
    }
    set(null)
    own.reload()
    done(`Up to ${number(d.total)} active users and ${number(d.pace)} new users per minute.`, async () => { await back(); own.reload() })
  }
  const fields = error?.fields ?? {}
  return (
    <Card title="Limits" lead={event ? <>“{event.name}” is active: limits that it overrides change in the event.</> : undefined}>
      <Slide label="Active users" name="total_active_users" value={d.total} now={now.total} onChange={(total) => put({ total })} disabled={room.file} error={fields.total_active_users} />
      <Slide label="New users per minute" name="new_users_per_minute" value={d.pace} now={now.pace} onChange={(pace) => put({ pace })} disabled={room.file} error={fields.new_users_per_minute} />
      {room.file && <p class="quiet small">The configuration file defines this room: change its limits there.</p>}
      {changed && s && d.total != null && d.pace != null && (
        <div class="effect" role="status">
          <p>{effect(room, { total: d.total, pace: d.pace })}{!!own.data?.ramp?.length && ' This removes the ramp of the event.'}</p>
          <div class="actions">
            <Button kind="main" onClick={apply}>Apply</Button>
            <Button onClick={() => { set(null); fail(null) }}>Discard</Button>
          </div>
        </div>
      )}
    </Card>
  )
}

function effect(room: Room, d: { total: number; pace: number }): string {
  const s = room.status!
  if (d.total < s.active_users) {
    const more = s.active_users - d.total
    return `There are ${number(more)} more active users than that. They stay; no visitor is admitted until as many have left.`
  }
  if (!(s.waiting + s.dormant)) return 'No visitors are waiting: nothing changes for now.'
  const before = waitUnder(s, { total: s.total_active_users, pace: s.new_users_per_minute }), after = waitUnder(s, d)
  if (after == null) return 'No visitor would be admitted.'
  const at = clock(live.value.at + after)
  if (after === 0) return 'All visitors in the queue would be admitted right away.'
  const instead = before != null && Math.abs(before - after) > 2 ? `, instead of ${duration(before)}` : ', as now'
  return `A new visitor would wait about ${duration(after)}${instead}. The current queue would be empty at about ${at}.`
}

// The slider goes to three times what is in force; the field takes any number.
function Slide({ label, name, value, now, onChange, disabled, error }: { label: string; name: string; value: number | null; now: number; onChange: (v: number | null) => void; disabled: boolean; error?: string }) {
  const [most] = useState(() => Math.max(20, nice(now * 3)))
  const step = most >= 20_000 ? 100 : most >= 2000 ? 10 : 1
  return (
    <div class="slide">
      <NumberField label={label} name={name} value={value} onChange={onChange} min={0} disabled={disabled} error={error} />
      <input type="range" aria-label={`${label}, slider`} min={0} max={Math.max(most, value ?? 0)} step={step} value={value ?? 0} disabled={disabled} onInput={(e) => onChange(Number(e.currentTarget.value))} />
    </div>
  )
}

const nice = (n: number) => {
  const power = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, n))) - 1)
  return Math.ceil(n / power) * power
}
