/** Validates layers and the data read from them. */
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, isRecord, show } from '../ast/diagnostics/expect-argument.ts'
import { maskedPattern } from '../storage/masked-pattern.ts'
import type { CoordTensor } from '../storage/tensor.ts'
import type { KeptMasks, LayerShape, Layers, Mask } from './types.ts'

export function countKept(mask: Uint8Array): number {
  let n = 0
  for (let i = 0; i < mask.length; i++) n += mask[i]!
  return n
}

/** @throws SptError `prune/layers`, `prune/layer` */
export function checkLayers(layers: Layers): void {
  expectArgument(isRecord(layers), 'layers', layers, 'an object with shapes and weights')
  expectArgument(typeof layers.weights === 'function', 'weights of layers', layers.weights, 'a function')
  checkShapes(layers.shapes)
  if (layers.shapes.length === 0)
    failWith('prune/layers', 'there are no layers', { expected: 'at least one layer' })
}

/** @throws SptError `api/argument`, `prune/layer` */
export function checkShapes(shapes: readonly LayerShape[]): void {
  expectArgument(Array.isArray(shapes), 'shapes of layers', shapes, 'a list')
  const names = new Set<string>()
  for (const shape of shapes) {
    expectArgument(isRecord(shape), 'a layer', shape, '{ name, rows, cols }')
    checkShape(shape)
    if (names.has(shape.name))
      failWith('prune/layer', `two layers are called ${shape.name}`, { hint: 'give each a distinct name' })
    names.add(shape.name)
  }
}

function checkShape({ name, rows, cols, valueBytes = 4 }: LayerShape): void {
  expectArgument(typeof name === 'string', 'the name of a layer', name, 'a text')
  for (const [subject, n] of Object.entries({ rows, cols, valueBytes }))
    if (!Number.isSafeInteger(n) || n < 1)
      failWith('prune/layer', `${subject} of layer ${name} cannot be ${show(n)}`, {
        expected: 'an integer of at least 1',
      })
  if (rows * cols >= 2 ** 32)
    failWith('prune/layer', `layer ${name} has ${rows} x ${cols} elements`, { expected: 'less than 2^32' })
}

/** @throws SptError `prune/shape` */
export function checkLength(
  subject: string,
  actual: unknown,
  type: Float32ArrayConstructor | Uint8ArrayConstructor,
  { name, rows, cols }: LayerShape,
): void {
  if (actual instanceof type && actual.length === rows * cols) return
  const actualText = actual instanceof type ? `${actual.length} elements` : show(actual)
  failWith('prune/shape', `${subject} of layer ${name}, ${rows} x ${cols}: ${actualText}`, {
    expected: `a ${type.name} of ${rows * cols} elements`,
  })
}

/**
 * Validates one mask per layer; `subject` names their source in messages.
 * @throws SptError `api/argument`, `prune/shape`, `prune/mask`
 */
export function checkMasks(subject: string, masks: readonly Mask[], shapes: readonly LayerShape[]): void {
  expectArgument(Array.isArray(masks), subject, masks, 'a list of masks')
  if (masks.length !== shapes.length)
    failWith('prune/shape', `${subject}: ${masks.length} masks for ${shapes.length} layers`, {
      expected: 'a mask for each layer, in their order',
    })
  shapes.forEach((shape, k) => {
    checkMask(masks[k]!, shape)
  })
}

/** @throws SptError `prune/shape`, `prune/mask` */
export function checkMask(mask: Mask, shape: LayerShape): void {
  checkLength('the mask', mask, Uint8Array, shape)
  // One pass without a branch per element, because masks have as many bytes as networks have weights.
  let bits = 0
  for (let i = 0; i < mask.length; i++) bits |= mask[i]!
  if (bits <= 1) return
  const index = mask.findIndex((x) => x > 1)
  failWith(
    'prune/mask',
    `the mask of layer ${shape.name} has ${mask[index]} in row ${Math.floor(index / shape.cols)}, column ${index % shape.cols}`,
    { expected: '1 for kept elements, 0 for pruned elements' },
  )
}

/** A layer with values in memory. */
export interface LayerValues extends LayerShape {
  readonly weights: Float32Array
  readonly gradients?: Float32Array
}

/** Layers with values in memory. @throws SptError `prune/shape` if only some layers have gradients */
export function layersFromValues(list: readonly LayerValues[]): Layers {
  expectArgument(Array.isArray(list), 'layers', list, 'a list of layers with their weights')
  for (const layer of list) expectArgument(isRecord(layer), 'a layer', layer, '{ name, rows, cols, weights }')
  const missing = list.find((l) => l.gradients === undefined)
  const base: Layers = {
    shapes: list.map(({ weights: _, gradients: __, ...shape }) => shape),
    weights: async (k) => list[k]!.weights,
  }
  if (missing && list.every((l) => l.gradients === undefined)) return base
  if (missing)
    failWith('prune/shape', `layer ${missing.name} has no gradients, other layers have`, {
      expected: 'gradients of all layers or of none',
    })
  return { ...base, gradients: async (k) => list[k]!.gradients! }
}

/**
 * Union of the masks of each layer, as `previousMasks` takes it.
 * @throws SptError `api/argument`, `prune/shape` if the numbers of masks differ
 */
export function unionMasks(pruned: KeptMasks): readonly Mask[] {
  expectArgument(isRecord(pruned), 'what was pruned', pruned, '{ masks, rest }')
  const { masks, rest } = pruned
  for (const [subject, list] of Object.entries({ masks, rest: rest ?? [] }))
    expectArgument(
      Array.isArray(list) && list.every((m) => m instanceof Uint8Array),
      subject,
      list,
      'a list of masks (Uint8Array)',
    )
  if (!rest) return masks
  const mismatch = masks.findIndex((mask, k) => mask.length !== rest[k]?.length)
  if (mismatch >= 0 || rest.length !== masks.length)
    failWith(
      'prune/shape',
      rest.length === masks.length
        ? `rest ${mismatch} has ${rest[mismatch]!.length} elements, and mask ${mismatch} ${masks[mismatch]!.length}`
        : `${rest.length} masks of remaining elements for ${masks.length} layers`,
      { expected: 'two masks for each layer, of equal length' },
    )
  return masks.map((mask, k) => union(mask, rest[k]!))
}

function union(a: Mask, b: Mask): Mask {
  const out = new Uint8Array(a.length)
  for (let i = 0; i < out.length; i++) out[i] = a[i]! | b[i]!
  return out
}

// Converts the kept elements of a layer to a sparse tensor.

/**
 * The kept elements in row order, with their weights or as a pattern. Kept elements of weight 0 stay elements, although a
 * dense tensor could not distinguish them from pruned ones.
 * @throws SptError `api/argument`, `prune/shape`, `prune/mask`
 */
export function keptElements(
  mask: Mask,
  { rows, cols, name = 'given' }: Pick<LayerShape, 'rows' | 'cols'> & { readonly name?: string },
  weights: Float32Array | null = null,
): CoordTensor {
  const shape = { name, rows, cols }
  checkMask(mask, shape)
  if (weights !== null) checkLength('weights', weights, Float32Array, shape)
  const pattern = maskedPattern(mask, [rows, cols])
  if (weights === null) return pattern
  const [rowOf, columnOf] = pattern.coords as [Int32Array, Int32Array]
  const values = new Float32Array(rowOf.length)
  for (let e = 0; e < values.length; e++) values[e] = weights[rowOf[e]! * cols + columnOf[e]!]!
  return { ...pattern, values }
}
