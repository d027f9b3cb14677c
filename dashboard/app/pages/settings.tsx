import { useMemo, useState } from 'preact/hooks'
import { call, patch, Problem, putBack, useAsk } from '../core/api'
import { count, moment, number } from '../core/format'
import type { Room } from '../core/live'
import type { RoomPageProps } from '../core/page'
import { go } from '../core/router'
import { publishedPath, roomHref } from '../core/room'
import { may } from '../core/session'
import { Button, Card, Choice, Failed, Note, Skeleton } from '../ui/basic'
import { confirm, Dialog } from '../ui/dialog'
import { Named, Names, TextArea, Toggle } from '../ui/field'
import { curl } from '../core/curl'
import { Snippet } from '../ui/snippet'
import { done, tell } from '../ui/toast'
import { Input } from './inputs'
import { changes, patchOf } from './model/diff'
import { groups, inForce, roomFields, valueOf, type Values, withValue } from './model/fields'
import { roomInTerraform } from './model/snippet'
import { Changes, editable, useUnsaved, WhyNot } from './parts'
import './pages.css'

/** Every setting of a room, with what will change shown before it is written. */
export function Settings({ room }: RoomPageProps) {
  const path = publishedPath(room)
  const asked = useAsk<Values>(path)
  const [edited, edit] = useState<Values | null>(null)
  const [faults, fault] = useState<Record<string, string>>({})
  const [view, show] = useState<'form' | 'json'>('form')
  const [reviewing, review] = useState(false)
  const [shown, anew] = useState(0) // the JSON is written anew with each

  const saved = asked.data
  const now = edited ?? saved
  const list = useMemo(() => (saved && edited ? changes(roomFields, saved, edited) : []), [saved, edited])
  useUnsaved(list.length > 0)

  if (asked.error && !saved) return <Failed error={asked.error} retry={asked.reload} />
  if (!saved || !now) return <Skeleton lines={8} />
  const fixed = !editable(room)

  const save = async () => {
    try {
      const a = await call<Values>('PATCH', path, patchOf(list), { ifMatch: asked.etag })
      const back = patchOf(list.map((c) => ({ ...c, after: c.before })))
      asked.put(a.result, a.etag)
      edit(null)
      anew((n) => n + 1)
      fault({})
      review(false)
      done(`${count(list.length, 'setting')} of ${room.name} saved`, async () => {
        const undone = await putBack<Values>(path, back, a)
        asked.put(undone.result, undone.etag)
      })
      // Its page is at another address when it has another name.
      if (a.result.name !== room.name) go(roomHref({ ...room, name: a.result.name }, 'settings'), { replace: true })
    } catch (e) {
      review(false)
      if (!(e instanceof Problem)) throw e
      if (e.status === 412) {
        // What they changed stays: only what was changed here is put over it.
        const fresh = await call<Values>('GET', path)
        edit(list.reduce((v, c) => withValue(v, c.name, c.after), fresh.result))
        anew((n) => n + 1)
        asked.put(fresh.result, fresh.etag)
        tell('Someone else changed this room. Your changes are still here: review them and save again.', 'bad')
        return
      }
      fault(e.fields)
      tell(e.message, 'bad')
    }
  }

  return (
    <>
      <div class="row between">
        <div class="actions">
          <Choice small label="View" value={view} onChange={show} options={[{ value: 'form', text: 'Form' }, { value: 'json', text: 'JSON' }]} />
          {view === 'form' && <Names />}
        </div>
        {saved.modified_on && <p class="quiet">Changed {moment(saved.modified_on)}{may('admin') && <>, <a href={`/audit?room=${room.id}`}>by whom?</a></>}</p>}
      </div>
      <WhyNot room={room} />
      {view === 'json'
        ? <Text key={shown} values={now} fixed={fixed} onChange={edit} />
        : groups.map((g) => (
          <Card key={g} title={g}>
            <div class="fields">
              {roomFields.filter((f) => f.group === g && inForce(f.name, now)).map((f) => f.kind === 'html'
                ? <Own key={f.name} room={room} text={now.custom_page_html} />
                : (
                  <Input key={f.name} field={f} value={valueOf(now, f.name)} error={faults[f.name] ?? (f.kind === 'routes' || f.kind === 'lanes' ? under(faults, f.name) : undefined)} disabled={fixed}
                    onChange={(v) => { edit((x) => withValue(x ?? saved, f.name, v)); fault((x) => ({ ...x, [f.name]: '' })) }} />
                ))}
            </div>
          </Card>
        ))}
      {list.length > 0 && (
        <div class="savebar" role="region" aria-label="Unsaved changes">
          <span>{count(list.length, 'change')} not saved</span>
          <Button kind="quiet" onClick={() => { edit(null); fault({}); anew((n) => n + 1) }}>Discard</Button>
          <Button kind="main" onClick={() => review(true)}>Review and save</Button>
        </div>
      )}
      {reviewing && (
        <Dialog wide title={`Save ${count(list.length, 'change')} of ${room.name}?`} onClose={() => review(false)}
          actions={<><Button onClick={() => review(false)}>Keep editing</Button><Button kind="main" onClick={save}>Save</Button></>}>
          <Changes list={list} />
          <h3>This change as code</h3>
          <Snippet parts={[
            { title: 'curl', text: curl('PATCH', path, patchOf(list)) },
            { title: 'Terraform', text: roomInTerraform(room.zone.id, now) },
            { title: 'JSON', text: JSON.stringify(patchOf(list), null, 2) },
          ]} />
        </Dialog>
      )}
      {view === 'form' && <Zone room={room} />}
      {!fixed && view === 'form' && <Remove room={room} />}
    </>
  )
}

