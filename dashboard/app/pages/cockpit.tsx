import type { RoomPageProps } from '../pages'
import { number } from '../core/format'
import { Card } from '../ui'

export function Cockpit({ room }: RoomPageProps) {
  return <Card title="Waiting">{number(room.status?.waiting)}</Card>
}
