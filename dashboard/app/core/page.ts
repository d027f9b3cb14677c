import type { Room } from './live'

/** What a page gets. */
export interface PageProps {
  params: Record<string, string>
  query: URLSearchParams
}

/** What a page of a room gets. Its figures are those of this second. */
export interface RoomPageProps extends PageProps {
  room: Room
}
