/** Ready-made arrays of tensors: pages load this code when the first is bound (`web/formats`). */
import { elementsOf } from '../../../storage/ready/elements.ts'
import { storedValues, validateStored } from '../../../storage/ready/validate.ts'
import { bindReady } from './ready-made-parts.ts'
import { readyValues } from './ready-made-tables.ts'

export const STORED_ARRAYS = { bindReady, elementsOf, readyValues, storedValues, validateStored }
export type StoredArrays = typeof STORED_ARRAYS
