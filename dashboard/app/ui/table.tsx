import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Icon } from './icons'

export interface Column<T> {
  title: ComponentChildren
  /** What the cell shows. */
  cell: (row: T) => ComponentChildren
  /** By what the column sorts; without it, it does not. */
  by?: (row: T) => number | string
  /** Figures stand at the right, in tabular digits. */
  figure?: boolean
  /** Left out where the screen is narrow. */
  wide?: boolean
  /** The name of the row. One column has it. */
  name?: boolean
}

/** Rows with a caption, sorted by a press on a column's head. On phones each row is a card, in which cells name their column. */
export function Table<T>({ rows, columns, id, caption, onRow, sort }: { rows: T[]; columns: Column<T>[]; id: (row: T) => string; caption: string; onRow?: (row: T) => void; sort?: number }) {
  const [by, set] = useState<{ column: number; down: boolean } | null>(sort == null ? null : { column: Math.abs(sort), down: sort < 0 })
  const key = by && columns[by.column]?.by
  const sorted = key
    ? rows.toSorted((a, b) => {
        const x = key(a), y = key(b)
        return (x < y ? -1 : x > y ? 1 : 0) * (by.down ? -1 : 1)
      })
    : rows
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table class={'table' + (onRow ? ' rows' : '')}>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((c, i) => (
              <th key={i} scope="col" class={[c.figure && 'figure', c.wide && 'wide'].filter(Boolean).join(' ') || undefined} aria-sort={by?.column === i ? (by.down ? 'descending' : 'ascending') : undefined}>
                {c.by ? (
                  <button type="button" onClick={() => set(by?.column === i ? { column: i, down: !by.down } : { column: i, down: !!c.figure })}>
                    {c.title}
                    {by?.column === i && <Icon name={by.down ? 'down' : 'up'} size={14} />}
                  </button>
                ) : c.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.map((row) => (
            <tr key={id(row)} onClick={onRow && ((e) => !(e.target as Element).closest('a,button,input,select,label') && onRow(row))}>
              {columns.map((c, i) => {
                const cls = [c.figure && 'figure', c.wide && 'wide'].filter(Boolean).join(' ') || undefined
                return c.name
                  ? <th key={i} scope="row" class={cls}>{c.cell(row)}</th>
                  : <td key={i} class={cls} data-title={typeof c.title === 'string' ? c.title : undefined}>{c.cell(row)}</td>
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
