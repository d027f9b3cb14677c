import { useState } from 'preact/hooks'
import type { PageProps } from '../core/page'
import { call, post, Problem, useAsk } from '../core/api'
import { ago, full, moment } from '../core/format'
import { useRooms } from '../core/live'
import { useSession, type Permission } from '../core/session'
import { Button, Card, Choice, confirm, curl, Dialog, Empty, Failed, Head, Note, Pill, SelectField, Skeleton, Snippet, Table, tell, TextField } from '../ui'
import { deeds, ShownOnce, useList } from './parts'
import './pages.css'

interface Grant {
  permission: Permission
  zone: string | null
  room: string | null
}

interface Token {
  id: string
  name: string
  grants: Grant[]
  networks: string[]
  created_on: string
  created_by: string
  expires_on: string | null
  last_used_on: string | null
  secrets: { prefix: string; created_on: string; expires_on: string | null }[]
}

interface Fresh extends Token {
  secret: string
  auth_key: string
}

const path = '/anteroom/v1/tokens'
const soon = 14 * 86_400_000

/** Who may do what: the API tokens, which are the logins, too. */
export function Tokens(_: PageProps) {
  const tokens = useList<Token>(path)
  const me = useSession()
  const rooms = useRooms()
  const zones = useAsk<{ id: string; name: string }[]>('/anteroom/v1/zones?per_page=1000')
  const [making, make] = useState(false)
  const [fresh, show] = useState<Fresh | null>(null)
  if (tokens.error) return <><Head title="Tokens" /><Failed error={tokens.error} retry={tokens.reload} /></>
  const named = (g: Grant) => {
    const room = g.room && rooms.find((r) => r.id === g.room)
    const where = room ? `${room.name} (${room.zone.name})` : g.room ? `room ${g.room.slice(0, 8)}…` : g.zone ? zones.data?.find((z) => z.id === g.zone)?.name ?? `zone ${g.zone.slice(0, 8)}…` : 'everything'
    return `${g.permission}: ${where}`
  }
  const rotate = (t: Token) => async () => {
    if (!(await confirm({ title: `Rotate the secret of ${t.name}?`, action: 'Rotate', body: <p>The current secret stays valid for a day, so that you can replace it where it is used.</p> }))) return
    show(await post<Fresh>(`${path}/${t.id}/rotate`, { overlap_seconds: 86400 }))
    tokens.reload()
  }
  const remove = (t: Token) => async () => {
    const mine = t.id === me?.token
    if (!(await confirm({ title: `Delete ${t.name}?`, danger: true, typed: t.name, action: 'Delete the token', body: <p>{mine ? 'You are logged in with this token: deleting it ends your session. ' : ''}Requests with this token are refused from now on. You cannot undo this.</p> }))) return
    await call('DELETE', `${path}/${t.id}`)
    tell(`${t.name} deleted`)
    tokens.reload()
  }
  return (
    <>
      <Head title="Tokens" lead="People log in with a token, and programs use one. Secrets are shown only once.">
        <Button kind="main" icon="plus" onClick={() => make(true)}>New token</Button>
      </Head>
      {!tokens.data ? <Skeleton lines={5} /> : !tokens.data.length ? (
        <Empty icon="token" title="No tokens" action={<Button kind="main" onClick={() => make(true)}>New token</Button>}>Your own token comes from the environment of the server. Give each person and program a separate token, so that the audit log shows who did what.</Empty>
      ) : (
        <Card flush>
          <Table caption="Tokens" rows={tokens.data} id={(t) => t.id} columns={[
            { title: 'Name', name: true, by: (t) => t.name, cell: (t) => <><b>{t.name}</b>{t.id === me?.token && <span class="below quiet">you</span>}<span class="below quiet">by {t.created_by}, {moment(t.created_on)}</span></> },
            { title: 'Permissions', cell: (t) => t.grants.map((g) => <span key={named(g)} class="block">{named(g)}</span>) },
            { title: 'Networks', wide: true, cell: (t) => t.networks.join(', ') || 'any' },
            { title: 'Expires', by: (t) => t.expires_on ?? '9', cell: (t) => <Ends at={t.expires_on} /> },
            { title: 'Last used', by: (t) => t.last_used_on ?? '', cell: (t) => (t.last_used_on ? <span title={full(t.last_used_on)}>{ago(t.last_used_on)}</span> : <span class="quiet">not since the start</span>) },
            { title: 'Secret', wide: true, cell: (t) => t.secrets.map((s) => <code key={s.prefix} class="block">{s.prefix}…{s.expires_on && ` until ${moment(s.expires_on)}`}</code>) },
            { title: deeds, cell: (t) => (
              <div class="actions end">
                <Button small kind="quiet" icon="refresh" label={`Rotate the secret of ${t.name}`} onClick={rotate(t)} />
                <Button small kind="quiet" icon="trash" label={`Delete ${t.name}`} onClick={remove(t)} />
              </div>
            ) },
          ]} />
        </Card>
      )}
      {making && <Make zones={zones.data ?? []} rooms={rooms} onClose={() => make(false)} onMade={(t) => { make(false); show(t); tokens.reload() }} />}
      {fresh && (
        <ShownOnce title={`The secret of ${fresh.name}`} saved="I have saved it" onClose={() => show(null)}>
          <Note tone="warn">This secret is shown only once. Anteroom keeps a hash of it.</Note>
          <Snippet parts={[
            { title: 'Secret', text: fresh.secret },
            { title: 'Shell', text: `export TOKEN=${fresh.secret}\n${curl('GET', '/client/v4/user/tokens/verify')}` },
            { title: 'Terraform', text: `provider "cloudflare" {\n  base_url  = "${location.origin}/client/v4"\n  api_token = "${fresh.secret}"\n}` },
            { title: 'X-Auth-Key', text: fresh.auth_key },
          ]} />
        </ShownOnce>
      )}
    </>
  )
}

