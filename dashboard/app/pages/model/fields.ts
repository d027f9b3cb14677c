// The fields of a room and of an event as the published API names them: what a form needs to
// ask for each. The API judges values; bounds here only help to fill in.

export type Kind = 'text' | 'number' | 'bool' | 'choice' | 'choices' | 'routes' | 'html' | 'duration'

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

export const languages = ('en-US es-ES de-DE fr-FR it-IT ja-JP ko-KR pt-BR zh-CN zh-TW nl-NL pl-PL id-ID tr-TR ar-EG ru-RU ' +
  'fa-IR bg-BG hr-HR cs-CZ da-DK fi-FI lt-LT ms-MY nb-NO ro-RO el-GR he-IL hi-IN hu-HU sr-BA sk-SK sl-SI sv-SE tl-PH th-TH uk-UA vi-VN').split(' ')

const users = 2147483647

export const roomFields: readonly Field[] = [
  { name: 'name', kind: 'text', group: 'Room', required: true, label: 'Name', help: 'Letters, digits, _ and -; unique in the zone.' },
  { name: 'description', kind: 'text', group: 'Room', initial: '', label: 'Description', help: 'For you and your colleagues.' },
  { name: 'host', kind: 'text', group: 'Room', required: true, label: 'Host', help: 'Like shop.example.com; the zone or a name below it.' },
  { name: 'path', kind: 'text', group: 'Room', initial: '/', label: 'Path', help: 'It and everything below it. Upper and lower case differ.' },
  { name: 'additional_routes', kind: 'routes', group: 'Room', initial: [], label: 'Additional routes',
    help: 'Further hosts and paths that share the line and the limits. They need a cookie suffix.' },

  { name: 'total_active_users', kind: 'number', group: 'Limits', required: true, event: true, min: 0, max: users, unit: 'users', label: 'Active users',
    help: 'The maximum number of active sessions. Never exceeded.' },
  { name: 'new_users_per_minute', kind: 'number', group: 'Limits', required: true, event: true, min: 0, max: users, unit: 'users', label: 'New users per minute',
    help: 'The maximum number of new sessions in any 60 seconds. At most the number of active users.' },
  { name: 'session_duration', kind: 'number', group: 'Limits', initial: 5, event: true, min: 1, max: 1440, unit: 'minutes', label: 'Session duration',
    help: 'A session ends this long after the visitor’s last request.' },
  { name: 'disable_session_renewal', kind: 'bool', group: 'Limits', initial: false, event: true, label: 'Sessions end after their duration',
    help: 'Requests do not prolong them.' },

  { name: 'queueing_method', kind: 'choice', group: 'Line', initial: 'fifo', event: true, options: ['fifo', 'random', 'passthrough', 'reject'], label: 'Queueing method',
    help: 'fifo: who came first goes first. random: by lot. passthrough: nobody waits. reject: nobody gets in.' },
  { name: 'queue_all', kind: 'bool', group: 'Line', initial: false, label: 'Queue all', help: 'Everybody without a session waits, and nobody is let in.' },
  { name: 'suspended', kind: 'bool', group: 'Line', initial: false, label: 'Suspended', help: 'The room is off: requests pass uncounted, and its events do not run.' },
  { name: 'refresh', kind: 'duration', group: 'Line', initial: '0s', own: true, label: 'Refresh', help: 'Interval of the waiting page, like 20s. 0s adapts to the place in line.' },
  { name: 'place_hold', kind: 'duration', group: 'Line', initial: '5m0s', own: true, label: 'Place is kept for', help: 'After a missed check-in; 30s to 1h.' },
  { name: 'unpaced', kind: 'bool', group: 'Line', initial: false, own: true, label: 'Unpaced', help: 'Release the line as fast as the limit per minute allows.' },

  { name: 'default_template_language', kind: 'choice', group: 'Waiting page', initial: 'en-US', options: languages, label: 'Language',
    help: 'Of the built-in page for visitors whose language it does not have.' },
  { name: 'queueing_status_code', kind: 'choice', group: 'Waiting page', initial: 200, options: ['200', '202', '429'], label: 'Status code', help: 'HTTP status of the waiting page.' },
  { name: 'json_response_enabled', kind: 'bool', group: 'Waiting page', initial: false, label: 'JSON', help: 'Answer "Accept: application/json" with JSON, for apps.' },
  { name: 'custom_page_html', kind: 'html', group: 'Waiting page', initial: '', event: true, label: 'Page of your own', help: 'A Mustache template; empty is the built-in page.' },

  { name: 'cookie_suffix', kind: 'text', group: 'Cookie', initial: '', label: 'Cookie suffix', help: 'Letters, digits, _ and -. Needed with additional routes.' },
  { name: 'cookie_attributes.samesite', kind: 'choice', group: 'Cookie', initial: 'auto', options: ['auto', 'lax', 'none', 'strict'], label: 'SameSite',
    help: 'none is for pages embedded elsewhere; not with Secure never.' },
  { name: 'cookie_attributes.secure', kind: 'choice', group: 'Cookie', initial: 'auto', options: ['auto', 'always', 'never'], label: 'Secure', help: 'auto: where the request came over TLS.' },
  { name: 'bind', kind: 'choice', group: 'Cookie', initial: 'none', own: true, options: ['none', 'ip-prefix'], label: 'Bind tickets', help: 'ip-prefix: a ticket is good only in the network that got it.' },

  { name: 'enabled_origin_commands', kind: 'choices', group: 'Other', initial: [], options: ['revoke'], label: 'Origin commands', help: 'revoke: your application may end sessions by a response header.' },
  { name: 'turnstile_mode', kind: 'choice', group: 'Other', initial: 'invisible', event: true, options: ['off', 'invisible', 'visible_non_interactive', 'visible_managed'], label: 'Turnstile mode',
    help: 'Kept for clients of the published API; no challenge is made.' },
  { name: 'turnstile_action', kind: 'choice', group: 'Other', initial: 'log', event: true, options: ['log', 'infinite_queue'], label: 'Turnstile action', help: 'Kept for clients of the published API.' },
]

export const groups: readonly string[] = [...new Set(roomFields.map((f) => f.group))]

/** What an event may have in the place of the room's. */
export const eventFields: readonly Field[] = roomFields.filter((f) => f.event)

export const fieldOf = (name: string): Field | undefined => roomFields.find((f) => f.name === name)

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
