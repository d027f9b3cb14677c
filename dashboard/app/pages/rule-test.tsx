import { useEffect, useState } from 'preact/hooks'
import { post } from '../core/api'
import type { Room } from '../core/live'
import { Note, Pill, TextArea, TextField } from '../ui'
import { requestOf } from './model/rule'

export interface Tried {
  valid: boolean
  matches: boolean | null
  exhausted: boolean
  wide: boolean
  error: { message: string; fix: string; position: number | null } | null
  readings: { path: string; matches: boolean }[]
  fields: Record<string, string | number | boolean>
}

export interface Asking {
  text: string
  ip: string
  country: string
}

const host = (room: Room) => (room.routes[0].host === '*' ? 'example.com' : room.routes[0].host)

/** The request that rules are tried with, as the person writes it. */
export function useRequest(room: Room) {
  const [value, set] = useState<Asking>({ text: `https://${host(room)}${room.routes[0].path}`, ip: '', country: '' })
  return { value, set, room }
}

export type RequestState = ReturnType<typeof useRequest>

const described = (a: Asking) => {
  const r = requestOf(a.text)
  return { method: r.method, url: r.url, headers: r.headers, ...(a.ip.trim() && { ip: a.ip.trim() }), ...(a.country.trim() && { country: a.country.trim() }) }
}

/** What an expression would do with a request. */
export const tryRule = (expression: string, room: string, a: Asking) => post<Tried>('/anteroom/v1/rules/test', { expression, room, request: described(a) })

export function Request({ value, set }: RequestState) {
  return (
    <div class="stack">
      <TextArea mono rows={4} label="Request" value={value.text} onChange={(text) => set({ ...value, text })} placeholder={'curl \'https://shop.example.com/\' -H \'User-Agent: …\''} />
      <div class="fields">
        <TextField label="Address of the visitor" value={value.ip} placeholder="192.0.2.1" onChange={(ip) => set({ ...value, ip })} />
        <TextField label="Country" help="Overrides the country of the address." value={value.country} placeholder="DE" onChange={(country) => set({ ...value, country })} />
      </div>
    </div>
  )
}

/** What comes of an expression, asked shortly after the last key. */
export function useTried(expression: string, room: string, a: Asking): { tried?: Tried; error?: string } {
  const [answer, set] = useState<{ tried?: Tried; error?: string }>({})
  useEffect(() => {
    if (!expression.trim()) return set({})
    let gone = false
    const timer = setTimeout(() => tryRule(expression, room, a).then((tried) => !gone && set({ tried }), (e) => !gone && set((s) => ({ ...s, error: (e as Error).message }))), 300)
    return () => {
      gone = true
      clearTimeout(timer)
    }
  }, [expression, room, a.text, a.ip, a.country])
  return answer
}

export function Outcome({ expression, tried, error }: { expression: string; tried?: Tried; error?: string }) {
  if (error) return <Note tone="bad" title="This request cannot be tested">{error}</Note>
  if (!tried) return <p class="quiet">Write an expression to see what it does.</p>
  if (!tried.valid) return <Invalid expression={expression} {...tried.error!} />
  return (
    <div class="stack" role="status">
      <p class="verdict"><Pill tone={tried.matches ? 'ok' : 'off'}>{tried.matches ? 'Match: the request bypasses the room' : 'No match: the room decides as usual'}</Pill></p>
      {tried.exhausted && <Note tone="warn">The expression needs more steps than a rule may take, so it does not match.</Note>}
      {tried.readings.length > 1 && <p class="quiet">The path can be interpreted in {tried.readings.length} ways, and all of them have to match: {tried.readings.map((r) => `${r.path} ${r.matches ? 'does' : 'does not'}`).join(', ')}.</p>}
      <details>
        <summary>Values of the fields for this request</summary>
        <dl class="pairs">{Object.entries(tried.fields).map(([k, v]) => <div key={k}><dt><code>{k}</code></dt><dd>{String(v) || <span class="quiet">empty</span>}</dd></div>)}</dl>
      </details>
    </div>
  )
}

function Invalid({ expression, message, fix, position }: { expression: string; message: string; fix: string; position: number | null }) {
  const before = position ? [...expression].slice(0, position - 1).join('') : ''
  const line = before.split('\n').length - 1
  return (
    <Note tone="bad" title="The expression is not valid">
      {position && <pre class="caret" aria-hidden="true">{expression.split('\n')[line]}{'\n'}{' '.repeat([...before.split('\n')[line]].length)}^</pre>}
      {message}{position ? ` (character ${position})` : ''}{fix && <span class="below">{fix}</span>}
    </Note>
  )
}
