import { useState } from 'preact/hooks'
import type { PageProps } from '../core/page'
import { get, useAsk } from '../core/api'
import { full, moment, number } from '../core/format'
import { useRooms } from '../core/live'
import { setQuery } from '../core/router'
import { Button, Card, Empty, Failed, Head, Note, Skeleton, tell } from '../ui'
import { saveAs, telling } from './parts'
import './pages.css'

interface Entry {
  seq: number
  at: string
  actor: string
  token?: string
  address?: string
  request?: string
  operation: string
  zone?: string
  room?: string
  object?: string
  name?: string
  changes?: { field: string; before?: string; after?: string }[]
  omitted?: number
  hash: string
}

const size = 100
const path = '/anteroom/v1/audit'

/** Who changed what, the latest first. */
export function Audit({ query }: PageProps) {
  const asked = useAsk<Entry[]>(`${path}?last=${size}`, 15)
  const [older, add] = useState<Entry[]>([])
  const rooms = useRooms()
  const [checked, check] = useState<{ records: number; head: string } | { fault: string } | null>(null)
  if (asked.error && !asked.data) return <><Head title="Audit" /><Failed error={asked.error} retry={asked.reload} /></>
  if (!asked.data) return <><Head title="Audit" /><Skeleton lines={8} /></>

  const known = new Map([...older, ...asked.data].map((e) => [e.seq, e]))
  const records = [...known.values()].sort((a, b) => b.seq - a.seq)
  const words = (query.get('q') ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  const room = query.get('room')
  const shown = records.filter((e) => (!room || e.room === room) && words.every((w) => `${e.actor} ${e.operation} ${e.name ?? ''} ${e.address ?? ''} ${roomName(e)}`.toLowerCase().includes(w)))
  const first = records.at(-1)?.seq ?? 0
  function roomName(e: Entry) {
    return rooms.find((r) => r.id === e.room)?.name ?? ''
  }
  const more = async () => {
    const after = Math.max(0, first - 1 - size)
    add([...older, ...(await get<Entry[]>(`${path}?after=${after}&limit=${Math.min(size, first - 1 - after)}`))])
  }
  const verify = async () => {
    try {
      check(await get(`${path}/verify`))
    } catch (e) {
      check({ fault: (e as Error).message })
    }
  }
  return (
    <>
      <Head title="Audit" lead="Who changed what. The records form a chain, so that later edits can be detected.">
        <Button icon="check" onClick={verify}>Verify the chain</Button>
        <Button icon="download" onClick={() => { saveAs('audit.json', 'application/json', JSON.stringify(shown, null, 2)); tell(`${number(shown.length)} records saved`) }}>JSON</Button>
      </Head>
      {checked && ('fault' in checked
        ? <Note tone="bad" title="The chain is broken, or cannot be read">{checked.fault}</Note>
        : <Note tone="ok" title={`${number(checked.records)} records are unchanged`}>The last one has the hash <code>{checked.head}</code>. Keep it somewhere else to compare it later.</Note>)}
      <div class="row">
        <input type="search" class="filter" aria-label="Filter" placeholder="Filter: a name, an operation, an address" value={query.get('q') ?? ''} onInput={(e) => setQuery({ q: e.currentTarget.value || null }, { replace: true })} />
        {room && <Button small icon="cross" onClick={() => setQuery({ room: null })}>Only {rooms.find((r) => r.id === room)?.name ?? 'one room'}</Button>}
      </div>
      {!shown.length ? <Empty icon="audit" title={records.length ? 'No record matches' : 'No changes yet'}>{records.length ? `Of ${number(records.length)} loaded records.` : 'Every change is recorded, with who made it.'}</Empty> : (
        <Card flush>
          <ol class="audit">
            {shown.map((e) => (
              <li key={e.seq}>
                <details>
                  <summary>
                    <time dateTime={e.at} title={full(e.at)}>{moment(e.at)}</time>
                    <b>{e.actor}</b>
                    <code>{e.operation}</code>
                    <span class="what">{e.name}{e.room && roomName(e) && roomName(e) !== e.name && <span class="quiet"> in {roomName(e)}</span>}</span>
                    <span class="quiet fields-changed">{inShort(e)}</span>
                  </summary>
                  <div class="stack detail">
                    {e.changes?.length ? (
                      <dl class="pairs">
                        {e.changes.map((c) => (
                          <div key={c.field}>
                            <dt><code>{plain(c.field)}</code></dt>
                            <dd>{c.before && <><span class="unseen">before: </span><del>{c.before}</del></>}{c.before && c.after && ' → '}{c.after && <><span class="unseen">after: </span><ins>{c.after}</ins></>}</dd>
                          </div>
                        ))}
                      </dl>
                    ) : <p class="quiet">No fields are recorded.</p>}
                    {!!e.omitted && <p class="quiet">And {number(e.omitted)} more fields.</p>}
                    <dl class="pairs">
                      <div><dt>Record</dt><dd>{e.seq}, {full(e.at)}</dd></div>
                      {e.address && <div><dt>From</dt><dd>{e.address}</dd></div>}
                      {e.request && <div><dt>Request</dt><dd><code>{e.request}</code></dd></div>}
                      {e.object && <div><dt>Id</dt><dd><code>{e.object}</code></dd></div>}
                      <div><dt>Hash</dt><dd><code>{e.hash}</code></dd></div>
                    </dl>
                  </div>
                </details>
              </li>
            ))}
          </ol>
        </Card>
      )}
      {first > 1 && <div><Button onClick={more}>Older</Button></div>}
    </>
  )
}

const plain = (field: string) => field.replace(/^room\./, '')

function inShort(e: Entry): string {
  const names = (e.changes ?? []).map((c) => plain(c.field)).filter(telling)
  return names.slice(0, 3).join(', ') + (names.length > 3 ? ` and ${names.length - 3} more` : '')
}
