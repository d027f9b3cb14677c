import { useState } from 'preact/hooks'
import { call, callAsShown, Problem, putBack } from '../core/api'
import { duration, full } from '../core/format'
import { shownZone } from '../core/kept'
import type { Room } from '../core/live'
import { publishedPath } from '../core/room'
import { Button, Card, Choice, curl, Dialog, done, Named, Names, Note, SelectField, NumberField, Snippet, tell, TextField, Toggle } from '../ui'
import { Checklist } from './checklist'
import { Input } from './inputs'
import { inWords, same } from './model/diff'
import { bodyOf, faults as wrongs, fromLocal, gathering, gathers, labelOf, lasting, presets, sideBySide, startingAt, toLocal, rampText, readRamp } from './model/event'
import { eventFields, type Field, type Values } from './model/fields'
import { eventInTerraform } from './model/snippet'
import { useUnsaved } from './parts'

interface Props {
  room: Room
  settings: Values // of the room
  event: Values
  /** The event as it is; none for a new one. */
  before?: Values
  others: readonly Values[]
  fixed: boolean
  onClose: () => void
  onSaved: () => void
  /** The event is not as before any more, but as now. */
  onConflict: (now: Values) => void
}

/** An event: when, what it has instead of the room's settings, and both side by side. */
export function EventForm({ room, settings, event, before, others, fixed, onClose, onSaved, onConflict }: Props) {
  const [e, set] = useState<Values>(event)
  const [told, tellFaults] = useState<Record<string, string>>({})
  const [reviewing, review] = useState(false)
  const [touched, touch] = useState(!!before)
  const [folded, fold] = useState(() => !sideBySide(settings, event).some((x) => x.own))
  const here = wrongs(e, others.filter((o) => o.id !== e.id))
  const wrong = (name: string) => told[name] || (touched ? here[name] : undefined)
  const changed = !before || !same(bodyOf(e), bodyOf(before))
  useUnsaved(changed && touched)
  const put = (v: Values) => { set((x) => ({ ...x, ...v })); tellFaults({}); touch(true) }
  const body = bodyOf(e, before)
  const path = publishedPath(room) + '/events' + (before ? `/${before.id}` : '')
  const method = before ? 'PATCH' : 'POST'

  const save = async () => {
    try {
      const saved = await (before ? callAsShown<Values>(method, path, before, body) : call<Values>(method, path, body))
      review(false)
      onSaved()
      if (before) done(`${e.name} saved`, async () => { await putBack<Values>(path, bodyOf(before, e), saved); onSaved() })
      else done(`${e.name} scheduled`, async () => { await call('DELETE', `${path}/${saved.result.id}`, undefined, { ifMatch: saved.etag }); onSaved() })
    } catch (x) {
      review(false)
      if (!(x instanceof Problem)) throw x
      if (x.now) {
        // What they changed stays: only what was changed here is put over it.
        set({ ...x.now, ...body })
        onConflict(x.now as Values) // before the next save, which compares with it
        tell('Someone else changed this event. Your changes are still here: review them and save again.', 'bad')
        return
      }
      tellFaults(x.fields)
      tell(x.message, 'bad')
    }
  }
  const toReview = () => {
    touch(true)
    if (Object.keys(here).length) tell('Please correct: ' + Object.entries(here).map(([k, v]) => `${labelOf(k)}: ${v}`).join('; '), 'bad')
    else review(true)
  }
  const at = (name: string, label: string, help: string, required = false) => (
    <TextField label={label} name={name} help={`${help}${e[name] ? ` ${full(e[name])}.` : ''}`} type="datetime-local" required={required} disabled={fixed} value={toLocal(e[name])} error={wrong(name)} onChange={(v) => put(name === 'event_start_time' ? startingAt(e, fromLocal(v)) : { [name]: fromLocal(v) })} />
  )
  const gather = gathers(e)
  const preset = presets.find((p) => p.gather === gather && p.shuffle === !!e.shuffle_at_event_start)
  const length = (Date.parse(e.event_end_time) - Date.parse(e.event_start_time)) / 60_000
  const own = sideBySide(settings, e).filter((x) => x.own)

  return (
    <form class="stack" onSubmit={(x) => { x.preventDefault(); toReview() }}>
      <div class="row between">
        <Button kind="quiet" icon="left" onClick={onClose}>All events</Button>
        <div class="actions">
          <Names />
          {!fixed && <Button kind="main" type="submit" disabled={!changed}>Review and {before ? 'save' : 'schedule'}</Button>}
        </div>
      </div>
      {before && <Checklist room={room} event={before.id} />}
      <Card title={before ? `Event ${before.name}` : 'New event'} lead={`Times are in the time zone ${shownZone()} and stored as UTC.`}>
        {!fixed && !before && (
          <>
            <Choice small label="Kind of event" value={preset?.value ?? ''} options={presets} onChange={(v) => {
              const p = presets.find((x) => x.value === v)!
              put({ shuffle_at_event_start: p.shuffle, ...gathering(e, p.gather) })
              if (!p.gather) fold(false)
            }} />
            <p class="quiet">{preset?.help ?? 'None of these: your own settings.'}</p>
          </>
        )}
        <div class="fields">
          <TextField label="Name" name="name" required disabled={fixed} value={e.name} error={wrong('name')} help="Letters, digits, _ and -; unique in the room." onChange={(v) => put({ name: v })} />
          <TextField label="Description" name="description" disabled={fixed} value={e.description ?? ''} error={wrong('description')} onChange={(v) => put({ description: v })} />
        </div>
        <div class="fields">
          {at('event_start_time', 'Start', 'Admissions begin.', true)}
          {at('event_end_time', 'End', 'The settings of the room apply again.', true)}
        </div>
        {!fixed && (
          <Choice small label="Length" value={String(length)} options={[60, 120, 240, 480, 1440].map((m) => ({ value: String(m), text: `${duration(m * 60)} long` }))}
            onChange={(m) => put(lasting(e, Number(m)))} />
        )}
      </Card>
      <Card title="Before the start" lead="During a prequeue, every visitor without a session waits, and the page counts down to the start.">
        {!fixed && (
          <Choice small label="Prequeue" value={String(gather)} options={[...new Set([0, 5, 15, 30, 60, gather])].sort((a, b) => a - b).map((m) => ({ value: String(m), text: m ? duration(m * 60) : 'None' }))}
            onChange={(m) => put(gathering(e, Number(m)))} />
        )}
        <div class="fields">
          {at('prequeue_start_time', 'Prequeue', 'At least five minutes before the start. Empty: no prequeue.')}
          <Toggle label="Shuffle at the start" name="shuffle_at_event_start" disabled={fixed || !e.prequeue_start_time} error={wrong('shuffle_at_event_start')} value={!!e.shuffle_at_event_start} onChange={(v) => put({ shuffle_at_event_start: v })}
            help="Visitors who are waiting at the start get random places, which anyone can verify. Later visitors queue behind them." />
          <Toggle label="Suspended" name="suspended" disabled={fixed} value={!!e.suspended} onChange={(v) => put({ suspended: v })} help="The event has no effect, even while it runs." />
        </div>
        {e.shuffle_at_event_start && (e.queueing_method ?? settings.queueing_method) === 'random' && <Note tone="warn">With the queueing method random, a shuffle has no effect: the order is always random.</Note>}
        {gather > 0 && gather <= Number(e.session_duration ?? settings.session_duration) && <Note>Visitors who have a session when the prequeue begins stay active. To let them wait like the others, make the prequeue longer than a session, and let sessions end after their duration.</Note>}
      </Card>
      <Card title="During the event" lead="Settings that you do not override are inherited from the room.">
        <details class="overrides" open={!folded || eventFields.some((f) => wrong(f.name))} onToggle={(x) => fold(!x.currentTarget.open)}>
          <summary>{own.length ? `Different from the room: ${own.map((x) => x.field.label).join(', ')}` : 'Everything as in the room. Open to set other limits, methods or pages.'}</summary>
          <div class="stack">
            {eventFields.map((f) => <Override key={f.name} field={f} e={e} settings={settings} fixed={fixed} error={wrong(f.name)} put={put} />)}
          </div>
        </details>
      </Card>
      <Ramp e={e} fixed={fixed} put={put} error={Object.entries(told).find(([k]) => k.startsWith('ramp'))?.[1]} />
      <Again e={e} fixed={fixed} put={put} error={told.repeat ?? Object.entries(told).find(([k]) => k.startsWith('repeat.'))?.[1]} />
      {reviewing && (
        <Dialog wide title={`${before ? 'Save' : 'Schedule'} ${e.name}?`} onClose={() => review(false)}
          actions={<><Button onClick={() => review(false)}>Keep editing</Button><Button kind="main" onClick={save}>{before ? 'Save' : 'Schedule'}</Button></>}>
          <dl class="moments">
            {e.prequeue_start_time && <div><dt>Prequeue</dt><dd>{full(e.prequeue_start_time)}</dd></div>}
            <div><dt>Starts</dt><dd>{full(e.event_start_time)}{e.shuffle_at_event_start && ', in random order'}</dd></div>
            <div><dt>Ends</dt><dd>{full(e.event_end_time)}, after {duration((Date.parse(e.event_end_time) - Date.parse(e.event_start_time)) / 1000)}</dd></div>
          </dl>
          <Side settings={settings} e={e} />
          <h3>As code</h3>
          <Snippet parts={[
            { title: 'curl', text: curl(method, path, body) },
            { title: 'Terraform', text: eventInTerraform(room.zone.id, room.id, e) },
            { title: 'JSON', text: JSON.stringify(body, null, 2) },
          ]} />
        </Dialog>
      )}
    </form>
  )
}