/** The first fault of a member's parts. */
const under = (faults: Record<string, string>, name: string) => Object.entries(faults).find(([k, v]) => v && (k.startsWith(name + '.') || k.startsWith(name + '[')))?.[1]

function Own({ room, text }: { room: Room; text: string }) {
  return (
    <div class="field">
      <div class="label"><span>Custom page</span><Named name="custom_page_html" /></div>
      <p class="help">{text ? `${number(new Blob([text]).size)} bytes.` : 'None: visitors see the built-in page.'} <a href={roomHref(room, 'template')}>Open the template editor</a></p>
    </div>
  )
}

const readOnly = ['id', 'created_on', 'modified_on', 'next_event_prequeue_start_time', 'next_event_start_time']

/** The room as the API has it. */
function Text({ values, fixed, onChange }: { values: Values; fixed: boolean; onChange: (v: Values) => void }) {
  const [text, set] = useState(() => JSON.stringify(Object.fromEntries(Object.entries(values).filter(([k]) => !readOnly.includes(k))), null, 2))
  const [error, fail] = useState('')
  return (
    <Card title="JSON of the API">
      <TextArea mono rows={34} label="Room" disabled={fixed} value={text} error={error} help="The form follows what you type here." onChange={(t) => {
        set(t)
        try {
          const v = JSON.parse(t)
          if (!v || typeof v !== 'object' || Array.isArray(v)) throw new Error('a room is an object')
          fail('')
          onChange({ ...values, ...v })
        } catch (e) {
          fail((e as Error).message)
        }
      }} />
    </Card>
  )
}

function Zone({ room }: { room: Room }) {
  const path = `/anteroom/v1/zones/${room.zone.id}`
  const zone = useAsk<{ search_engine_crawler_bypass: boolean }>(path)
  if (!zone.data) return null
  const change = async (on: boolean) => {
    try {
      zone.put(await patch(path, { search_engine_crawler_bypass: on }))
      done(`Search-engine crawlers ${on ? 'bypass rooms' : 'wait'} in ${room.zone.name}`, async () => zone.put(await patch(path, { search_engine_crawler_bypass: !on })))
    } catch (e) {
      tell((e as Error).message, 'bad')
    }
  }
  return (
    <Card title={`Zone ${room.zone.name}`} lead="Applies to all rooms of the zone, immediately.">
      <Toggle label="Verified search-engine crawlers bypass rooms" name="search_engine_crawler_bypass" value={zone.data.search_engine_crawler_bypass} disabled={!may('edit', room.zone.id)} onChange={change}
        help="Crawlers that cannot be verified wait as usual." />
    </Card>
  )
}

function Remove({ room }: { room: Room }) {
  const remove = async () => {
    const yes = await confirm({
      title: `Delete ${room.name}?`, danger: true, typed: room.name, action: 'Delete the room',
      body: <p>This deletes its settings, events, rules and queue. Visitors then reach the origin without waiting.</p>,
    })
    if (!yes) return
    await call('DELETE', publishedPath(room))
    tell(`${room.name} deleted`)
    go('/')
  }
  return (
    <Card title="Delete this room">
      <Note tone="warn" action={<Button kind="danger" icon="trash" disabled={!may('edit', room.zone.id)} onClick={remove}>Delete…</Button>}>
        Visitors then reach the origin without waiting. To turn the room off for a while, suspend it instead.
      </Note>
    </Card>
  )
}
