/** Ready-made arrays and random data: pages load this code when the first such input is bound (`web/formats`). */
import { elementsOf } from '../../storage/ready/elements.ts'
import { storedValues, validateStored } from '../../storage/ready/validate.ts'
import { bindReady } from './ready/ready-made-parts.ts'
import { readyValues } from './ready/ready-made-tables.ts'
import { randomSources } from './sources/random-sources.ts'
import { randomCoords, randomFor, randomList } from './sources/random-tensors.ts'

export const RARE_INPUTS = {
  bindReady,
  elementsOf,
  randomCoords,
  randomFor,
  randomList,
  randomSources,
  readyValues,
  storedValues,
  validateStored,
}
export type RareInputs = typeof RARE_INPUTS
