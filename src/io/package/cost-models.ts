/** The cost models that come with the package. */
import { packageJson } from './package.ts'

/** The cost model for a kind of device; `null` if the package has none. */
export const packagedCostModel = (kind: string): unknown => packageJson(`data/models/${kind}.json`)
