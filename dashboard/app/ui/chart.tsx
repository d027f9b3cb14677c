import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { clock, duration, full, moment, number, second } from '../core/format'
import { clocks } from '../core/kept'
import { useStore } from '../core/store'
import { color, colors } from '../core/theme'
import { Button } from './basic'

export interface Series {
  title: string
  values: (number | null)[]
  /** A color of style/tokens.css, like "--c1". */
  color: string
  /** line, area below it, bars, or a dashed line for a limit. */
  kind?: 'line' | 'area' | 'bars' | 'limit'
  /** Stands on the stacked series before it. */
  stacked?: boolean
}

export interface ChartProps {
  title: string
  /** Unix seconds of every value, ascending. */
  times: number[]
  series: Series[]
  /** The range that is shown; what is left out is that of the times. */
  from?: number
  to?: number
  /** How values are written: numbers unless said otherwise. */
  unit?: 'number' | 'seconds'
  height?: number
  /** Charts with the same name show the cursor at the same moment. */
  sync?: string
  /** Called when a range is drawn with the pointer: unix seconds. */
  onZoom?: (from: number, to: number) => void
  /** Spans to be marked, like events. */
  spans?: { from: number; to: number; title: string }[]
  /** What somebody changed, marked by lines; its words stand beside the time when the pointer is there. */
  marks?: { at: number; title: string }[]
  /** What the chart shows, in a sentence, for whoever does not see it; made of the figures when left out. */
  summary?: string
  /** Without legend and table: for small charts. */
  bare?: boolean
}

const write = (unit: ChartProps['unit']) => (unit === 'seconds' ? duration : number)

const last = (values: (number | null)[]) => values.findLast((v) => v != null) ?? null

function summarize(p: ChartProps): string {
  const w = write(p.unit)
  return p.series
    .map((s) => {
      const known = s.values.filter((v) => v != null) as number[]
      if (!known.length) return `${s.title}: no data.`
      if (s.kind === 'limit') return `${s.title}: ${w(last(s.values))}.`
      let most = 0
      for (let i = 0; i < s.values.length; i++) if ((s.values[i] ?? -1) > (s.values[most] ?? -1)) most = i
      return `${s.title}: now ${w(last(s.values))}, highest ${w(s.values[most])} at ${clock(p.times[most])}.`
    })
    .join(' ')
}

// What is drawn: stacked series as sums, each over the one before.
function stack(series: Series[]): (number | null)[][] {
  let sum: number[] | undefined
  return series.map((s) => {
    if (!s.stacked) return s.values
    sum = s.values.map((v, i) => (v ?? 0) + (sum?.[i] ?? 0))
    return s.values.map((v, i) => (v == null ? null : sum![i]))
  })
}

// Steps of an axis of seconds that people count in.
const durations = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400, 172800, 604800]