const short = (f: Field, v: unknown) => (f.kind === 'html' ? (v ? `${new Blob([String(v)]).size} bytes` : 'built-in page') : inWords(v) + (f.unit && v != null ? ` ${v === 1 ? f.unit.replace(/s$/, '') : f.unit}` : ''))

/** Room and event side by side, as the review has them. */
function Side({ settings, e }: { settings: Values; e: Values }) {
  return (
    <table class="table dense side-by-side">
      <caption class="unseen">The settings of the room and of the event</caption>
      <thead><tr><th scope="col">Setting</th><th scope="col">Room</th><th scope="col">Event</th></tr></thead>
      <tbody>
        {sideBySide(settings, e).map(({ field, room, own, value }) => (
          <tr key={field.name} class={own ? 'own' : undefined}>
            <th scope="row">{field.label}</th>
            <td>{short(field, room)}</td>
            <td>{own ? <b>{short(field, value)}</b> : <span class="quiet">{short(field, value)} (inherited)</span>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

const pair: Record<string, string> = { total_active_users: 'new_users_per_minute', new_users_per_minute: 'total_active_users' }

function Override({ field: f, e, settings, fixed, error, put }: { field: Field; e: Values; settings: Values; fixed: boolean; error?: string; put: (v: Values) => void }) {
  const own = e[f.name] !== null && e[f.name] !== undefined
  const turn = (on: boolean) => {
    const v: Values = { [f.name]: on ? settings[f.name] : null }
    // The two limits are set together or not at all.
    const other = pair[f.name]
    if (other) v[other] = on ? e[other] ?? settings[other] : null
    put(v)
  }
  return (
    <div class={'override' + (own ? ' own' : '')}>
      <Choice small label={f.label} value={own ? 'own' : 'inherit'} options={[{ value: 'inherit', text: 'Inherit' }, { value: 'own', text: 'Override' }]} onChange={(v) => !fixed && turn(v === 'own')} />
      {own
        ? <Input field={{ ...f, required: false }} value={e[f.name]} disabled={fixed} error={error} onChange={(v) => put({ [f.name]: v })} />
        : <p><b>{f.label}</b> <Named name={f.name} /><span class="below quiet">{short(f, settings[f.name])}, from the room</span>{error && <span class="below bad">{error}</span>}</p>}
    </div>
  )
}

function Ramp({ e, fixed, put, error }: { e: Values; fixed: boolean; put: (v: Values) => void; error?: string }) {
  const [text, write] = useState(rampText(e.ramp))
  const steps = readRamp(text)
  return (
    <Card title="Ramp" lead="Let the limits rise after the start, so that the application warms up. The event's own limits hold before the first step, and no step may be above them.">
      <div class="fields">
        <TextField label="Steps" name="ramp" disabled={fixed} value={text} error={error ?? (steps ? undefined : 'Write steps like 0s 100, 10m 300')} help="Time since the start and new users per minute, and after a slash active users: 0s 100, 10m 300, 30m 500/2000. 10m+15m 300 takes 15 minutes, along an S curve. Empty: no ramp."
          onChange={(v) => { write(v); const read = readRamp(v); if (read) put({ ramp: read }) }} />
      </div>
    </Card>
  )
}

function Again({ e, fixed, put, error }: { e: Values; fixed: boolean; put: (v: Values) => void; error?: string }) {
  const r: Values | null = e.repeat ?? null
  const set = (v: Values) => put({ repeat: { every: 'week', interval: 1, times: null, until: null, time_zone: shownZone(), ...r, ...v } })
  return (
    <Card title="Repetition" lead="Clients of the published API see only the first occurrence; their changes keep the repetition.">
      <div class="fields">
        <SelectField label="Repeat" name="repeat" disabled={fixed} error={error} value={r?.every ?? ''} options={[{ value: '', text: 'Never' }, { value: 'day', text: 'Every day' }, { value: 'week', text: 'Every week' }]} onChange={(v) => (v ? set({ every: v }) : put({ repeat: null }))} />
        {r && (
          <>
            <NumberField label={`Interval in ${r.every}s`} name="repeat.interval" disabled={fixed} min={1} max={366} value={r.interval || 1} onChange={(v) => set({ interval: v ?? 1 })} />
            <NumberField label="Number of times" name="repeat.times" help="Including the first. Empty: no end." disabled={fixed} min={1} max={1000} value={r.times || null} onChange={(v) => set({ times: v })} />
            <TextField label="Until" name="repeat.until" type="datetime-local" disabled={fixed} value={toLocal(r.until)} onChange={(v) => set({ until: fromLocal(v) })} />
            <TextField label="Time zone" name="repeat.time_zone" help="The event keeps its time of day in this zone, also when the clocks change." disabled={fixed} value={r.time_zone ?? ''} onChange={(v) => set({ time_zone: v || null })} />
          </>
        )}
      </div>
    </Card>
  )
}
