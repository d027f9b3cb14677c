// Rooms, events and rules as Terraform has them.
import { roomFields, eventFields, valueOf, type Values } from './fields'
import { same } from './diff'

/** An expression of HCL, written as it is. */
export class Expression {
  constructor(readonly text: string) {}
}

/** A value in HCL. */
export function hcl(v: unknown, indent = ''): string {
  const inner = indent + '  '
  if (v instanceof Expression) return v.text
  if (v === null || v === undefined) return 'null'
  if (typeof v === 'string') return text(v)
  if (Array.isArray(v)) return v.length ? `[${v.map((x) => hcl(x, indent)).join(', ')}]` : '[]'
  if (typeof v === 'object') {
    const all = Object.entries(v as Values)
    return all.length ? `{\n${assigned(all, inner)}\n${indent}}` : '{}'
  }
  return String(v)
}

function text(s: string): string {
  const safe = s.replace(/\$\{/g, '$$${').replace(/%\{/g, '%%{')
  // A heredoc ends its text with a line break.
  if (s.endsWith('\n') && !s.includes('\r') && !/^\s*EOT$/m.test(s)) return `<<EOT\n${safe}EOT`
  return `"${safe.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n').replace(/\r/g, '\\r').replace(/\t/g, '\\t')}"`
}

function assigned(all: [string, unknown][], indent: string): string {
  const width = Math.max(...all.map(([k]) => k.length))
  return all.map(([k, v]) => `${indent}${k.padEnd(width)} = ${hcl(v, indent)}`).join('\n')
}

// A name as HCL wants labels.
const label = (name: string) => (/^[A-Za-z_]/.test(name) ? '' : '_') + name.replace(/[^A-Za-z0-9_-]/g, '_')

const block = (kind: string, name: string, all: [string, unknown][]) => `resource "${kind}" "${label(name)}" {\n${assigned(all, '  ')}\n}`

/** The room as the provider's resource; what is as it is by default is left out, and so is what the provider does not know, which is named. */
export function roomInTerraform(zone: string | Expression, room: Values): string {
  const all = new Map<string, unknown>([['zone_id', zone]])
  const unknown: string[] = []
  for (const f of roomFields) {
    const v = valueOf(room, f.name)
    if (v === undefined || (!f.required && same(v, f.initial))) continue
    if (f.own) {
      unknown.push(f.name)
      continue
    }
    const [first] = f.name.split('.')
    all.set(first, first === f.name ? v : room[first])
  }
  const note = unknown.length ? `# Not known to the provider, and kept as they are: ${unknown.join(', ')}\n` : ''
  return note + block('cloudflare_waiting_room', room.name ?? 'room', [...all])
}

/** A zone that does not exist yet, and how others name it. The account is a variable, as nobody here knows it. */
export function zoneInTerraform(name: string): { text: string; id: Expression } {
  const all: [string, unknown][] = [['account', new Expression('{ id = var.account }')], ['name', name]]
  return { text: 'variable "account" {\n  type = string\n}\n\n' + block('cloudflare_zone', name, all), id: new Expression(`cloudflare_zone.${label(name)}.id`) }
}

export function eventInTerraform(zone: string, room: string, event: Values): string {
  const all: [string, unknown][] = [['zone_id', zone], ['waiting_room_id', room]]
  for (const name of ['name', 'description', 'prequeue_start_time', 'event_start_time', 'event_end_time', 'shuffle_at_event_start', 'suspended',
    ...eventFields.map((f) => f.name)]) {
    const v = event[name]
    if (v !== undefined && v !== null && v !== '' && v !== false) all.push([name, v])
  }
  return block('cloudflare_waiting_room_event', event.name ?? 'event', all)
}

export function rulesInTerraform(zone: string, room: string, name: string, rules: readonly Values[]): string {
  const all = rules.map((r) => ({
    action: r.action, expression: r.expression, ...(r.description ? { description: r.description } : {}), ...(r.enabled === false ? { enabled: false } : {}),
  }))
  return block('cloudflare_waiting_room_rules', name, [['zone_id', zone], ['waiting_room_id', room], ['rules', all]])
}
