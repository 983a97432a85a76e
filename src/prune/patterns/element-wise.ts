/** Element-wise (unstructured) sparsity. */
import { elementsOf, layerCapacities, lowestElements, targetOf } from '../selection.ts'
import type { Pattern } from '../types.ts'
import { countKept, elementBytes } from './parameters.ts'

export function elementWise(): Pattern {
  return {
    name: 'ew',
    text: 'ew',
    async masks(layers, sparsity) {
      const target = targetOf(sparsity, elementsOf(layers.shapes))
      const masks = await lowestElements(layers, { target, capacities: layerCapacities(layers) })
      for (const mask of masks) for (let i = 0; i < mask.length; i++) mask[i] = 1 - mask[i]!
      return { kept: masks }
    },
    bytes: ({ shape: { rows, valueBytes = 4 }, kept: mask }) =>
      elementBytes(countKept(mask), rows, valueBytes),
  }
}
