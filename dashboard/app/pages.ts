import type { ComponentChild } from 'preact'
import type { PageProps, RoomPageProps } from './core/page'
import { may, mayAnywhere, type Permission } from './core/session'
import type { IconName } from './ui/icons'
import { Analytics } from './pages/analytics'
import { Audit } from './pages/audit'
import { Cluster } from './pages/cluster'
import { Cockpit } from './pages/cockpit'
import { Events } from './pages/events'
import { Invites } from './pages/invites'
import { Overview } from './pages/overview'
import { Report } from './pages/report'
import { Rules } from './pages/rules'
import { Settings } from './pages/settings'
import { Template } from './pages/template'
import { Tokens } from './pages/tokens'
import { Visitors } from './pages/visitors'
import { Webhooks } from './pages/webhooks'
import { Wizard } from './pages/wizard'

interface Common {
  /** Pattern of the path, like /audit; pages of a room begin with /rooms/:zone/:room. */
  path: string
  title: string
  icon: IconName
  /** The key after g that goes there. */
  key?: string
  /** Without it in the person's token, the page is not offered. */
  needs?: Permission
  /** That permission for one zone or room is enough. */
  somewhere?: boolean
  /** Not in the navigation. */
  hidden?: boolean
}

export type Page = (Common & { of: 'all'; view: (p: PageProps) => ComponentChild }) | (Common & { of: 'room'; view: (p: RoomPageProps) => ComponentChild })

export const roomBase = '/rooms/:zone/:room'

/** Whether a page of everything is offered to the person. */
export const offered = (p: Page) => !p.needs || may(p.needs) || (!!p.somewhere && mayAnywhere(p.needs))

/** Every page, in the order of the navigation. README.md says how to add one. */
export const pages: Page[] = [
  { of: 'all', path: '/', title: 'Overview', icon: 'overview', key: 'o', view: Overview },
  { of: 'all', path: '/new', title: 'New room', icon: 'plus', key: 'n', needs: 'edit', somewhere: true, hidden: true, view: Wizard },
  { of: 'room', path: roomBase, title: 'Live', icon: 'live', key: 'r', view: Cockpit },
  { of: 'room', path: roomBase + '/analytics', title: 'Analytics', icon: 'chart', key: 'a', view: Analytics },
  { of: 'room', path: roomBase + '/events', title: 'Events', icon: 'event', key: 'e', view: Events },
  { of: 'room', path: roomBase + '/rules', title: 'Rules', icon: 'rules', key: 'u', view: Rules },
  { of: 'room', path: roomBase + '/invites', title: 'Invites', icon: 'token', key: 'y', view: Invites },
  { of: 'room', path: roomBase + '/template', title: 'Waiting page', icon: 'template', key: 'w', view: Template },
  { of: 'room', path: roomBase + '/visitors', title: 'Visitors', icon: 'visitors', key: 'v', view: Visitors },
  { of: 'room', path: roomBase + '/settings', title: 'Settings', icon: 'settings', key: 's', view: Settings },
  { of: 'room', path: roomBase + '/report', title: 'Report', icon: 'report', view: Report },
  { of: 'all', path: '/webhooks', title: 'Webhooks', icon: 'webhook', key: 'h', needs: 'edit', somewhere: true, view: Webhooks },
  { of: 'all', path: '/tokens', title: 'Tokens', icon: 'token', key: 't', needs: 'admin', view: Tokens },
  { of: 'all', path: '/audit', title: 'Audit', icon: 'audit', key: 'i', needs: 'admin', view: Audit },
  { of: 'all', path: '/cluster', title: 'Cluster', icon: 'cluster', key: 'c', needs: 'read', view: Cluster },
]
