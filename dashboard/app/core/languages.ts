/** Those of the built-in page. */
export const languages = 'en-US es-ES de-DE fr-FR it-IT ja-JP ko-KR pt-BR zh-CN zh-TW nl-NL pl-PL id-ID tr-TR ar-EG ru-RU fa-IR bg-BG hr-HR cs-CZ da-DK fi-FI lt-LT ms-MY nb-NO ro-RO el-GR he-IL hi-IN hu-HU sr-BA sk-SK sl-SI sv-SE tl-PH th-TH uk-UA vi-VN'.split(' ')

/** A language in the words of the person who looks, with its tag. */
export const languageName = (code: string) => {
  try {
    return `${new Intl.DisplayNames(undefined, { type: 'language' }).of(code)} (${code})`
  } catch {
    return code
  }
}
