/**
 * Gradients against central differences: along a random direction of each tensor, the derivative of Σ d_O · O in the
 * reference, in float64, is Σ d_X · direction.
 */

import { parseProgram } from '../../src/api/programs/program.ts'
import { gradient } from '../../src/derive/gradient.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { isFloat } from '../../src/ir/values/dtype.ts'
import { type RefInputs, type RefResult, type RefTensor, reference } from '../../src/reference/index.ts'
import { Random } from '../../src/run/bind/sources/random-tensors.ts'

/** The same program in float64, in which differences have 8 correct digits. */
export const inDoubles = (text: string): string => text.replace(/\b(?:f32|f16|bf16)\b/g, 'f64')

/** The floating-point inputs with smooth values: distinct, from 0.2 to 1.2. */
export function smooth(kernel: Kernel1, inputs: RefInputs, seed: number): RefInputs {
  const random = new Random(seed)
  const values = (n: number): number[] => Array.from({ length: n }, () => 0.2 + random.next())
  const buffers = Object.fromEntries(
    Object.entries(inputs.buffers).map(([name, t]): [string, RefTensor] => {
      if (!isFloat(kernel.buffers.find((b) => b.name === name)?.dtype ?? 'bool')) return [name, t]
      return [name, 'coords' in t ? { ...t, values: values(t.coords[0]?.length ?? 0) } : values(t.length)]
    }),
  )
  return { ...inputs, buffers }
}

export interface Checked {
  readonly tensor: string
  readonly expected: number
  readonly actual: number
  /** The difference to the right and to the left disagree, as at a maximum of equal values. */
  readonly isKink: boolean
}

const key = (coords: readonly ArrayLike<number>[], e: number): string => coords.map((c) => c[e]).join()

const valueAt = (r: RefResult): ((coords: readonly ArrayLike<number>[], e: number) => number) => {
  if (r.kind === 'dense')
    return (coords, e) => r.values[coords.reduce((sum, c, d) => sum * r.shape[d]! + c[e]!, 0)]!
  const at = new Map(Array.from(r.values, (v, e) => [key(r.coords, e), v]))
  return (coords, e) => at.get(key(coords, e)) ?? 0
}

/** The result as a tensor with other values. */
const like = (r: RefResult, values: readonly number[]): RefTensor =>
  r.kind === 'dense' ? values : { coords: r.coords, values }

const STEP = 2e-5

/** Compares the gradients of an output with central differences. @throws SptError `derive/…` */
export function checkGradients(
  kernel: Kernel1,
  inputs: RefInputs,
  by: string,
  wrt: readonly string[],
  seed: number,
): readonly Checked[] {
  const random = new Random(seed)
  const numbers = (n: number): number[] => Array.from({ length: n }, () => random.next() - 0.5)
  const derived = gradient(kernel, { name: 'back', by: { name: by }, wrt: wrt.map((name) => ({ name })) })
  // The printed text is the kernel.
  const back = parseProgram(print1(derived)).kernel('back').source
  const run = (at: RefInputs): RefResult => reference(kernel, at).buffers[by]!
  const result = run(inputs)
  const isLoss = kernel.buffers.find((b) => b.name === by)!.axes.length === 0
  const weights = isLoss ? [1] : numbers(result.values.length)
  const buffers = isLoss ? inputs.buffers : { ...inputs.buffers, [`d_${by}`]: like(result, weights) }
  const declared = new Set([...back.buffers, ...back.params, ...back.axes].map((x) => x.name))
  const kept = <T>(fields: Readonly<Record<string, T>>): Record<string, T> =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => declared.has(name)))
  const gradients = reference(back, {
    params: kept(inputs.params),
    buffers: kept(buffers),
    ...(inputs.structure ? { structure: kept(inputs.structure) } : {}),
  }).buffers
  const total = (r: RefResult): number => r.values.reduce((sum, v, k) => sum + v * weights[k]!, 0)
  const names = derived.buffers.filter((b) => b.role === 'out').slice(-wrt.length)
  return wrt.map((tensor, n): Checked => {
    const x = inputs.buffers[tensor]!
    const values = Array.from('coords' in x ? x.values! : x)
    const direction = numbers(values.length)
    const at = (h: number): number => {
      const moved = values.map((v, k) => v + h * direction[k]!)
      const next = 'coords' in x ? { ...x, values: moved } : moved
      return total(run({ ...inputs, buffers: { ...inputs.buffers, [tensor]: next } }))
    }
    const [right, middle, left] = [at(STEP), total(result), at(-STEP)]
    const g = gradients[names[n]!.name]!
    const gradientAt = valueAt(g)
    const shape = g.shape
    const actual = direction.reduce((sum, d, k) => {
      if ('coords' in x) return sum + d * gradientAt(x.coords, k)
      let rest = k
      const coords = shape
        .toReversed()
        .map((n) => {
          const c = [rest % n]
          rest = Math.floor(rest / n)
          return c
        })
        .toReversed()
      return sum + d * gradientAt(coords, 0)
    }, 0)
    const [above, below] = [(right - middle) / STEP, (middle - left) / STEP]
    const size = Math.max(1, Math.abs(above), Math.abs(below))
    const isSmooth = Math.abs(above - below) <= 1e-2 * size && Number.isFinite(above - below)
    // Equal values whose order is decided by rounding: the reference computes no gradient there.
    const isDecided = g.errors.every(Number.isFinite)
    return { tensor, expected: (right - left) / (2 * STEP), actual, isKink: !isSmooth || !isDecided }
  })
}

/** Floating-point inputs, and outputs with gradients. */
export const floatsOf = (kernel: Kernel1, role: 'in' | 'out'): readonly string[] =>
  kernel.buffers.filter((b) => b.role === role && isFloat(b.dtype)).map((b) => b.name)
