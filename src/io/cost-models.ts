/** The cost models that come with the package. */
import { readFileSync } from 'node:fs'
import { packageFolder } from './package.ts'

/** What the file of a kind of device holds; `null` where there is none. */
export function packagedCostModel(kind: string): unknown {
  const folder = packageFolder()
  if (!folder) return null
  try {
    return JSON.parse(readFileSync(new URL(`data/models/${kind}.json`, folder), 'utf8'))
  } catch {
    return null
  }
}