export function Chart(p: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot | null>(null)
  const latest = useRef(p)
  latest.current = p
  const [at, point] = useState<number | null>(null)
  const [tabled, table] = useState(false)
  const drawn = useStore(colors)
  const clockwork = useStore(clocks)
  const data = useMemo(() => [p.times, ...stack(p.series).toReversed()] as uPlot.AlignedData, [p.times, p.series])
  const shape = p.series.map((s) => s.title + s.color + s.kind + s.stacked).join('|') + p.unit + p.height + p.sync + !!p.onZoom + p.bare
  const w = write(p.unit)

  useEffect(() => {
    if (tabled) return
    const q = latest.current
    const quiet = color('--faint'), line = color('--line')
    const font = '11px ' + getComputedStyle(document.body).fontFamily
    const axis = { stroke: quiet, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, border: { show: false } }
    const options: uPlot.Options = {
      width: box.current!.clientWidth || 300,
      height: q.height ?? 200,
      padding: q.bare ? [2, 0, 0, 0] : [10, 22, 0, 0],
      legend: { show: false },
      tzDate: (t) => (clocks.value === 'UTC' ? uPlot.tzDate(new Date(t * 1000), 'Etc/UTC') : new Date(t * 1000)),
      cursor: {
        x: true,
        y: false,
        points: { show: !q.bare, size: 7 },
        drag: { x: !!q.onZoom, y: false, setScale: false },
        sync: q.sync ? { key: q.sync } : undefined,
        show: !q.bare,
      },
      scales: {
        x: { time: true, range: (_u, min, max) => [latest.current.from ?? min, latest.current.to ?? max] },
        y: { range: (_u, _min, max) => [0, max == null || max <= 0 ? (q.unit === 'seconds' ? 60 : 1) : max * 1.12] },
      },
      axes: q.bare
        ? [{ show: false }, { show: false }]
        : [
            { ...axis, grid: { show: false }, size: 28, space: 92, values: (_u, ticks, _i, _s, incr) => ticks.map((t) => (incr >= 86400 ? moment(t).split(',')[0] : incr < 60 ? second(t) : clock(t))) },
            { ...axis, size: 52, space: 34, ...(q.unit === 'seconds' && { incrs: durations }), values: (_u, ticks) => ticks.map((t) => (q.unit === 'seconds' ? duration(t) : Number.isInteger(t) ? Intl.NumberFormat(undefined, { notation: 'compact' }).format(t) : '')) },
          ],
      series: [
        {},
        ...q.series.toReversed().map((s): uPlot.Series => {
          const c = color(s.color)
          const solid = s.stacked || s.kind === 'bars'
          return {
            label: s.title,
            stroke: c,
            width: s.kind === 'limit' ? 1.5 : solid ? 1 : 2,
            dash: s.kind === 'limit' ? [6, 5] : undefined,
            fill: solid ? c : s.kind === 'area' ? color(s.color, 0.16) : undefined,
            paths: s.kind === 'bars' ? uPlot.paths.bars!({ size: [0.9, 60], gap: 1 }) : undefined,
            points: { show: false },
            spanGaps: false,
          }
        }),
      ],
      hooks: {
        setCursor: [(u) => point(u.cursor.idx ?? null)],
        setSelect: [
          (u) => {
            if (u.select.width > 4) latest.current.onZoom?.(u.posToVal(u.select.left, 'x'), u.posToVal(u.select.left + u.select.width, 'x'))
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
          },
        ],
        drawClear: [
          (u) => {
            const { ctx, bbox } = u
            ctx.save()
            ctx.fillStyle = color('--event-soft')
            for (const s of latest.current.spans ?? []) {
              const a = Math.max(bbox.left, u.valToPos(s.from, 'x', true)), b = Math.min(bbox.left + bbox.width, u.valToPos(s.to, 'x', true))
              if (b > a) ctx.fillRect(a, bbox.top, b - a, bbox.height)
            }
            ctx.fillStyle = color('--event')
            for (const m of latest.current.marks ?? []) {
              const x = u.valToPos(m.at, 'x', true)
              if (x < bbox.left || x > bbox.left + bbox.width) continue
              const r = 4 * devicePixelRatio
              ctx.fillRect(x - r / 8, bbox.top, r / 4, bbox.height)
              ctx.beginPath()
              ctx.moveTo(x - r, bbox.top)
              ctx.lineTo(x + r, bbox.top)
              ctx.lineTo(x, bbox.top + 1.5 * r)
              ctx.fill()
            }
            ctx.restore()
          },
        ],
      },
    }
    const u = (plot.current = new uPlot(options, data, box.current!))
    const resize = new ResizeObserver(() => {
      const width = box.current?.clientWidth
      if (width && width !== u.width) u.setSize({ width, height: u.height })
    })
    resize.observe(box.current!)
    return () => {
      resize.disconnect()
      u.destroy()
      plot.current = null
    }
  }, [shape, drawn, clockwork, tabled])

  useEffect(() => {
    plot.current?.setData(data)
  }, [data, p.from, p.to, p.marks, clockwork, tabled])

  const summary = p.summary ?? summarize(p)
  if (p.bare)
    return (
      <div class="chart bare">
        <div ref={box} class="plot" role="img" aria-label={`${p.title}. ${summary}`} />
      </div>
    )
  // Without the pointer the newest figures are told; the span of now may have none yet.
  const i = at ?? p.times.findLastIndex((_, k) => p.series.some((s) => s.values[k] != null))
  return (
    <figure class="chart">
      <figcaption>
        <h3>{p.title}</h3>
        <span class="when">{at != null && p.times[at] ? [moment(p.times[at]), ...marked(p, at)].join(' · ') : ''}</span>
        <Button small kind="quiet" icon={tabled ? 'chart' : 'table'} label={tabled ? `${p.title}: show the chart` : `${p.title}: show as a table`} onClick={() => { table(!tabled) }} />
      </figcaption>
      <ul class="legend">
        {p.series.map((s) => (
          <li key={s.title}>
            <span class={'key ' + (s.kind ?? 'line')} style={{ color: `var(${s.color})` }} aria-hidden="true" />
            {s.title} <b>{w(s.values[i] ?? null)}</b>
          </li>
        ))}
      </ul>
      {tabled ? <Figures {...p} /> : <div ref={box} class="plot" role="img" aria-label={`${p.title}. ${summary}`} style={{ minHeight: `${p.height ?? 200}px` }} />}
    </figure>
  )
}

// What was changed in the span of a value.
function marked(p: ChartProps, i: number): string[] {
  const span = (p.times[i + 1] ?? p.to ?? Infinity) - p.times[i]
  return (p.marks ?? []).filter((m) => m.at >= p.times[i] && m.at < p.times[i] + span).map((m) => m.title)
}

// So many rows of a table are looked at by nobody: the ends of more are shown.
const mostRows = 500

function Figures(p: ChartProps) {
  const w = write(p.unit)
  const rows = p.times.map((t, i) => ({ t, i })).filter(({ t }) => t >= (p.from ?? -Infinity) && t <= (p.to ?? Infinity)).toReversed()
  return (
    <div class="scroll figures" role="region" aria-label={p.title} tabIndex={0}>
      <table class="table dense">
        <caption class="unseen">{p.title}. {p.summary ?? summarize(p)}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {p.series.map((s) => <th key={s.title} scope="col" class="figure">{s.title}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, mostRows).map(({ t, i }) => (
            <tr key={t}>
              <th scope="row" title={full(t)}>{moment(t)}</th>
              {p.series.map((s) => <td key={s.title} class="figure" data-title={s.title}>{w(s.values[i])}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > mostRows && <p class="quiet">Showing the newest {mostRows} of {number(rows.length)}. The CSV file has all.</p>}
    </div>
  )
}
