import { example } from '../pages/model/example'
import { pieces } from '../pages/model/highlight'
import { check } from './check'

const marked = (t: string) => pieces(t).map(([kind, text]) => (kind ? `[${kind} ${text}]` : text)).join('')
const broken = ['', '<', '<a', '<a href="', '{{', '{{{a}}', '<!--', '<!-- {{a}}', '<script>', '"', '>', '</', '{{#a', '<p {{#a}}class="b"{{/a}}>', '\u2028<\ud800>']

export const highlight = [
  check('the pieces of a template', [
    ['text', () => marked('a > b, "c"'), 'a > b, "c"'],
    ['a tag', () => marked('<p class="a > b">x</p>'), '[tag <p class=][string "a > b"][tag >]x[tag </p>]'],
    ['a string in single quotes', () => marked(`<p a='"'>`), `[tag <p a=][string '"'][tag >]`],
    ['values', () => marked('{{a}}, {{{b}}} {{& c}}'), '[value {{a}}], [value {{{b}}}] [value {{& c}}]'],
    ['sections', () => marked('{{#a}}b{{/a}}{{^a}}c{{/a}}'), '[section {{#a}}]b[section {{/a}}{{^a}}]c[section {{/a}}]'],
    ['a value in a string', () => marked('<a href="/{{a}}?b">'), '[tag <a href=][string "/][value {{a}}][string ?b"][tag >]'],
    ['comments', () => marked('<!-- {{a}} <b> -->{{! c }}d'), '[comment <!-- {{a}} <b> -->{{! c }}]d'],
    ['a script', () => marked('<script>if (a<b) "{{c}}"</script>x'), '[tag <script>]if (a<b) "[value {{c}}]"[tag </script>]x'],
    ['an upper-case script', () => marked('<STYLE>a>b</Style><i>'), '[tag <STYLE>]a>b[tag </Style><i>]'],
    ['what is not closed', () => marked('a<b c="d'), 'a[tag <b c=][string "d]'],
    ['an open value', () => marked('a{{b'), 'a[value {{b]'],
  ]),
  check('the pieces, joined', [...broken, example].map((t): [string, () => unknown, unknown] => [t.slice(0, 20) || 'nothing', () => pieces(t).map((p) => p[1]).join(''), t])),
]
