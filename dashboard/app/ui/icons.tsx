/** Line icons, 24 by 24. They only ever stand beside text or in a button with a label. */
const paths: Record<string, string> = {
  overview: 'M4 5h7v6H4zM13 5h7v3h-7zM13 11h7v8h-7zM4 14h7v5H4z',
  live: 'M3 12h4l3-8 4 16 3-8h4',
  chart: 'M4 20V4M4 20h16M8 16v-4M12 16V8M16 16v-6',
  event: 'M5 6h14v14H5zM5 10h14M9 3v4M15 3v4',
  settings: 'M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4',
  rules: 'M4 6h16M7 12h10M10 18h4',
  template: 'M4 5h16v14H4zM4 9h16M9 9v10',
  visitors: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM5 20c0-4 3-6 7-6s7 2 7 6',
  report: 'M6 3h9l4 4v14H6zM15 3v4h4M9 12h6M9 16h6',
  token: 'M8 15a4 4 0 1 1 3.500-6H21v4h-3v3h-4v-3h-2.500A4 4 0 0 1 8 15zM8 11h.01',
  audit: 'M6 3h12v18H6zM9 8h6M9 12h6M9 16h3',
  webhook: 'M9 8a3.500 3.500 0 1 1 5 3l-3 6M7 11a3.500 3.500 0 1 0 3 6h7M16 14a3.500 3.500 0 1 1-2 6',
  cluster: 'M5 4h14v5H5zM5 15h14v5H5zM12 9v6M8 6.500h.01M8 17.500h.01',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l5 5',
  plus: 'M12 5v14M5 12h14',
  minus: 'M5 12h14',
  check: 'M5 13l4 4L19 7',
  cross: 'M6 6l12 12M18 6L6 18',
  warning: 'M12 4l9 16H3zM12 10v4M12 17h.01',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 8h.01',
  pause: 'M8 5v14M16 5v14',
  play: 'M7 4l13 8-13 8z',
  drain: 'M4 4h16l-6 8v6l-4 2v-8z',
  stop: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM6 6l12 12',
  hold: 'M7 13V6a1.500 1.500 0 0 1 3 0v5M10 11V4.500a1.500 1.500 0 0 1 3 0V11M13 11V6a1.500 1.500 0 0 1 3 0v6M16 12V9a1.500 1.500 0 0 1 3 0v6c0 4-3 6-6 6-4 0-5-2-8-6-1-1.500.500-3 2-2l2 1.500',
  message: 'M4 5h16v11H9l-5 4z',
  admit: 'M14 4h5v16h-5M4 12h11M11 8l4 4-4 4',
  undo: 'M9 7L4 12l5 5M4 12h10a6 6 0 0 1 6 6',
  edit: 'M4 20l1-4L16 5l3 3L8 19zM14 7l3 3',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  sun: 'M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.600 5.600L7 7M17 17l1.400 1.400M5.600 18.400L7 17M17 7l1.400-1.400',
  moon: 'M20 14a8 8 0 1 1-10-10 7 7 0 0 0 10 10z',
  auto: 'M12 21a9 9 0 1 0 0-18zM12 21a9 9 0 0 1 0-18',
  menu: 'M4 7h16M4 12h16M4 17h16',
  more: 'M6 12h.01M12 12h.01M18 12h.01',
  right: 'M9 6l6 6-6 6',
  left: 'M15 6l-6 6 6 6',
  down: 'M6 9l6 6 6-6',
  up: 'M6 15l6-6 6 6',
  table: 'M4 5h16v14H4zM4 10h16M4 14.500h16M10 5v14',
  download: 'M12 4v11M7 11l5 5 5-5M4 20h16',
  trash: 'M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13',
  lock: 'M6 11h12v9H6zM8 11V8a4 4 0 0 1 8 0v3',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2',
  logout: 'M10 4H5v16h5M10 12h10M16 8l4 4-4 4',
  keyboard: 'M3 7h18v11H3zM7 11h.01M11 11h.01M15 11h.01M8 15h8',
  external: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6',
  refresh: 'M20 11a8 8 0 1 0-2 6M20 5v6h-6',
}

export type IconName = keyof typeof paths

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width={name === 'more' ? 3 : 1.75} stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  )
}
