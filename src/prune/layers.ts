/** Layers are what they say, and what is read of them fits. */
import { fail } from '../ast/diagnostic.ts'
import { expectArgument, isRecord, show } from '../ast/expect-argument.ts'
import type { LayerShape, Layers, Mask } from './types.ts'

/** @throws SptError `prune/layers`, `prune/layer` */
export function checkLayers(layers: Layers): void {
  expectArgument(isRecord(layers), 'layers', layers, 'an object with shapes and weights')
  expectArgument(Array.isArray(layers.shapes), 'shapes of layers', layers.shapes, 'a list')
  expectArgument(typeof layers.weights === 'function', 'weights of layers', layers.weights, 'a function')
  if (layers.shapes.length === 0)
    fail({ code: 'prune/layers', message: 'there are no layers', expected: 'at least one layer' })
  const names = new Set<string>()
  for (const shape of layers.shapes) {
    checkShape(shape)
    if (names.has(shape.name))
      fail({
        code: 'prune/layer',
        message: `two layers are called ${shape.name}`,
        hint: 'give each a name of its own',
      })
    names.add(shape.name)
  }
}

function checkShape({ name, rows, cols, valueBytes = 4 }: LayerShape): void {
  expectArgument(typeof name === 'string', 'the name of a layer', name, 'a text')
  for (const [what, n] of Object.entries({ rows, cols, valueBytes }))
    if (!Number.isSafeInteger(n) || n < 1)
      fail({
        code: 'prune/layer',
        message: `${what} of layer ${name} cannot be ${show(n)}`,
        expected: 'an integer of at least 1',
      })
  if (rows * cols >= 2 ** 32)
    fail({
      code: 'prune/layer',
      message: `layer ${name} has ${rows} x ${cols} elements`,
      expected: 'less than 2^32',
    })
}

/** @throws SptError `prune/shape` */
export function checkLength(
  what: string,
  got: unknown,
  type: Float32ArrayConstructor | Uint8ArrayConstructor,
  { name, rows, cols }: LayerShape,
): void {
  if (got instanceof type && got.length === rows * cols) return
  const given = got instanceof type ? `${got.length} elements` : show(got)
  fail({
    code: 'prune/shape',
    message: `${what} of layer ${name}, ${rows} x ${cols}: ${given}`,
    expected: `a ${type.name} of ${rows * cols} elements`,
  })
}

/** Masks of earlier stages: one for each layer. */
export function checkMasks(masks: readonly Mask[], shapes: readonly LayerShape[]): void {
  expectArgument(Array.isArray(masks), 'after', masks, 'a list of masks')
  if (masks.length !== shapes.length)
    fail({
      code: 'prune/shape',
      message: `${masks.length} masks for ${shapes.length} layers`,
      expected: 'a mask for each layer, in their order',
    })
  shapes.forEach((shape, k) => {
    checkLength('the mask', masks[k], Uint8Array, shape)
    if (masks[k]!.some((x) => x > 1))
      fail({
        code: 'prune/mask',
        message: `the mask of layer ${shape.name} has values above 1`,
        expected: '1 where an element is kept, 0 where it is pruned',
      })
  })
}

/** A layer whose values are in memory. */
export interface LayerValues extends LayerShape {
  readonly weights: Float32Array
  readonly gradients?: Float32Array
}

/** @throws SptError `prune/shape` where some have gradients, and others none */
export function layersOf(list: readonly LayerValues[]): Layers {
  const without = list.find((l) => l.gradients === undefined)
  const base: Layers = {
    shapes: list.map(({ weights: _, gradients: __, ...shape }) => shape),
    weights: async (k) => list[k]!.weights,
  }
  if (without && list.every((l) => l.gradients === undefined)) return base
  if (without)
    fail({
      code: 'prune/shape',
      message: `layer ${without.name} has no gradients, others have`,
      expected: 'gradients of all layers or of none',
    })
  return { ...base, gradients: async (k) => list[k]!.gradients! }
}

/** All that is kept: of two masks each layer, what either keeps. As `after` takes it. */
export function keptIn({
  masks,
  rest,
}: {
  readonly masks: readonly Mask[]
  readonly rest?: readonly Mask[]
}): readonly Mask[] {
  return rest ? masks.map((mask, k) => either(mask, rest[k]!)) : masks
}

function either(a: Mask, b: Mask): Mask {
  const out = new Uint8Array(a.length)
  for (let i = 0; i < out.length; i++) out[i] = a[i]! | b[i]!
  return out
}