function Ends({ at }: { at: string | null }) {
  if (!at) return <span class="quiet">never</span>
  const left = Date.parse(at) - Date.now()
  return left < 0 ? <Pill tone="bad">Expired</Pill> : <span title={full(at)}>{left < soon && <Pill tone="busy">Soon</Pill>} {ago(at)}</span>
}

const roles: { value: Permission; text: string; help: string }[] = [
  { value: 'scrape', text: 'Metrics', help: 'Can read /metrics and /-/status, and nothing else: for Prometheus.' },
  { value: 'read', text: 'Viewer', help: 'Can see rooms, figures and settings.' },
  { value: 'edit', text: 'Operator', help: 'Can also change rooms, events and rules, and control the queue.' },
  { value: 'admin', text: 'Admin', help: 'Can do everything, including tokens, keys, the audit log and backups.' },
]

function Make({ zones, rooms, onClose, onMade }: { zones: { id: string; name: string }[]; rooms: ReturnType<typeof useRooms>; onClose: () => void; onMade: (t: Fresh) => void }) {
  const [name, entitle] = useState('')
  const [role, give] = useState<Permission>('read')
  const [where, at] = useState('')
  const [days, last] = useState('90')
  const [from, come] = useState('')
  const [faults, fault] = useState<Record<string, string>>({})
  const [kind, id] = where.split(':')
  const limited = role === 'read' || role === 'edit'
  const make = async () => {
    const body = {
      name,
      grants: [{ permission: role, ...(limited && kind === 'zone' && { zone: id }), ...(limited && kind === 'room' && { zone: rooms.find((r) => r.id === id)?.zone.id, room: id }) }],
      networks: from.split(/[\s,]+/).filter(Boolean),
      expires_on: days === '0' ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString(),
    }
    try {
      onMade(await post<Fresh>(path, body))
    } catch (e) {
      if (!(e instanceof Problem)) throw e
      fault(e.fields)
      tell(e.message, 'bad')
    }
  }
  return (
    <Dialog title="New token" onClose={onClose} actions={<><Button onClick={onClose}>Cancel</Button><Button kind="main" disabled={!name.trim()} onClick={make}>Create token</Button></>}>
      <TextField label="Name" name="name" required autofocus maxLength={64} value={name} error={faults.name} help="Name of the person or program, as the audit log shows it." onChange={entitle} />
      <div class="field">
        <div class="label"><span>Role</span><code>grants</code></div>
        <Choice label="Role" value={role} onChange={give} options={roles} />
        <p class="help">{roles.find((r) => r.value === role)!.help}</p>
        {Object.entries(faults).find(([k]) => k.startsWith('grants')) && <p class="error">{Object.entries(faults).find(([k]) => k.startsWith('grants'))![1]}</p>}
      </div>
      {limited && (
        <SelectField label="Where" value={where} onChange={at} options={[{ value: '', text: 'Everywhere' }, ...zones.map((z) => ({ value: `zone:${z.id}`, text: `Zone ${z.name}` })), ...rooms.map((r) => ({ value: `room:${r.id}`, text: `Room ${r.name} (${r.zone.name})` }))]} />
      )}
      <SelectField label="Expires after" name="expires_on" value={days} error={faults.expires_on} onChange={last} options={[{ value: '1', text: 'a day' }, { value: '7', text: 'a week' }, { value: '30', text: '30 days' }, { value: '90', text: '90 days' }, { value: '365', text: 'a year' }, { value: '0', text: 'never' }]} />
      <TextField label="Networks" name="networks" value={from} error={faults.networks ?? Object.entries(faults).find(([k]) => k.startsWith('networks'))?.[1]} placeholder="192.0.2.0/24" help="Addresses and networks that may use the token. Empty: any." onChange={come} />
    </Dialog>
  )
}
