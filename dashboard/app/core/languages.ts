import table from '../pages/model/fields.json'

/** Those of the built-in page. */
export const languages: readonly string[] = table.find((f) => f.name === 'default_template_language')!.options!

/** A language in the words of the person who looks, with its tag. */
export const languageName = (code: string) => {
  try {
    return `${new Intl.DisplayNames(undefined, { type: 'language' }).of(code)} (${code})`
  } catch {
    return code
  }
}
