import { Head } from '../ui'

export function Wizard() {
  return <Head title="New room" />
}
