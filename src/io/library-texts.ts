/** The libraries that the package knows how to call. */
import { readFileSync } from 'node:fs'
import { packageFolder } from './package.ts'

/** What the files of a kind of device hold; `null` where there are none. */
export function packagedLibraries(
  kind: string,
): { readonly libraries: unknown; readonly kernels: string } | null {
  const folder = packageFolder()
  if (!folder) return null
  const read = (ending: string): string =>
    readFileSync(new URL(`data/libraries/${kind}.${ending}`, folder), 'utf8')
  try {
    return { libraries: JSON.parse(read('json')), kernels: read('spt') }
  } catch {
    return null
  }
}
