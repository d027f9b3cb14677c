import { kept } from './kept'
import { Store } from './store'

export type Theme = 'system' | 'light' | 'dark'

export const theme = kept<Theme>('theme', ['system', 'light', 'dark'])

/** Counts up whenever the colors change: charts draw themselves anew. */
export const colors = new Store(0)

function show() {
  if (theme.value === 'system') document.documentElement.removeAttribute('data-theme')
  else document.documentElement.dataset.theme = theme.value
  colors.update((n) => n + 1)
}

export function setTheme(t: Theme) {
  theme.set(t)
  show()
}

export function followTheme() {
  show()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show)
}

let probe: HTMLElement | undefined

/** A color of style/tokens.css as it is at the moment, for canvases; with an opacity from 0 to 1. */
export function color(name: string, opacity = 1): string {
  if (!probe) {
    probe = document.createElement('span')
    probe.hidden = true
    document.body.append(probe)
  }
  probe.style.color = `var(${name})`
  const c = getComputedStyle(probe).color
  return opacity === 1 ? c : c.replace(/^rgba?\((\d+), (\d+), (\d+).*$/, `rgba($1, $2, $3, ${opacity})`)
}
