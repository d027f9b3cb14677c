// Every table of cases. lab/e2e/dashboard_model_test.go bundles this file and runs it in the browser.
import { change } from './change'
import { event } from './event'
import { figures } from './figures'
import { highlight } from './highlight'
import { range } from './range'
import { rooms } from './room'
import { rule } from './rule'
import { snippet } from './snippet'

const tables = [...change, ...event, ...figures, ...highlight, ...range, ...rooms, ...rule, ...snippet]

export const ran = tables.reduce((n, t) => n + t.ran, 0)
export const faults = tables.flatMap((t) => t.faults)
