/** Any elements. */
import { elementsOf, lowestElements, roomsOf, targetOf } from '../selection.ts'
import type { Pattern } from '../types.ts'
import { elementBytes, kept } from './parameters.ts'

export function elementWise(): Pattern {
  return {
    name: 'ew',
    text: 'ew',
    async masks(given, sparsity) {
      const target = targetOf(sparsity, elementsOf(given.shapes))
      const masks = await lowestElements(given, { target, rooms: roomsOf(given) })
      for (const mask of masks) for (let i = 0; i < mask.length; i++) mask[i] = 1 - mask[i]!
      return { kept: masks }
    },
    bytes: ({ shape: { rows, valueBytes = 4 }, kept: mask }) => elementBytes(kept(mask), rows, valueBytes),
  }
}
