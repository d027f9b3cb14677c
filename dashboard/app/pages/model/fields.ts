// The fields of a room and of an event as the published API names them: what a form needs to
// ask for each. The API judges values; bounds here only help to fill in.
import table from './fields.json'

export type Kind = 'text' | 'number' | 'bool' | 'choice' | 'choices' | 'routes' | 'lanes' | 'html' | 'duration'

export interface Field {
  name: string // of the API; a dot leads into an object
  kind: Kind
  label: string
  help: string
  group: string
  min?: number
  max?: number
  unit?: string
  options?: readonly string[]
  required?: boolean
  own?: boolean // published clients do not know it
  event?: boolean // an event may override it
  initial?: unknown // its default; none for required ones
}

export type Values = Record<string, any>

// What a room and an event may have, made from the table of settings: go test ./dashboard -update.
export const roomFields = table as readonly Field[]

export const groups: readonly string[] = [...new Set(roomFields.map((f) => f.group))]

/** What an event may have in the place of the room's. */
export const eventFields: readonly Field[] = roomFields.filter((f) => f.event)

export const fieldOf = (name: string): Field | undefined => roomFields.find((f) => f.name === name)

// A field on the left does something only with the one on the right.
const leans: Record<string, string> = {
  protect_errors: 'protect', protect_latency: 'protect', protect_floor: 'protect', protect_return: 'protect',
  account_audience: 'account_issuer', account_keys: 'account_issuer', account_claim: 'account_issuer', account_lane_claim: 'account_issuer', account_cookie: 'account_issuer', account_header: 'account_issuer', account_sign_in_url: 'account_issuer',
  json_response_exact: 'json_response_enabled', pass_edge: 'pass', pass_reported: 'pass',
}

/** Whether a field does something in a room with these values. */
export function inForce(name: string, v: Values): boolean {
  const on = leans[name] ? v[leans[name]] : true
  return !(on === false || on === 0 || on === '0s' || on === '' || on == null)
}

/** The value at a name with dots. */
export function valueOf(v: Values | null | undefined, name: string): any {
  return name.split('.').reduce<any>((o, k) => (o == null ? undefined : o[k]), v)
}

/** The values with another one at a name with dots; what is given stays as it is. */
export function withValue(v: Values, name: string, to: unknown): Values {
  const [first, ...rest] = name.split('.')
  return { ...v, [first]: rest.length ? withValue(v[first] ?? {}, rest.join('.'), to) : to }
}

/** What a person typed, as the API takes it. A number that is none stays text, for the API to say so. */
export function typed(f: Field, text: string): unknown {
  if (f.kind !== 'number' && f.name !== 'queueing_status_code') return text
  const t = text.trim()
  return /^-?\d{1,15}$/.test(t) ? Number(t) : t
}
