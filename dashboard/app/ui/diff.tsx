import { Named } from './field'

export interface Change {
  name: string
  before: unknown
  after: unknown
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b)

/** The members that differ. */
export const changes = (before: Record<string, unknown>, after: Record<string, unknown>): Change[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => !same(before[name], after[name]))
    .map((name) => ({ name, before: before[name], after: after[name] }))

const show = (v: unknown) => (v === undefined ? '' : typeof v === 'string' ? (v === '' ? '""' : v) : JSON.stringify(v, null, 1))

/** What is there and what will be, member by member. */
export function Diff({ list, labels = {} }: { list: Change[]; labels?: Record<string, string> }) {
  if (!list.length) return <p class="quiet">No changes.</p>
  return (
    <dl class="diff">
      {list.map((c) => (
        <div key={c.name}>
          <dt>{labels[c.name] ?? c.name} {labels[c.name] && <Named name={c.name} />}</dt>
          {c.before !== undefined && <dd class="before"><span class="unseen">before: </span><del>{show(c.before)}</del></dd>}
          {c.after !== undefined && <dd class="after"><span class="unseen">after: </span><ins>{show(c.after)}</ins></dd>}
        </div>
      ))}
    </dl>
  )
}
