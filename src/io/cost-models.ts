/** The cost models that come with the package. */
import { packageJson } from './package.ts'

/** What the file of a kind of device holds; `null` where there is none. */
export const packagedCostModel = (kind: string): unknown => packageJson(`data/models/${kind}.json`)
