/** The error index: `spt explain CODE` prints the section of a code from `docs/reference/errors/`. */
import { readdirSync } from 'node:fs'
import { packageFolder, packageText } from '../../io/package/package.ts'
import { rejectUsage } from '../arguments/usage.ts'

export const INDEX = 'docs/reference/errors/'

/** A page: the program that examples extend (empty if absent), and sections by code. */
export interface ErrorPage {
  readonly shared: string
  readonly sections: ReadonlyMap<string, string>
}

export function errorPage(text: string): ErrorPage {
  const [intro = '', ...sections] = text.split(/^## /m)
  return {
    shared: /^```(?:spt|ts) shared\n.*?^```$/ms.exec(intro)?.[0] ?? '',
    sections: new Map(sections.map((s) => [s.slice(0, s.indexOf('\n')), `## ${s.trimEnd()}`])),
  }
}

/** The code in an argument such as `check/unknown-name` or `error[check/unknown-name]`; undefined for file names. */
export const codeIn = (argument: string): string | undefined =>
  /^(?:error|warning)?\[?([a-z]+\/[a-z0-9-]+)\]?:?$/.exec(argument)?.[1]

/** The section of a code, then the program that examples extend. @throws UsageError for an unknown code */
export function explainCode(code: string): string {
  const folder = packageFolder()
  const names = folder ? readdirSync(new URL(INDEX, folder)).filter((f) => f.endsWith('.md')) : []
  const pages = names.map((name) => errorPage(packageText(INDEX + name) ?? ''))
  const page = pages.find(({ sections }) => sections.has(code))
  if (!page) {
    const [area, name] = code.split('/') as [string, string]
    const candidates = pages.flatMap(({ sections }) => [...sections.keys()])
    const elsewhere = candidates.filter((c) => c.endsWith(`/${name}`))
    return rejectUsage({
      command: 'explain',
      message: `there is no error code ${code}, and no file of that name`,
      lookup: { name: code, candidates: elsewhere.length > 0 ? elsewhere : candidates },
      ...(elsewhere.length > 0 ? { hint: `spt explain ${elsewhere[0]}` } : {}),
      ...(candidates.some((c) => c.startsWith(`${area}/`))
        ? {}
        : { expected: 'a code such as check/unknown-name' }),
    })
  }
  const section = page.sections.get(code)!
  const extended = /^```diff$/m.test(section) && page.shared !== ''
  return `${section}\n${extended ? `\nThe examples extend this program:\n\n${page.shared}\n` : ''}`
}
