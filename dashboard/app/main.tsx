import { render } from 'preact'
import './style/tokens.css'
import './style/base.css'
import './style/parts.css'
import './style/shell.css'
import { followLive } from './core/live'
import { followLinks } from './core/router'
import { begin } from './core/login'
import { followTheme } from './core/theme'
import { followKeys } from './shell/keys'
import { Shell } from './shell/shell'
import { tell } from './ui/toast'

followTheme()
followLinks()
followLive()
followKeys()
begin().catch((e) => tell((e as Error).message, 'bad'))
render(<Shell />, document.getElementById('app')!)
